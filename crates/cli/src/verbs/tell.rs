use crate::app::App;
use crate::output::{Outcome, Output};

/// Tell a session something: it hears it at its next call
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure tell claude-k7qd 'main is frozen until noon'")]
pub struct Args {
    /// Its handle, its id, or any unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// What to tell it
    #[arg(value_name = "MESSAGE")]
    message: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let answer = context.service().tell(&args.name, &args.message)?;
    let session = &answer.value;
    let text = match session.ended_at {
        None => format!("{} will hear it at its next call", session.handle),
        Some(_) => format!(
            "{} is {}; it will hear it if it is resumed",
            session.handle, session.state
        ),
    };
    Ok(Output::new("session", session, text).told(&answer))
}
