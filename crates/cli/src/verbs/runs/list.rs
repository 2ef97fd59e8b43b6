use tenure_app::run::{provider, settle};
use tenure_core::id::AgentName;
use tenure_service::view::JobView;
use tenure_service::{ListJobs, ListRuns};

use super::shown;
use crate::app::App;
use crate::jobs;
use crate::lines::Lines;
use crate::output::{Outcome, Output};
use crate::render;

#[derive(Debug, clap::Args)]
pub struct Which {
    /// Only runs on this item
    #[arg(long, value_name = "ITEM")]
    item: Option<String>,

    /// Only runs of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only runs that failed
    #[arg(long)]
    failed: bool,

    /// What waits for a run instead: the jobs of the queue that have not begun
    #[arg(long, conflicts_with = "failed")]
    queued: bool,

    /// Show at most N runs, newest first; 0 for all [default: 50, or all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// How many rows are shown to people by default.
const MOST_SHOWN: usize = 50;

pub fn run(args: &Which, app: &App) -> Outcome {
    if args.queued {
        return queued(args, app);
    }
    let request = ListRuns {
        item: args.item.as_deref().map(|item| app.key(item)).transpose()?,
        agent: args.agent.as_deref().map(AgentName::parse).transpose()?,
        failed: args.failed,
        limit: app.limit(args.limit, MOST_SHOWN),
    };
    let mut context = app.open()?;
    settle::all(&mut context)?;
    let mut answer = context.service().list_runs(&request)?;
    provider::look(&mut answer.value.items);
    let mut lines = shown::list(&answer.value.items);
    let listed = &answer.value;
    rest(&mut lines, listed.more, listed.more_is_least);
    Ok(Output::new("runs", &listed.items, lines)
        .with("more", &listed.more)
        .with("more_is_least", &listed.more_is_least)
        .told(&answer))
}

/// How many more there are, or how many at least.
fn rest(lines: &mut Lines, more: usize, is_least: bool) {
    if is_least {
        lines.line(format!(
            "more than {more} others; run `tenure runs --limit 0` to see them"
        ));
    } else {
        render::rest(lines, more, "tenure runs --limit 0");
    }
}

fn queued(args: &Which, app: &App) -> Outcome {
    let request = ListJobs {
        item: args.item.as_deref().map(|item| app.key(item)).transpose()?,
        agent: args.agent.as_deref().map(AgentName::parse).transpose()?,
        all: false,
        limit: 0,
    };
    let mut context = app.open()?;
    let answer = context.service().list_jobs(&request)?;
    let waits = |job: &&JobView| job.state != "begun";
    let waiting: Vec<&JobView> = answer.value.items.iter().filter(waits).collect();
    let most = match app.limit(args.limit, MOST_SHOWN) {
        0 => waiting.len(),
        most => most.min(waiting.len()),
    };
    let (shown, rest) = waiting.split_at(most);
    let mut lines = jobs::list(shown.iter().copied());
    render::rest(&mut lines, rest.len(), "tenure runs --queued --limit 0");
    Ok(Output::new("jobs", &shown, lines)
        .with("more", &rest.len())
        .told(&answer))
}
