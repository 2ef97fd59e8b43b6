//! Taking from the queue: which jobs may be taken, and taking one.

use std::collections::BTreeSet;

use tenure_core::event::EventKind;
use tenure_core::id::JobId;
use tenure_core::process::Process;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::choose::{Choice, HOUR, Limits, Load, choose, full_repo, sole_dir};
use tenure_core::queue::step::{Retry, Step, Taker};
use tenure_core::queue::{Job, JobEvent, JobState, Parked};
use tenure_core::run::Run;
use tenure_core::store::{Lock, TxMode, WaitingFilter};
use tenure_core::time::Timestamp;

use super::error::{JobAhead, QueueError};
use super::step::JobRef;
use super::view::JobView;
use crate::context::{Ctx, Stop};
use crate::error::Error;
use crate::run::budget::cost_of_day;
use crate::transact::{Reply, Service};

/// How many waiting jobs are read in one go, at least: usually the first ones can be taken.
const PAGE: usize = 8;
/// How many jobs are parked in one look.
const MAX_PARKED: usize = 64;

/// A worker's look at the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookForJobs {
    pub limits: Limits,
    /// Jobs whose runners it has started. They count as running.
    pub starting: Vec<JobId>,
    /// Jobs that it leaves alone for now.
    pub left_alone: Vec<JobId>,
}

impl LookForJobs {
    /// A look of who has started nothing.
    pub fn within(limits: Limits) -> Self {
        Self {
            limits,
            starting: Vec::new(),
            left_alone: Vec::new(),
        }
    }
}

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
pub struct WaitingJobs {
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
    /// The jobs that may be taken within these limits. Those over their caps are parked.
    pub fn waiting_jobs(&mut self, look: &LookForJobs) -> Reply<WaitingJobs> {
        self.transact(TxMode::Read, |ctx| waiting(ctx, look))
    }

    /// Takes a job for a runner.
    pub fn take_job(&mut self, request: &TakeJob) -> Reply<TakenJob> {
        self.transact(TxMode::Write, |ctx| take(ctx, request))
    }

