use tenure_app::place::place_here;
use tenure_runs::status::status;
use tenure_service::ListRequest;

use crate::app::App;
use crate::first_steps;
use crate::output::{Outcome, Output};
use crate::render::spooled;
use crate::render::status;

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
    let mut context = match app.open_until_exit() {
        Ok(context) => context,
        Err(failure) => return spooled::remembered(failure),
    };
    let (answer, worktrees) = status(&mut context, &app.act_for(None), &request)?;
    let own_hooks = match answer.value.me {
        Some(_) => Vec::new(),
        None => first_steps::all_hooked(),
    };
    let text = status::status(&answer.value, &own_hooks);
    Ok(Output::new("status", &answer.value, text)
        .with("worktrees", &worktrees)
        .told(&answer))
}
