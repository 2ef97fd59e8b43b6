//! Asking a run to stop, and what there is to stop.

use tenure_core::conversation::fitness::Left;
use tenure_core::id::RunId;
use tenure_core::liveness::Liveness;
use tenure_core::process::{Process, Survivor};
use tenure_core::reason::Reason;
use tenure_core::run::abandon::may_abandon;
use tenure_core::run::end::Stop as Cause;
use tenure_core::run::{Outcome, Run};
use tenure_core::store::{Lock, TxMode};

use super::end::{EndRun, finish};
use super::error::RunError;
use super::progress::open;
use super::view::RunView;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::live_run::{AskedBy, ask_to_stop};
use crate::transact::{Reply, Service};

/// A run that was asked to stop.
#[derive(Debug, Clone)]
pub struct Stoppable {
    pub run: RunView,
    /// Its runner, if alive. The runner stops the agent.
    pub runner: Option<Process>,
    /// Its agent, if alive.
    pub agent: Option<Process>,
}

/// Processes that carry a run's variable, apart from its agent.
#[derive(Debug, Clone, Default)]
pub struct RunProcesses {
    /// Those that only the run can have started.
    pub ours: Vec<(Process, Survivor)>,
    /// Those that are another session, or run below one. They are reported and left alone.
    pub others: Vec<Survivor>,
    /// Why the list may be incomplete, if it may be.
    pub doubt: Option<String>,
}

impl Service<'_> {
    /// Records a request to stop a run.
    pub fn ask_run_to_stop(&mut self, name: &str, why: &str) -> Reply<Stoppable> {
        self.record_stop(name, Cause::Asked, why)
    }

    /// Records that a run reached its time limit and is stopped.
    pub fn run_timed_out(&mut self, id: &RunId, why: &str) -> Reply<Stoppable> {
        self.record_stop(id.as_str(), Cause::TimedOut, why)
    }

    fn record_stop(&mut self, name: &str, cause: Cause, why: &str) -> Reply<Stoppable> {
        self.transact(TxMode::Write, |ctx| {
            let by = asked_by(ctx)?;
            let found = ctx.find_run(name)?;
            ctx.lock([Lock::Run(found.id.clone())])?;
            let run = open(ctx, &found.id)?;
            if run.host != ctx.observer.host {
                return Err(Error::from(RunError::OtherHost { run: run.id }).into());
            }
            let run = ask_to_stop(ctx, &run, by, cause, why)?;
            stoppable(ctx, &run)
        })
    }

    /// Ends a run that cannot be reached, because it is on another host or its processes cannot be
    /// seen. Its conversation and its directory become free. Refused for a run that is proved
    /// alive.
    pub fn abandon_run(&mut self, name: &str, reason: &Reason) -> Reply<RunView> {
        self.transact(TxMode::Write, |ctx| {
            let by = asked_by(ctx)?;
            let found = ctx.find_run(name)?;
            ctx.lock([Lock::Run(found.id.clone())])?;
            let run = open(ctx, &found.id)?;
            let life = ctx.run_life(&run)?;
            if !may_abandon(&life.runner, &life.agent) {
                return Err(Error::from(RunError::Reachable { run: run.id }).into());
            }
            let run = ask_to_stop(ctx, &run, by, Cause::Asked, reason.as_str())?;
            let end = EndRun {
                id: run.id.clone(),
                outcome: Outcome::Stopped,
                why: format!("abandoned: {reason}"),
                exit_code: None,
                left: Left::Sound,
                after: None,
                usage: run.usage,
                parked: None,
            };
            finish(ctx, run, &end, None)
        })
    }

    /// Whether a run was asked to stop, and why.
    pub fn run_stop_asked(&mut self, id: &RunId) -> Reply<Option<String>> {
        self.transact(TxMode::Read, |ctx| {
            let run = ctx.run_of(id)?;
            Ok(run.stop.map(|stop| stop.why))
        })
    }

    /// The processes that carry a run's variable now.
    pub fn run_processes(&mut self, id: &RunId) -> Reply<RunProcesses> {
        self.transact(TxMode::Read, |ctx| {
            let run = ctx.run_of(id)?;
            let found = ctx.run_survivors(&run)?;
            Ok(RunProcesses {
                ours: found.ours,
                others: found.others,
                doubt: found.doubt,
            })
        })
    }
}

fn asked_by(ctx: &mut Ctx<'_>) -> Result<AskedBy, Stop> {
    Ok(AskedBy {
        session: caller::identify(ctx)?.map(|caller| caller.session.id),
        reason: None,
    })
}

fn stoppable(ctx: &mut Ctx<'_>, run: &Run) -> Result<Stoppable, Stop> {
    let life = ctx.run_life(run)?;
    let lives = |liveness: &Liveness| !matches!(liveness, Liveness::Dead(_));
    Ok(Stoppable {
        run: ctx.run_view(run)?,
        runner: run.runner.clone().filter(|_| lives(&life.runner)),
        agent: life.process.filter(|_| lives(&life.agent)),
    })
}
