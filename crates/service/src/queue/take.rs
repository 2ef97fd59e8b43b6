//! Taking from the queue: which jobs may be taken, and taking one.

use tenure_core::event::EventKind;
use tenure_core::id::JobId;
use tenure_core::process::Process;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::choose::{Choice, DAY, HOUR, Limits, Load, choose};
use tenure_core::queue::step::{Retry, Step, Taker};
use tenure_core::queue::{Job, JobEvent, JobState, Parked};
use tenure_core::run::Run;
use tenure_core::store::{Lock, Mode};
use tenure_core::time::Timestamp;

use super::error::QueueError;
use super::step::JobRef;
use super::view::JobView;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::transact::{Reply, Service};

/// How many waiting jobs are checked in one pass.
const LOOKED_AT: usize = 64;

/// A runner's request for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeJob {
    pub job: JobId,
    pub runner: Process,
    pub limits: Limits,
}

/// A job that was taken. No more events join it.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenJob {
    pub job: Job,
    pub of: JobRef,
    pub events: Vec<JobEvent>,
    /// The run that it continues, if it was parked in the middle of one.
    pub goes_on: Option<Run>,
    /// The newest run of its conversation, if it is a different one.
    pub last: Option<Run>,
    /// What is left of the item's budget for the day, in US dollars.
    pub budget_left: Option<f64>,
}

/// The jobs that may be taken now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Oldest first.
    pub jobs: Vec<JobId>,
    /// When to check again if nothing happens before.
    pub next_at: Option<Timestamp>,
    /// Jobs that this check parked, to be reported.
    pub parked: Vec<JobView>,
    /// The runners of the jobs that are running.
    pub takers: Vec<Process>,
}

/// A job that could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GiveBack {
    pub of: JobRef,
    pub runner: Process,
    pub why: String,
    pub retry: Retry,
}

impl Service<'_> {
    /// The jobs that may be taken within these limits. Jobs that exceed a cap are parked.
    pub fn waiting_jobs(&mut self, limits: &Limits) -> Reply<Waiting> {
        self.transact(Mode::Read, |ctx| waiting(ctx, limits))
    }

    /// Takes a job for a runner.
    pub fn take_job(&mut self, request: &TakeJob) -> Reply<TakenJob> {
        self.transact(Mode::Write, |ctx| take(ctx, request))
    }

    /// Returns a job whose agent was not started.
    pub fn give_back_job(&mut self, request: &GiveBack) -> Reply<JobView> {
        self.transact(Mode::Write, |ctx| {
            let job = ctx.job_of(&request.of.id)?;
            ctx.lock([Lock::Conversation(job.root.clone())])?;
            let step = Step::GiveBack {
                taker: Taker {
                    process: request.runner.clone(),
                    attempt: request.of.attempt,
                },
                why: request.why.clone(),
                retry: request.retry.clone(),
            };
            let kind = match request.retry {
                Retry::Cancel => EventKind::JobCancelled,
                _ => EventKind::JobReturned,
            };
            let job = ctx.job_step(&job, &step, kind, &request.why)?;
            ctx.job_view(&job)
        })
    }
}

fn waiting(ctx: &mut Ctx<'_>, limits: &Limits) -> Result<Waiting, Stop> {
    let now = ctx.now.wall;
    let taken = ctx.tx.taken_jobs()?;
    let mut jobs: Vec<Job> = Vec::new();
    let mut parked = Vec::new();
    for job in ctx.tx.waiting_jobs(now, LOOKED_AT)? {
        let load = load(ctx, &job, &taken, &jobs)?;
        match choose(&job, &load, limits, now) {
            Choice::Take => jobs.push(job),
            Choice::Wait { .. } => {}
            Choice::Park(why) => parked.push(park(ctx, &job, why)?),
        }
    }
    Ok(Waiting {
        jobs: jobs.into_iter().map(|job| job.id).collect(),
        next_at: ctx.tx.next_job_at(now)?,
        parked,
        takers: taken
            .into_iter()
            .filter_map(|job| job.taken)
            .map(|taken| taken.by)
            .collect(),
    })
}

