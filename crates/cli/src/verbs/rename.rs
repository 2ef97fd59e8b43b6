use tenure_core::reason::Reason;
use tenure_service::Naming;

use crate::app::App;
use crate::output::{Outcome, Shown};

/// Give a session a title, which stays until it is renamed again
///
/// Without a title, sessions are shown with the agent's own title or their first prompt. An empty title removes
/// yours.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure rename claude-k7qd 'Login fails on Safari'
  tenure rename k7qd ''             back to the agent's own title")]
pub struct Args {
    /// Its handle, its id, or any unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// The title, on one line of at most 80 characters
    #[arg(value_name = "TITLE")]
    title: String,

    /// Reason, logged (required when an agent renames another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let naming = Naming {
        session: Some(args.name.clone()),
        reason: args.reason.clone(),
    };
    let answer = opened.service().rename(&naming, &args.title)?;
    let session = &answer.value;
    let text = match &session.title {
        Some(title) => format!("{} is now {title:?}", session.handle),
        None => format!("{} has no title", session.handle),
    };
    Ok(Shown::new("session", session, text).told(&answer))
}
