use tenure_core::id::AgentName;
use tenure_service::ListJobs;
use tenure_service::view::DeliveryView;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::render;
use crate::render::job as shown;

#[derive(Debug, clap::Args)]
pub struct JobListArgs {
    /// Only jobs for this item
    #[arg(long, value_name = "ITEM")]
    item: Option<String>,

    /// Only jobs of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Also jobs that are over, newest first
    #[arg(long)]
    all: bool,

    /// Show at most N jobs; 0 for all [default: 50, or all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// How many people are shown unless they say otherwise.
const MAX_SHOWN: usize = 50;

pub fn run(args: &JobListArgs, app: &App) -> Outcome {
    let request = ListJobs {
        item: args.item.as_deref().map(|item| app.key(item)).transpose()?,
        agent: args.agent.as_deref().map(AgentName::parse).transpose()?,
        all: args.all,
        limit: app.limit(args.limit, MAX_SHOWN),
    };
    let mut context = app.open()?;
    let answer = context.service().list_jobs(&request)?;
    let mut lines = shown::list(answer.value.items.iter());
    let listed = &answer.value;
    let command = "tenure queue --limit 0";
    render::rest(&mut lines, listed.more, listed.more_is_least, command);
    let waiting = context.service().waiting_deliveries()?.value;
    let is_meant = |one: &&DeliveryView| match &request.item {
        Some(item) => one.item.as_deref() == Some(item.as_str()),
        None => true,
    };
    let waiting: Vec<&DeliveryView> = waiting.iter().filter(is_meant).collect();
    for one in &waiting {
        lines.line(shown::waiting(one));
    }
    Ok(Output::new("jobs", &answer.value.items, lines)
        .with("more", &answer.value.more)
        .with("deliveries", &waiting)
        .told(&answer))
}