    /// Returns a job whose agent was not started.
    pub fn give_back_job(&mut self, request: &GiveBack) -> Reply<JobView> {
        self.transact(TxMode::Write, |ctx| {
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

fn waiting(ctx: &mut Ctx<'_>, look: &LookForJobs) -> Result<WaitingJobs, Stop> {
    let now = ctx.now.wall;
    let taken = ctx.tx.taken_jobs()?;
    let mut chosen = still_waiting(ctx, &look.starting)?;
    let known = chosen.len();
    let mut parked = Vec::new();
    // Jobs whose directory is used: others may be behind them.
    let mut behind = BTreeSet::new();
    let mut filter = WaitingFilter {
        now,
        host: ctx.observer.host.clone(),
        without_repos: BTreeSet::new(),
        limit: 0,
    };
    let at_least = PAGE.max(look.limits.concurrency);
    loop {
        // What was chosen still waits and is read again.
        filter.limit = at_least + chosen.len() + look.left_alone.len() + behind.len();
        let page = ctx.tx.waiting_jobs(&filter)?;
        let is_last = page.len() < filter.limit;
        let before = chosen.len() + parked.len() + filter.without_repos.len() + behind.len();
        for job in page {
            let is_known = |other: &Job| other.id == job.id;
            if chosen.iter().any(is_known) || look.left_alone.contains(&job.id) {
                continue;
            }
            let load = load(ctx, &job, &taken, &chosen)?;
            if full_repo(&job, &load).is_some() {
                filter.without_repos.extend(job.repo.clone());
            }
            match choose(&job, &load, &look.limits, now) {
                Choice::Take => chosen.push(job),
                Choice::Wait { .. } if load.dir_in_use => {
                    behind.insert(job.id);
                }
                Choice::Wait { .. } => {}
                Choice::Park(why) => parked.push(park(ctx, &job, why)?),
            }
        }
        // Behind a page of jobs that were parked or wait for their repositories there may be others.
        let is_full = taken.len() + chosen.len() >= look.limits.concurrency;
        let after = chosen.len() + parked.len() + filter.without_repos.len() + behind.len();
        let is_same = before == after;
        if is_last || is_full || is_same || parked.len() >= MAX_PARKED {
            break;
        }
    }
    Ok(WaitingJobs {
        jobs: chosen.drain(known..).map(|job| job.id).collect(),
        next_at: ctx.tx.next_job_at(now)?,
        parked,
        takers: taken
            .into_iter()
            .filter_map(|job| job.taken)
            .map(|taken| taken.by)
            .collect(),
    })
}

/// Those of these jobs that no runner has taken yet.
fn still_waiting(ctx: &mut Ctx<'_>, ids: &[JobId]) -> Result<Vec<Job>, Stop> {
    let mut waiting = Vec::new();
    for id in ids {
        waiting.extend(ctx.tx.job(id)?.filter(Job::takes_events));
    }
    Ok(waiting)
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
        cost_of_day(ctx, &job.item)?
    } else {
        (0.0, None)
    };
    let begun = if job.spec.caps.runs_per_hour.is_some() {
        ctx.tx.runs_begun_since(&job.item, now.minus(HOUR))?
    } else {
        Vec::new()
    };
    let breaker = ctx.tx.breaker(&job.item)?;
    let dir = sole_dir(job);
    let mut dir_in_use = dir.is_some() && all().any(|other| sole_dir(other) == dir);
    if let (Some(dir), false) = (dir, dir_in_use) {
        dir_in_use = is_worked_in(ctx, dir)?;
    }
    let repository = match &job.repo {
        Some(name) => ctx.tx.identity(name)?,
        None => None,
    };
    Ok(Load {
        dir_in_use,
        running: all().count(),
        in_repo: in_repo.count(),
        begun,
        cost,
        cost_since,
        breaker: breaker.unwrap_or_else(|| Breaker::of(job.item.clone())),
        repository,
        away: None,
    })
}

/// Whether a live run has a directory, such as one that a person started there.
fn is_worked_in(ctx: &mut Ctx<'_>, dir: &str) -> Result<bool, Stop> {
    let host = ctx.observer.host.clone();
    for run in ctx.tx.open_runs_in(&host, dir)? {
        if !run.shares_dir && !ctx.run_life(&run)?.is_over() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same for one job, also with where its conversation is. What a look reads is here.
pub(super) fn whole_load(ctx: &mut Ctx<'_>, job: &Job) -> Result<Load, Stop> {
    let taken = ctx.tx.taken_jobs()?;
    let load = load(ctx, job, &taken, &[])?;
    let conversation = ctx.tx.conversation(&job.agent, &job.role, &job.root)?;
    let home = conversation.and_then(|record| record.current);
    let host = home.map(|current| current.home.host);
    Ok(Load {
        away: host.filter(|host| *host != ctx.observer.host),
        ..load
    })
}

fn take(ctx: &mut Ctx<'_>, request: &TakeJob) -> Result<TakenJob, Stop> {
    let job = ctx.job_of(&request.job)?;
    // Two that take jobs of different conversations at once would both count the same place as free.
    ctx.lock([Lock::Conversation(job.root.clone()), Lock::Queue])?;
    let not_yet = |why: String, until| {
        Stop::from(Error::from(QueueError::NotYet {
            job: job.id.clone(),
            why,
            until,
        }))
    };
    let others = ctx.tx.open_jobs_of(&job.agent, &job.role, &job.root)?;
    let is_taken = |other: &&Job| matches!(other.state, JobState::Starting | JobState::Begun);
    if let Some(other) = others.iter().find(is_taken) {
        let why = JobAhead::Running(other.id.clone()).to_string();
        return Err(not_yet(why, None));
    }
    if let Some(first) = others.first().filter(|first| first.id != job.id) {
        let why = JobAhead::Older(first.id.clone()).to_string();
        return Err(not_yet(why, None));
    }
    let load = whole_load(ctx, &job)?;
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
    let record = ctx.tx.conversation(&job.agent, &job.role, &job.root)?;
    let Some(current) = record.and_then(|record| record.current) else {
        return Ok(None);
    };
    match ctx.tx.newest_left(&job.agent, &current.native_id)? {
        Some((run, _)) => Ok(ctx.tx.run_by_id(&run)?),
        None => Ok(None),
    }
}
