use tenure_app::attention;
use tenure_app::place::place_here;
use tenure_app::run::{result, settle, worktree};
use tenure_service::{ListRequest, WARNED_FOR};

use crate::app::App;
use crate::first_steps;
use crate::output::{Outcome, Output};
use crate::spooled;
use crate::summary;

/// Show this session, its claims, other sessions here, and warnings
///
/// Prints at most 20 lines; --json prints everything. Files are those that other sessions' tools wrote within an
/// hour.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure status
  tenure status --json | jq .status.others")]
pub struct Args {}

pub fn run(_: &Args, app: &App) -> Outcome {
    let request = ListRequest::around(&place_here());
    let mut context = match app.open() {
        Ok(context) => context,
        Err(failure) => return spooled::remembered(failure),
    };
    let mut answer = context.service().status(&app.act_for(None), &request)?;
    if let Ok(runs) = settle::warnings(&mut context, WARNED_FOR) {
        answer.value.warnings.extend(runs);
    }
    let seen = attention::warnings(&mut context);
    answer.value.warnings.extend(seen);
    let worktrees = worktree::records_left(context.dir());
    answer.value.warnings.extend(worktree::warnings(&worktrees));
    answer
        .value
        .warnings
        .extend(result::warnings(context.dir()));
    let own_hooks = match answer.value.me {
        Some(_) => Vec::new(),
        None => first_steps::all_hooked(),
    };
    let text = summary::status(&answer.value, &own_hooks);
    Ok(Output::new("status", &answer.value, text)
        .with("worktrees", &worktrees)
        .told(&answer))
}
