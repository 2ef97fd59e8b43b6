use serde_json::{Map, json};
use tenure_app::open::Context;
use tenure_core::id::AgentName;
use tenure_runs::{provider, settle};
use tenure_service::view::JobView;
use tenure_service::{ListJobs, ListRuns};

use super::shown;
use crate::app::App;
use crate::lines::Lines;
use crate::long_list::LongList;
use crate::output::{CliError, Outcome, Output};
use crate::render;
use crate::render::job;

#[derive(Debug, clap::Args)]
pub struct RunListArgs {
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
const MAX_SHOWN: usize = 50;

pub fn run(args: &RunListArgs, app: &App) -> Outcome {
    if args.queued {
        return queued(args, app);
    }
    let request = ListRuns {
        item: args.item.as_deref().map(|item| app.key(item)).transpose()?,
        agent: args.agent.as_deref().map(AgentName::parse).transpose()?,
        failed: args.failed,
        limit: app.limit(args.limit, MAX_SHOWN),
    };
    let mut context = app.open()?;
    settle::all(&mut context)?;
    if app.style.json {
        return write_all(request, app, &mut context);
    }
    let mut answer = context.service().list_runs(&request)?;
    provider::look(&mut answer.value.items);
    let listed = &answer.value;
    let mut lines = shown::list(&listed.items);
    rest(&mut lines, listed.more, listed.more_is_least);
    Ok(Output::default().say(lines).told(&answer))
}

/// Writes the object for programs page by page.
fn write_all(request: ListRuns, app: &App, context: &mut Context) -> Outcome {
    let start = context.service().runs_start(&request)?;
    let (more, more_is_least) = start.value;
    let mut list = LongList::begin(app, "runs", &start)?;
    let ended = write_pages(request, context, &mut list);
    let mut parts = Map::new();
    parts.insert("more".into(), json!(more));
    parts.insert("more_is_least".into(), json!(more_is_least));
    list.end(ended, parts)
}

fn write_pages(
    mut request: ListRuns,
    context: &mut Context,
    list: &mut LongList<'_>,
) -> Result<(), CliError> {
    let has_limit = request.limit > 0;
    let mut before = None;
    loop {
        let mut answer = context.service().runs_page(&request, before.as_ref())?;
        let runs = &mut answer.value.items;
        provider::look(runs.iter_mut());
        if has_limit {
            request.limit = request.limit.saturating_sub(runs.len());
        }
        let is_read = list.page(&answer.value.items, &answer, |_| Lines::default())?;
        before = answer.value.next.take();
        let is_done = has_limit && request.limit == 0;
        if !is_read || is_done || before.is_none() {
            return Ok(());
        }
    }
}

/// How many more there are, or how many at least.
fn rest(lines: &mut Lines, more: usize, is_least: bool) {
    render::rest(lines, more, is_least, "tenure runs --limit 0");
}

fn queued(args: &RunListArgs, app: &App) -> Outcome {
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
    let most = match app.limit(args.limit, MAX_SHOWN) {
        0 => waiting.len(),
        most => most.min(waiting.len()),
    };
    let (shown, rest) = waiting.split_at(most);
    let mut lines = job::list(shown.iter().copied());
    let command = "tenure runs --queued --limit 0";
    render::rest(&mut lines, rest.len(), false, command);
    Ok(Output::new("jobs", &shown, lines)
        .with("more", &rest.len())
        .told(&answer))
}
