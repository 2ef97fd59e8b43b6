use tenure_core::id::{AgentName, WorkerRole};

use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};

/// Show every native id that a conversation ever had, and why each ended
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure conversation history claude issue:acme/web#6
  tenure conversation history codex '#6' --json | jq '.history[].why'")]
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
    let answer = context
        .service()
        .conversation_history(&agent, &args.role, &item)?;
    let text = shown::history(&answer.value);
    Ok(
        Output::new("conversation", &answer.value.conversation, text)
            .with("history", &answer.value.ids)
            .told(&answer),
    )
}
