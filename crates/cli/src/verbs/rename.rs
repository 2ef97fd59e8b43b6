use tenure_core::reason::Reason;
use tenure_core::text;
use tenure_service::ActFor;

use crate::app::App;
use crate::output::{Outcome, Output};

/// Set the title of a session
///
/// The title stays until the session is renamed again. An empty title removes it; the session is then shown with
/// the agent's own title, or its first prompt.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure rename claude-k7qd 'Login fails on Safari'
  tenure rename k7qd ''             go back to the agent's own title or the first prompt")]
pub struct Args {
    /// Handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: String,

    /// Title: one line, at most 80 characters
    #[arg(value_name = "TITLE")]
    title: String,

    /// Reason, logged (required when an agent renames another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let act_for = ActFor {
        session: Some(args.name.clone()),
        reason: args.reason.clone(),
    };
    let answer = context.service().rename(&act_for, &args.title)?;
    let session = &answer.value;
    let handle = &session.handle;
    let is_removed = args.title.trim().is_empty();
    let text = match &session.title {
        Some(title) if is_removed => {
            let title = text::quoted(title);
            format!("removed the title of {handle}; it is now shown as {title}")
        }
        Some(title) => format!("{handle} is now titled {}", text::quoted(title)),
        None => format!("removed the title of {handle}"),
    };
    Ok(Output::new("session", session, text).told(&answer))
}
