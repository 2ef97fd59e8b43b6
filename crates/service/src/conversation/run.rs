//! Whether a run is in a conversation.

use tenure_core::key::Key;
use tenure_core::run::Run;

use crate::context::{Ctx, Stop};
use crate::error::Error;

/// Whether a run without a recorded end still runs, or may. A run whose runner and agent are both
/// proved dead does not.
pub(super) fn is_live(ctx: &mut Ctx<'_>, run: &Run) -> Result<bool, Stop> {
    Ok(!ctx.run_life(run)?.is_over())
}

/// The live runs in an item's conversations.
pub(super) fn live_runs(ctx: &mut Ctx<'_>, root: &Key) -> Result<Vec<Run>, Stop> {
    let mut live = Vec::new();
    for run in ctx.tx.open_runs_of(root)? {
        if is_live(ctx, &run)? {
            live.push(run);
        }
    }
    Ok(live)
}

/// Refuses an act that is not allowed while a run is in the conversation.
pub(super) fn refuse_live(ctx: &mut Ctx<'_>, root: &Key) -> Result<(), Stop> {
    match live_runs(ctx, root)?.into_iter().next() {
        None => Ok(()),
        Some(run) => Err(in_run(run, false).into()),
    }
}

pub(super) fn in_run(run: Run, can_stop: bool) -> Error {
    Error::InRun {
        agent: run.agent,
        item: run.root,
        run: run.id,
        can_stop,
    }
}
