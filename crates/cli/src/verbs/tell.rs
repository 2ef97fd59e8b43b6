use crate::app::App;
use crate::output::{Outcome, Output};

/// Send a message to a session, which sees it at its next prompt or tool call
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure tell claude-k7qd 'main is frozen until noon'")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// Text of the message
    #[arg(value_name = "MESSAGE")]
    message: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let answer = context.service().tell(&args.name, &args.message)?;
    let session = &answer.value;
    let text = match session.ended_at {
        None => format!(
            "{} will see it at its next prompt or tool call",
            session.handle
        ),
        Some(_) => format!(
            "{} is {}; it gets the message if it is resumed",
            session.handle, session.state
        ),
    };
    Ok(Output::new("session", session, text).told(&answer))
}
