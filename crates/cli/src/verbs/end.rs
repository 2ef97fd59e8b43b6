use tenure_core::reason::Reason;

use crate::app::App;
use crate::output::{Outcome, Shown};

/// End a session: everything that it holds is free
///
/// Without --session: the session that this command runs in.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure end
  tenure end --session claude-k7qd --reason 'laptop was stolen'")]
pub struct Args {
    /// Reason, logged (required for a session other than your own)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    let answer = opened.service().end(&app.naming(args.reason.as_ref()))?;
    let session = &answer.value;
    Ok(Shown::new("session", session, format!("{} ended", session.handle)).told(&answer))
}
