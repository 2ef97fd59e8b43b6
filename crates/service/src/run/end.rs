//! The end of a run: recorded once, with its effect on the conversation and the agent.

use tenure_core::conversation::fitness::Left;
use tenure_core::dispatch::publish::ResultState;
use tenure_core::event::EventKind;
use tenure_core::id::{NativeId, RunId};
use tenure_core::run::{Outcome, Park, Run, RunEnd, Usage};
use tenure_core::session::{ClosedBy, EndKind};
use tenure_core::store::{Lock, TxMode};
use tenure_core::time::Timestamp;

use super::progress::log;
use super::view::RunView;
use crate::context::{Ctx, Stop};
use crate::conversation;
use crate::error::Error;
use crate::queue::step as queue;
use crate::transact::{Reply, Service};

use super::error::RunError;

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndRun {
    pub id: RunId,
    pub outcome: Outcome,
    /// The evidence, as a sentence.
    pub why: String,
    pub exit_code: Option<i32>,
    pub left: Left,
    /// The conversation at its end, if the agent named or resumed one.
    pub after: Option<NativeId>,
    pub usage: Usage,
    /// Until when its agent is parked on this host, and whether the provider named that time.
    pub parked: Option<(Timestamp, bool)>,
}

impl Service<'_> {
    /// Records the end of a run and of its session. An end that is already recorded is kept.
    pub fn end_run(&mut self, end: &EndRun) -> Reply<RunView> {
        self.end_run_with(end, None)
    }

    /// The same with what became of the result.
    pub fn end_run_with(&mut self, end: &EndRun, result: Option<&ResultState>) -> Reply<RunView> {
        self.transact(TxMode::Write, |ctx| {
            let run = ctx.run_of(&end.id)?;
            finish(ctx, run, end, result)
        })
    }

    /// The same for a caller other than its runner: only if runner and agent are both proved dead.
    pub fn end_dead_run(&mut self, end: &EndRun) -> Reply<RunView> {
        self.end_dead_run_with(end, None)
    }

    /// The same with what became of the result.
    pub fn end_dead_run_with(
        &mut self,
        end: &EndRun,
        result: Option<&ResultState>,
    ) -> Reply<RunView> {
        self.transact(TxMode::Write, |ctx| {
            let run = ctx.run_of(&end.id)?;
            if run.is_open() && !ctx.run_life(&run)?.is_over() {
                let state = "is still running".to_owned();
                return Err(Error::from(RunError::NotRunning { run: run.id, state }).into());
            }
            finish(ctx, run, end, result)
        })
    }
}

pub(super) fn finish(
    ctx: &mut Ctx<'_>,
    run: Run,
    end: &EndRun,
    result: Option<&ResultState>,
) -> Result<RunView, Stop> {
    if !run.is_open() {
        return ctx.run_view(&run);
    }
    let session = ctx.session_of_run(&run)?;
    let mut locks = Vec::new();
    if let Some(session) = &session {
        locks = ctx.locks_to_close(session.id)?;
    }
    locks.push(Lock::Conversation(run.root.clone()));
    locks.push(Lock::Run(run.id.clone()));
    ctx.lock(locks)?;
    let mut run = run;
    run.end = Some(RunEnd {
        at: ctx.now.wall,
        outcome: end.outcome,
        why: end.why.clone(),
        exit_code: end.exit_code,
        left: end.left,
        parked_until: end.parked.map(|(until, _)| until),
    });
    run.usage = end.usage;
    run.after = end.after.clone().or(run.after);
    ctx.update_run(&mut run)?;
    let evidence = format!("{}: {} ({})", run.id, end.outcome.as_str(), end.why);
    log(ctx, &run, EventKind::RunEnded, evidence)?;
    park(ctx, &run, end)?;
    let until = end.parked.map(|(until, _)| until);
    queue::ended(ctx, &run, (end.outcome, result), &end.why, until)?;
    if let Some(session) = session {
        let why = format!("run {} ended: {}", run.id, end.outcome.as_str());
        let kind = end.outcome.end_kind();
        let by = match kind {
            EndKind::CutOff => ClosedBy::Death,
            EndKind::Left | EndKind::Moved => ClosedBy::End,
        };
        ctx.close_as(&session, by, kind, &why, None, None)?;
    }
    conversation::settle(ctx, &run)?;
    ctx.run_view(&run)
}

/// A usage limit parks the agent on this host; a run that gets an answer unparks it.
fn park(ctx: &mut Ctx<'_>, run: &Run, end: &EndRun) -> Result<(), Stop> {
    if end.parked.is_some() || end.outcome == Outcome::Done {
        ctx.lock([Lock::Park(run.agent.clone(), run.host.clone())])?;
    }
    let before = ctx.tx.park(&run.agent, &run.host)?;
    let Some((until, named)) = end.parked else {
        if end.outcome == Outcome::Done && before.is_some() {
            ctx.tx.clear_park(&run.agent, &run.host)?;
        }
        return Ok(());
    };
    let unnamed = before.as_ref().map_or(0, |before| before.count);
    let park = Park {
        agent: run.agent.clone(),
        host: run.host.clone(),
        until,
        count: if named { 0 } else { unnamed.saturating_add(1) },
        why: end.why.clone(),
        run: run.id.clone(),
        at: ctx.now.wall,
    };
    Ok(ctx.tx.set_park(before.as_ref(), &park)?)
}
