//! Jobs whose runner is dead.

use tenure_core::event::EventKind;
use tenure_core::id::{JobId, RunId};
use tenure_core::liveness::Liveness;
use tenure_core::queue::step::{Retry, Step, Taker};
use tenure_core::queue::{Job, JobState};
use tenure_core::store::{Lock, TxMode};

use super::view::JobView;
use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};
use crate::unseen::Unseen;

/// The result of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Jobs that are queued again, because their agents were not started.
    pub returned: Vec<JobView>,
    /// Runs whose end must be recorded. Their jobs end with them.
    pub settle: Vec<RunId>,
    /// Jobs whose agents run on this machine.
    pub begun: Vec<(JobId, RunId)>,
}

impl Service<'_> {
    /// Returns the jobs of dead runners to the queue, and lists the runs whose end must be
    /// recorded.
    pub fn sweep_jobs(&mut self) -> Reply<Swept> {
        self.transact(TxMode::Read, sweep)
    }
}

fn sweep(ctx: &mut Ctx<'_>) -> Result<Swept, Stop> {
    let taken = ctx.tx.taken_jobs()?;
    let mut unseen = Unseen::default();
    let mut dead = Vec::new();
    let mut swept = Swept::default();
    for job in taken {
        let Some(taker) = &job.taken else { continue };
        if let (Some(run), JobState::Begun) = (&job.run, job.state)
            && taker.by.host == ctx.observer.host
        {
            swept.begun.push((job.id.clone(), run.clone()));
        }
        let seen = ctx.process_liveness(&taker.by);
        if let Some(Liveness::Dead(_)) = unseen.gather(seen)? {
            dead.push(job);
        }
    }
    unseen.look()?;
    for job in dead {
        // If it has a run, the run decides: its agent may be alive, and the ends of run and job are
        // recorded together.
        match (&job.run, job.state) {
            (Some(run), _) if is_open(ctx, run)? => swept.settle.push(run.clone()),
            (_, JobState::Starting) => swept.returned.push(give_back(ctx, &job)?),
            _ => {}
        }
    }
    Ok(swept)
}

fn is_open(ctx: &mut Ctx<'_>, run: &RunId) -> Result<bool, Stop> {
    Ok(ctx.tx.run_by_id(run)?.is_some_and(|run| run.is_open()))
}

fn give_back(ctx: &mut Ctx<'_>, job: &Job) -> Result<JobView, Stop> {
    ctx.lock([Lock::Conversation(job.root.clone())])?;
    let Some(taken) = &job.taken else {
        return ctx.job_view(job);
    };
    let why = "its runner died before it started the agent";
    let step = Step::GiveBack {
        taker: Taker {
            process: taken.by.clone(),
            attempt: job.attempt,
        },
        why: why.to_owned(),
        retry: Retry::Later,
    };
    let job = ctx.job_step(job, &step, EventKind::JobReturned, why)?;
    ctx.job_view(&job)
}
