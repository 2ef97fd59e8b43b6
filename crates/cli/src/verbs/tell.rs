use tenure_service::SentMessage;
use tenure_views::details;

use crate::app::App;
use crate::output::{Outcome, Output};

/// Send a message to a session
///
/// A live session will see it at its next prompt or tool call (delivered). A session that has ended and can be resumed
/// will see it then (waiting). For a session that cannot be resumed (dead) the message is not stored: exit 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure tell claude-k7qd 'main is frozen until noon'
  tenure tell k7qd 'rebase first' --json | jq -r .delivery")]
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
    let SentMessage { session, delivery } = &answer.value;
    let text = details::told(&answer.value);
    Ok(Output::new("session", session, text)
        .with("delivery", delivery)
        .told(&answer))
}
