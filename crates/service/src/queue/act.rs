//! What people do to jobs.

use tenure_core::event::EventKind;
use tenure_core::key::Key;
use tenure_core::queue::choose::{Choice, Limits, choose};
use tenure_core::queue::step::Step;
use tenure_core::queue::{Job, ParkedFor};
use tenure_core::store::{Lock, Mode};
use tenure_core::time::Timestamp;

use super::accept::person_asked;
use super::error::QueueError;
use super::take::load;
use super::view::JobView;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

impl Service<'_> {
    /// Cancels a job that no runner has taken.
    pub fn cancel_job(&mut self, name: &str, why: &str) -> Reply<JobView> {
        let step = Step::Cancel {
            why: why.to_owned(),
        };
        self.change_job(name, step, EventKind::JobCancelled, why)
    }

    /// Makes a job that waits for a time or for a person available now. Refused if it would be
    /// parked again at once.
    pub fn retry_job(&mut self, name: &str) -> Reply<JobView> {
        self.transact(Mode::Write, |ctx| {
            caller::anybody(ctx)?;
            retry(ctx, name)
        })
    }

    fn change_job(&mut self, name: &str, step: Step, kind: EventKind, why: &str) -> Reply<JobView> {
        self.transact(Mode::Write, move |ctx| {
            caller::anybody(ctx)?;
            let job = ctx.find_job(name)?;
            ctx.lock([Lock::Conversation(job.root.clone())])?;
            let job = ctx.job_step(&job, &step, kind, why)?;
            ctx.job_view(&job)
        })
    }

    /// Cancels the waiting jobs of a closed item.
    pub fn cancel_jobs_of(&mut self, item: &Key, why: &str) -> Reply<Vec<JobView>> {
        self.transact(Mode::Write, |ctx| cancel_all(ctx, item, why))
    }
}

fn retry(ctx: &mut Ctx<'_>, name: &str) -> Result<JobView, Stop> {
    let job = ctx.find_job(name)?;
    let roots = [&job.root, &job.item].map(|key| Lock::Conversation(key.clone()));
    ctx.lock(roots)?;
    let parked = job.parked.as_ref().map(|parked| parked.reason);
    if parked == Some(ParkedFor::Breaker) {
        if caller::is_agents(ctx)? {
            let why = "the breaker parked it, and only a person can retry it".to_owned();
            return Err(not_yet(&job, why, None));
        }
        person_asked(ctx, &job.item)?;
        let job = ctx.job_of(&job.id)?;
        return ctx.job_view(&job);
    }
    let job = ctx.job_step(&job, &Step::Retry, EventKind::JobQueued, "retried")?;
    let load = load(ctx, &job, &[], &[])?;
    let limits = Limits {
        concurrency: usize::MAX,
    };
    match choose(&job, &load, &limits, ctx.now.wall) {
        Choice::Park(parked) => Err(not_yet(&job, parked.why, parked.until)),
        _ => ctx.job_view(&job),
    }
}

fn not_yet(job: &Job, why: String, until: Option<Timestamp>) -> Stop {
    let job = job.id.clone();
    Error::from(QueueError::NotYet { job, why, until }).into()
}

fn cancel_all(ctx: &mut Ctx<'_>, item: &Key, why: &str) -> Result<Vec<JobView>, Stop> {
    let jobs = ctx.tx.open_jobs_for(item)?;
    ctx.lock(jobs.iter().map(|job| Lock::Conversation(job.root.clone())))?;
    let step = Step::Cancel {
        why: why.to_owned(),
    };
    let mut cancelled = Vec::new();
    for job in jobs.iter().filter(|job| job.takes_events()) {
        if other_item_asks(ctx, job)? {
            continue;
        }
        let job = ctx.job_step(job, &step, EventKind::JobCancelled, why)?;
        cancelled.push(ctx.job_view(&job)?);
    }
    Ok(cancelled)
}

/// Whether an event of another item that is still open joined a job.
fn other_item_asks(ctx: &mut Ctx<'_>, job: &Job) -> Result<bool, Stop> {
    for event in ctx.tx.job_events(&job.id)? {
        let Some(delivery) = event.delivery else {
            continue;
        };
        let item = ctx.tx.delivery(delivery)?.and_then(|known| known.item);
        if let Some(item) = item.filter(|item| *item != job.item)
            && ctx
                .tx
                .item_state(&item)?
                .is_none_or(|state| state.closed_at.is_none())
        {
            return Ok(true);
        }
    }
    Ok(false)
}
