use tenure_app::conversation::any_here;
use tenure_core::id::{AgentName, WorkerRole};
use tenure_core::text;
use tenure_service::ListConversations;

use super::shown;
use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render;

/// List conversations, their items and whether they can be resumed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure conversation list
  tenure conversation list --item issue:acme/web#6      of all agents
  tenure conversation list --agent claude --json")]
pub struct Args {
    /// Only conversations of this item
    #[arg(long, value_name = "ITEM")]
    item: Option<String>,

    /// Only conversations of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only conversations of this role; '' for those without one
    #[arg(long, value_name = "ROLE")]
    role: Option<WorkerRole>,

    /// Include closed conversations
    #[arg(long, short)]
    all: bool,

    /// Show at most N conversations; 0 for all [default: 200, or all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// How many rows are shown to people by default.
const MAX_SHOWN: usize = 200;

pub fn run(args: &Args, app: &App) -> Outcome {
    let request = ListConversations {
        item: args.item.as_deref().map(|item| app.key(item)).transpose()?,
        agent: args.agent.as_deref().map(AgentName::parse).transpose()?,
        role: args.role.clone(),
        all: args.all,
        limit: app.limit(args.limit, MAX_SHOWN),
    };
    let mut context = app.open()?;
    let here = any_here(&context);
    let answer = context.service().conversations(&request, &here)?;
    let mut lines = shown::list(&answer.value.items);
    let mut more = "tenure conversation list".to_owned();
    if let Some(item) = &args.item {
        more.push_str(&format!(" --item {}", text::shell(item)));
    }
    if let Some(agent) = &args.agent {
        more.push_str(&format!(" --agent {agent}"));
    }
    if let Some(role) = &args.role {
        more.push_str(&format!(" --role {}", text::shell(role.as_str())));
    }
    more.push_str(if args.all { " --all" } else { "" });
    let listed = &answer.value;
    let command = format!("{more} --limit 0");
    render::rest(&mut lines, listed.more, listed.more_is_least, &command);
    Ok(Output::new("conversations", &answer.value.items, lines)
        .with("more", &answer.value.more)
        .told(&answer))
}
