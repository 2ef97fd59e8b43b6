use std::path::PathBuf;

use tenure_app::conversation::home;
use tenure_app::place::current_dir;
use tenure_core::id::{AgentName, NativeId, WorkerRole};
use tenure_core::reason::Reason;
use tenure_service::SetRequest;

use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Set the native id of a conversation; the previous one moves to the history
///
/// Fails (exit 6) if the id belongs to another conversation, to a live session that is not yours, or to a
/// subagent.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure conversation set claude issue:acme/web#6 0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d
  tenure conversation set codex '#6' 01a1dcbc-4a1e-7000-8000-000000000001 --dir /srv/web
  tenure conversation set claude '#6' 0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d --revision 3
                     only if it is still at revision 3 (else exit 5)")]
pub struct Args {
    /// Agent, such as claude
    #[arg(value_name = "AGENT")]
    agent: String,

    /// Item
    #[arg(value_name = "ITEM")]
    item: String,

    /// The agent's own conversation id
    #[arg(value_name = "NATIVE_ID")]
    native_id: String,

    /// Role of the agent; each role has a conversation of its own [default: none]
    #[arg(
        long,
        value_name = "ROLE",
        default_value = "",
        hide_default_value = true
    )]
    role: WorkerRole,

    /// Directory the agent works in [default: the current one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Only if this is the current revision; 0: only if there is no conversation yet
    #[arg(long, value_name = "N")]
    revision: Option<u64>,

    /// Reason, logged (required when --session names another session)
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let agent = AgentName::parse(&args.agent)?;
    let item = app.key(&args.item)?;
    let native_id = NativeId::parse(&args.native_id)?;
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => current_dir()?,
    };
    let mut context = app.open()?;
    let request = SetRequest {
        home: home(&context, &agent, &item, &dir)?,
        agent,
        role: args.role.clone(),
        item,
        native_id,
        revision: args.revision,
    };
    let act_for = app.act_for(args.reason.as_ref());
    let answer = context.service().set_conversation(&act_for, &request)?;
    let text = shown::line(&answer.value);
    Ok(Output::new("conversation", &answer.value, text).told(&answer))
}
