//! Records one step of a job. Runs call this when they start, begin and end.

use tenure_core::dispatch::publish::ResultState;
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::JobId;
use tenure_core::process::Process;
use tenure_core::queue::breaker::Breaker;
use tenure_core::queue::step::{NotNow, Retry, Step, Taker, apply};
use tenure_core::queue::{Job, JobState, JobTaker};
use tenure_core::run::{Outcome, Run};
use tenure_core::store::Lock;
use tenure_core::time::Timestamp;

use super::error::QueueError;
use crate::context::{Ctx, Stop};
use crate::error::Error;

/// The job of a run, and the attempt for which the runner took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRef {
    pub id: JobId,
    pub attempt: u32,
}

impl JobRef {
    fn taker(&self, runner: &Process) -> Taker {
        Taker {
            process: runner.clone(),
            attempt: self.attempt,
        }
    }
}

impl Ctx<'_> {
    pub(crate) fn job_of(&mut self, id: &JobId) -> Result<Job, Stop> {
        let name = id.to_string();
        let missing = || Error::from(QueueError::NoSuchJob { name });
        Ok(self.tx.job(id)?.ok_or_else(missing)?)
    }

    /// Records a step. The caller has locked the job's conversation.
    pub(crate) fn job_step(
        &mut self,
        job: &Job,
        step: &Step,
        kind: EventKind,
        why: &str,
    ) -> Result<Job, Stop> {
        match apply(job, step, self.now.wall) {
            Ok(mut next) => {
                let latest = self.now.wall.plus(self.policy.retry_every);
                next.not_before = next.not_before.map(|at| at.min(latest));
                self.tx.update_job(&next)?;
                let evidence = format!("{}: {why}", job.id);
                self.log_job(&next, kind, evidence)?;
                Ok(Job {
                    revision: next.revision + 1,
                    ..next
                })
            }
            Err(NotNow::Late) => {
                let evidence = format!("{}: too late, nothing was changed ({why})", job.id);
                self.log_job(job, EventKind::JobLate, evidence)?;
                Err(late(job))
            }
            Err(NotNow::State(state)) => Err(wrong_state(job, state)),
        }
    }

    pub(crate) fn log_job(
        &mut self,
        job: &Job,
        kind: EventKind,
        evidence: String,
    ) -> Result<(), Stop> {
        self.log(&NewEvent {
            key: Some(job.item.clone()),
            ..self.event(kind, None, "queue", evidence)
        })
    }
}

fn late(job: &Job) -> Stop {
    Error::from(QueueError::Late {
        job: job.id.clone(),
    })
    .into()
}

fn wrong_state(job: &Job, state: JobState) -> Stop {
    Error::from(QueueError::WrongState {
        job: job.id.clone(),
        state,
        run: job.run.clone(),
    })
    .into()
}

/// Refuses a run if a later attempt has its job by now, before anything is written.
pub(crate) fn check(ctx: &mut Ctx<'_>, of: &JobRef, runner: &Process) -> Result<Job, Stop> {
    let job = ctx.job_of(&of.id)?;
    let step = Step::Begin(of.taker(runner));
    match apply(&job, &step, ctx.now.wall) {
        Ok(_) => Ok(job),
        Err(_) => Err(late(&job)),
    }
}

/// Records the run of a job.
pub(crate) fn started(ctx: &mut Ctx<'_>, of: &JobRef, run: &Run) -> Result<(), Stop> {
    let Some(runner) = &run.runner else {
        return Ok(());
    };
    let job = ctx.job_of(&of.id)?;
    let step = Step::Start(of.taker(runner), run.id.clone());
    let why = format!("run {}", run.id);
    ctx.job_step(&job, &step, EventKind::JobTaken, &why)
        .map(|_| ())
}

/// The locks that a step of a run's job needs.
pub(crate) fn locks(run: &Run) -> [Lock; 2] {
    [
        Lock::Conversation(run.root.clone()),
        Lock::Conversation(run.item.clone()),
    ]
}

/// The agent of a run was started: its job has begun, and counts towards the item's limit.
pub(crate) fn began(ctx: &mut Ctx<'_>, run: &Run) -> Result<(), Stop> {
    let Some((job, taker)) = taken_by(ctx, run)? else {
        return Ok(());
    };
    if job.state == JobState::Begun {
        // The second process of a run whose agent did not know its conversation.
        return Ok(());
    }
    let why = format!("run {}", run.id);
    let job = ctx.job_step(&job, &Step::Begin(taker), EventKind::JobBegun, &why)?;
    if job.rule.is_some() {
        let breaker = ctx.tx.breaker(&job.item)?;
        let breaker = breaker.unwrap_or_else(|| Breaker::of(job.item.clone()));
        ctx.tx.set_breaker(&breaker.after_run())?;
    }
    Ok(())
}

/// A run ended: its job ends with it, or is parked.
pub(crate) fn ended(
    ctx: &mut Ctx<'_>,
    run: &Run,
    (outcome, result): (Outcome, Option<&ResultState>),
    why: &str,
    parked_until: Option<Timestamp>,
) -> Result<(), Stop> {
    let Some((mut job, taker)) = taken_by(ctx, run)? else {
        return Ok(());
    };
    let is_taker = |taken: &JobTaker| taken.by.same_as(&taker.process);
    if !job.taken.as_ref().is_some_and(is_taker) {
        // Another runner has the job by now, so this run's end is recorded without it.
        let evidence = format!(
            "{}: too late, nothing was changed (run {} ended)",
            job.id, run.id
        );
        return ctx.log_job(&job, EventKind::JobLate, evidence);
    }
    if let Some(result) = result {
        super::publish::replace(ctx, &mut job, result)?;
    }
    let never_began = job.state == JobState::Starting && outcome != Outcome::Stopped;
    let (step, kind) = if never_began {
        let step = Step::GiveBack {
            taker,
            why: why.to_owned(),
            retry: Retry::Later,
        };
        (step, EventKind::JobReturned)
    } else {
        let step = Step::End {
            taker,
            outcome,
            why: why.to_owned(),
            parked_until,
        };
        let kind = match outcome {
            Outcome::Parked => EventKind::JobParked,
            _ => EventKind::JobEnded,
        };
        (step, kind)
    };
    let why = format!("run {}: {} ({why})", run.id, outcome.as_str());
    ctx.job_step(&job, &step, kind, &why).map(|_| ())
}

fn taken_by(ctx: &mut Ctx<'_>, run: &Run) -> Result<Option<(Job, Taker)>, Stop> {
    let Some(runner) = &run.runner else {
        return Ok(None);
    };
    let Some(job) = ctx.tx.taken_job_of_run(&run.id)? else {
        return Ok(None);
    };
    let taker = Taker {
        process: runner.clone(),
        attempt: job.attempt,
    };
    Ok(Some((job, taker)))
}
