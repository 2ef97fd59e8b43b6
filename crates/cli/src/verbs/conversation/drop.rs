use tenure_app::conversation::drop_all;
use tenure_core::id::{AgentName, WorkerRole};
use tenure_core::reason::Reason;
use tenure_service::DropRequest;

use super::shown;
use crate::app::App;
use crate::child::unfinished;
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// Drop the conversations of exactly this item; the next run starts a new one
///
/// The agent's files stay, and so does the history. Fails (exit 3) while a run uses one of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure conversation drop issue:acme/web#6
  tenure conversation drop '#6' --agent codex
  tenure conversation drop '#6' --role reviewer
  tenure conversation drop '#6' --stop      first stop the run that uses it")]
pub struct Args {
    /// Item
    #[arg(value_name = "ITEM")]
    item: String,

    /// Only the conversation of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only the conversations of this role; '' for those without one [default: every role]
    #[arg(long, value_name = "ROLE")]
    role: Option<WorkerRole>,

    /// First stop the runs that use them, and wait until they have ended
    #[arg(long)]
    stop: bool,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = DropRequest {
        item: app.key(&args.item)?,
        agent: args.agent.as_deref().map(AgentName::parse).transpose()?,
        role: args.role.clone(),
        stop: args.stop,
    };
    let mut context = app.open()?;
    let act_for = app.act_for(args.reason.as_ref());
    let answer = drop_all(&mut context, &act_for, &request).map_err(unfinished)?;
    let mut text = Lines::default();
    for one in &answer.value {
        text.line(format!("dropped {}", shown::name(one)));
    }
    Ok(Output::new("conversations", &answer.value, text).told(&answer))
}
