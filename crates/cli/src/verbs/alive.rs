use crate::app::App;
use crate::exit::Exit;
use crate::output::{Outcome, Output};

/// Check whether a session is alive: exit 0 yes, 1 no, 9 unknown
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure alive claude-k7qd && echo still there
  tenure alive claude-k7qd --json | jq .alive")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open_until_exit()?;
    let answer = context.service().alive(&args.name)?;
    let (alive, session) = &answer.value;
    let text = format!("{} is {}: {}", session.handle, session.state, session.why);
    let exit = if *alive { Exit::DONE } else { Exit::REFUSED };
    Ok(Output::new("alive", alive, text)
        .with("session", session)
        .told(&answer)
        .exit(exit))
}
