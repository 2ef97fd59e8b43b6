//! What people do to jobs.

use tenure_core::dispatch::Halt;
use tenure_core::event::EventKind;
use tenure_core::id::RunId;
use tenure_core::key::Key;
use tenure_core::queue::choose::{Choice, Limits, choose};
use tenure_core::queue::step::{Step, apply};
use tenure_core::queue::{Job, JobState, ParkedFor};
use tenure_core::store::{JobFilter, Lock, TxMode};
use tenure_core::time::Timestamp;

use super::accept::{believe, person_asked};
use super::error::QueueError;
use super::publish::decline;
use super::take::load;
use super::view::JobView;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

/// Which jobs a person means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhichJobs {
    /// Ids, or the beginnings of ids.
    pub named: Vec<String>,
    /// Those that wait for this item.
    pub item: Option<Key>,
    /// Those that are parked.
    pub all_parked: bool,
}

impl WhichJobs {
    pub fn one(name: &str) -> Self {
        Self {
            named: vec![name.to_owned()],
            ..Self::default()
        }
    }
}

impl Service<'_> {
    /// Cancels jobs that no runner has taken. A result that waits for a person is not published then.
    pub fn cancel_jobs(&mut self, which: &WhichJobs, why: &str) -> Reply<Vec<JobView>> {
        let step = Step::Cancel {
            why: why.to_owned(),
        };
        self.transact(TxMode::Write, move |ctx| {
            caller::identify(ctx)?;
            let mut cancelled = Vec::new();
            for job in selected(ctx, which)? {
                let job = if job.unpublished.is_some() {
                    decline(ctx, &job, why)?
                } else {
                    ctx.job_step(&job, &step, EventKind::JobCancelled, why)?
                };
                cancelled.push(ctx.job_view(&job)?);
            }
            Ok(cancelled)
        })
    }

    /// Makes jobs that wait for a time or for a person available now. One that is named and would be parked again at
    /// once is refused; others stay as they are.
    pub fn retry_jobs(&mut self, which: &WhichJobs) -> Reply<Vec<JobView>> {
        self.transact(TxMode::Write, |ctx| {
            caller::identify(ctx)?;
            let mut retried = Vec::new();
            for job in selected(ctx, which)? {
                match retry(ctx, &job) {
                    Err(Stop::Refuse(_)) if which.named.is_empty() => {
                        retried.push(ctx.job_view(&job)?);
                    }
                    view => retried.push(view?),
                }
            }
            Ok(retried)
        })
    }

    /// Cancels the waiting jobs of a closed item.
    pub fn cancel_jobs_of(&mut self, item: &Key, why: &str) -> Reply<Vec<JobView>> {
        self.transact(TxMode::Write, |ctx| cancel_all(ctx, item, why))
    }

    /// Cancels the jobs of an item whose agents have not started; of these rules if any are named. Returns the runs of
    /// the others.
    pub fn halt_jobs_of(&mut self, halt: &Halt) -> Reply<Vec<RunId>> {
        self.transact(TxMode::Write, |ctx| halt_all(ctx, halt))
    }
}

fn halt_all(ctx: &mut Ctx<'_>, halt: &Halt) -> Result<Vec<RunId>, Stop> {
    let mut jobs = ctx.tx.open_jobs_for(&halt.item)?;
    jobs.retain(|job| match (&halt.rules, &job.rule) {
        (Some(named), Some(rule)) => named.contains(rule),
        (None, Some(_)) => true,
        // A person asked for it on a machine, and stops it there.
        (_, None) => false,
    });
    ctx.lock(jobs.iter().map(|job| Lock::Conversation(job.root.clone())))?;
    let step = Step::Halt {
        why: halt.why.clone(),
    };
    let mut running = Vec::new();
    for job in &jobs {
        if job.state == JobState::Begun {
            running.extend(job.run.clone());
        } else {
            ctx.job_step(job, &step, EventKind::JobCancelled, &halt.why)?;
        }
    }
    Ok(running)
}

/// The jobs that are meant, under their locks.
fn selected(ctx: &mut Ctx<'_>, which: &WhichJobs) -> Result<Vec<Job>, Stop> {
    let mut jobs = Vec::new();
    for name in &which.named {
        jobs.push(ctx.find_job(name)?);
    }
    if which.item.is_some() || which.all_parked {
        let filter = JobFilter {
            item: which.item.clone(),
            open: true,
            readable_only: true,
            ..JobFilter::default()
        };
        let waits = |job: &Job| {
            if which.all_parked {
                job.state == JobState::Parked
            } else {
                job.takes_events()
            }
        };
        let found = ctx.tx.list_jobs(&filter)?;
        jobs.extend(found.into_iter().filter(waits));
    }
    jobs.sort_by(|a, b| (a.created_at, a.id.as_str()).cmp(&(b.created_at, b.id.as_str())));
    jobs.dedup_by(|a, b| a.id == b.id);
    let keys = jobs.iter().flat_map(|job| [&job.root, &job.item]);
    ctx.lock(keys.map(|key| Lock::Conversation(key.clone())))?;
    Ok(jobs)
}

fn retry(ctx: &mut Ctx<'_>, job: &Job) -> Result<JobView, Stop> {
    let parked = job.parked.as_ref().map(|parked| parked.reason);
    if let Some(reason @ (ParkedFor::Breaker | ParkedFor::Repository)) = parked {
        let is_breaker = reason == ParkedFor::Breaker;
        if caller::is_agents(ctx)? {
            let what = if is_breaker {
                "the breaker parked it"
            } else {
                "its repository may be another one"
            };
            let why = format!("{what}, and only a person can retry it");
            return Err(not_yet(job, why, None));
        }
        // Other jobs of the item or of the repository may have been retried with it.
        if is_breaker {
            person_asked(ctx, &job.item)?;
        } else {
            believe(ctx, job)?;
        }
        let job = ctx.job_of(&job.id)?;
        return ctx.job_view(&job);
    }
    if let Ok(next) = apply(job, &Step::Retry, ctx.now.wall) {
        let load = load(ctx, &next, &[], &[])?;
        let limits = Limits {
            concurrency: usize::MAX,
        };
        if let Choice::Park(parked) = choose(&next, &load, &limits, ctx.now.wall) {
            return Err(not_yet(job, parked.why, parked.until));
        }
    }
    let job = ctx.job_step(job, &Step::Retry, EventKind::JobQueued, "retried")?;
    ctx.job_view(&job)
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
