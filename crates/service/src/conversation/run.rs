//! Whether a run is in a conversation.

use tenure_core::event::{EventKind, NewEvent};
use tenure_core::key::Key;
use tenure_core::liveness::Liveness;
use tenure_core::process::Process;
use tenure_core::run::{Run, StopAsked};
use tenure_core::store::Lock;

use crate::caller::Caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::evidence::Want;

/// Whether a run without a recorded end still runs, or may. One whose runner and agent are both proved dead
/// holds nothing.
pub(super) fn is_live(ctx: &mut Ctx<'_>, run: &Run) -> Result<bool, Stop> {
    if let Some(runner) = &run.runner
        && !is_dead(ctx, runner)?
    {
        return Ok(true);
    }
    let Some(token) = run.session else {
        return Ok(false);
    };
    let session = ctx.session(token.id)?;
    if session.life != token.life || !session.is_open() {
        return Ok(false);
    }
    match &session.process {
        Some(process) => Ok(!is_dead(ctx, process)?),
        None => Ok(true),
    }
}

fn is_dead(ctx: &Ctx<'_>, process: &Process) -> Result<bool, Stop> {
    let unseen = |process: Process| Stop::Look(Want::Processes(vec![process]));
    let seen = ctx.judged(process).map_err(unseen)?;
    Ok(matches!(seen, Liveness::Dead(_)))
}

/// The runs that are in an item's conversations.
pub(super) fn live_runs(ctx: &mut Ctx<'_>, root: &Key) -> Result<Vec<Run>, Stop> {
    let mut live = Vec::new();
    for run in ctx.tx.open_runs_of(root)? {
        if is_live(ctx, &run)? {
            live.push(run);
        }
    }
    Ok(live)
}

/// Refuses what must not happen under a run.
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

/// Records that a run is asked to stop; the first request stays.
pub(super) fn ask_to_stop(
    ctx: &mut Ctx<'_>,
    by: Option<&Caller>,
    run: &Run,
    why: &str,
) -> Result<(), Stop> {
    if run.stop.is_some() {
        return Ok(());
    }
    ctx.lock([Lock::Run(run.id.clone())])?;
    let asked_by = by.map(|caller| caller.actor.unwrap_or(caller.session.id));
    let mut asked = run.clone();
    asked.stop = Some(StopAsked {
        at: ctx.now.wall,
        by: asked_by,
        why: why.to_owned(),
    });
    ctx.tx.update_run(&asked)?;
    let session = run.session.map(|token| token.id);
    ctx.log(&NewEvent {
        actor: asked_by.filter(|by| Some(*by) != session),
        reason: by.and_then(Caller::reason_text),
        key: Some(run.item.clone()),
        ..ctx.event(
            EventKind::RunStopAsked,
            session,
            "conversation",
            format!("{}: {why}", run.id),
        )
    })
}