fn park(ctx: &mut Ctx<'_>, job: &Job, parked: Parked) -> Result<JobView, Stop> {
    ctx.lock([Lock::Conversation(job.root.clone())])?;
    let why = parked.why.clone();
    let job = ctx.job_step(job, &Step::Park(parked), EventKind::JobParked, &why)?;
    ctx.job_view(&job)
}

/// The current load, including jobs that the same check has already chosen.
pub(super) fn load(
    ctx: &mut Ctx<'_>,
    job: &Job,
    taken: &[Job],
    chosen: &[Job],
) -> Result<Load, Stop> {
    let now = ctx.now.wall;
    let all = || taken.iter().chain(chosen);
    let in_repo = all().filter(|other| other.repo.is_some() && other.repo == job.repo);
    let (cost, cost_since) = if job.spec.caps.budget_per_day.is_some() {
        ctx.tx.cost_since(&job.item, now.minus(DAY))?
    } else {
        (0.0, None)
    };
    let begun = if job.spec.caps.runs_per_hour.is_some() {
        ctx.tx.runs_begun_since(&job.item, now.minus(HOUR))?
    } else {
        Vec::new()
    };
    let breaker = ctx.tx.breaker(&job.item)?;
    Ok(Load {
        running: all().count(),
        in_repo: in_repo.count(),
        begun,
        cost,
        cost_since,
        breaker: breaker.unwrap_or_else(|| Breaker::of(job.item.clone())),
    })
}

fn take(ctx: &mut Ctx<'_>, request: &TakeJob) -> Result<TakenJob, Stop> {
    let job = ctx.job_of(&request.job)?;
    ctx.lock([Lock::Conversation(job.root.clone())])?;
    let not_yet = |why: String, until| {
        Stop::from(Error::from(QueueError::NotYet {
            job: job.id.clone(),
            why,
            until,
        }))
    };
    let others = ctx.tx.open_jobs_of(&job.agent, &job.root)?;
    let is_taken = |other: &&Job| matches!(other.state, JobState::Starting | JobState::Begun);
    if let Some(other) = others.iter().find(is_taken) {
        let why = format!("job {} of the same conversation is running", other.id);
        return Err(not_yet(why, None));
    }
    if let Some(first) = others.first().filter(|first| first.id != job.id) {
        let why = format!("job {} of the same conversation is older", first.id);
        return Err(not_yet(why, None));
    }
    let taken = ctx.tx.taken_jobs()?;
    let load = load(ctx, &job, &taken, &[])?;
    match choose(&job, &load, &request.limits, ctx.now.wall) {
        Choice::Take => {}
        Choice::Wait { why, until } => return Err(not_yet(why, until)),
        Choice::Park(parked) => {
            let why = parked.why.clone();
            let until = parked.until;
            park(ctx, &job, parked)?;
            return Err(not_yet(why, until));
        }
    }
    let goes_on = match &job.run {
        Some(run) => ctx.tx.run_by_id(run)?,
        None => None,
    };
    let step = Step::Take(request.runner.clone());
    let why = format!("pid {}", request.runner.pid);
    let job = ctx.job_step(&job, &step, EventKind::JobTaken, &why)?;
    Ok(TakenJob {
        of: JobRef {
            id: job.id.clone(),
            attempt: job.attempt,
        },
        events: ctx.tx.job_events(&job.id)?,
        last: last_run(ctx, &job)?,
        budget_left: budget_left(&job, &load),
        goes_on,
        job,
    })
}

fn budget_left(job: &Job, load: &Load) -> Option<f64> {
    let most = job.spec.caps.budget_per_day?;
    Some((most - load.cost).max(0.0))
}

/// The newest run of a job's conversation.
fn last_run(ctx: &mut Ctx<'_>, job: &Job) -> Result<Option<Run>, Stop> {
    let record = ctx.tx.conversation(&job.agent, &job.root)?;
    let Some(current) = record.and_then(|record| record.current) else {
        return Ok(None);
    };
    match ctx.tx.newest_left(&job.agent, &current.native_id)? {
        Some((run, _)) => Ok(ctx.tx.run_by_id(&run)?),
        None => Ok(None),
    }
}
