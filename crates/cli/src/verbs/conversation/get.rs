use tenure_app::conversation::here;
use tenure_core::id::{AgentName, WorkerRole};

use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Show the conversation that a run would continue, and whether it can be resumed
///
/// Exits 4 if there is none.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure conversation get claude issue:acme/web#6
  tenure conversation get codex '#6' --json | jq -r .conversation.native_id")]
pub struct Args {
    /// Agent, such as claude
    #[arg(value_name = "AGENT")]
    agent: String,

    /// Item
    #[arg(value_name = "ITEM")]
    item: String,

    /// Role of the agent; each role has a conversation of its own [default: none]
    #[arg(
        long,
        value_name = "ROLE",
        default_value = "",
        hide_default_value = true
    )]
    role: WorkerRole,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let agent = AgentName::parse(&args.agent)?;
    let item = app.key(&args.item)?;
    let mut context = app.open()?;
    let here = here(&context, &agent, &item);
    let answer = context
        .service()
        .conversation(&agent, &args.role, &item, &here)?;
    let text = shown::one(&answer.value);
    Ok(Output::new("conversation", &answer.value, text).told(&answer))
}
