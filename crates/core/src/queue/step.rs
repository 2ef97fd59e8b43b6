//! How a job changes: the whole state machine, pure.
//!
//! A step of a taker names its process and the attempt it was given. If another one has the job by now, the
//! step is [`NotNow::Late`]: it changes nothing, and the caller logs it.

use std::time::Duration;

use super::record::{Job, JobEnd, JobState, JobTaker, Parked, ParkedFor};
use crate::id::RunId;
use crate::process::Process;
use crate::run::Outcome;
use crate::time::Timestamp;

/// How often in a row a job may be taken without its agent starting.
pub const MAX_FAILURES: u32 = 6;

/// Who has taken a job, and the attempt that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taker {
    pub process: Process,
    pub attempt: u32,
}

/// One change of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A runner takes it.
    Take(Process),
    /// Its run is recorded; the agent waits to be started.
    Start(Taker, RunId),
    /// The agent is started.
    Begin(Taker),
    /// It could not be started, or its runner died before it started the agent.
    GiveBack {
        taker: Taker,
        why: String,
        /// Whether another attempt can have another result.
        retry: Retry,
    },
    /// Its run ended.
    End {
        taker: Taker,
        outcome: Outcome,
        why: String,
        /// Until when its agent waits for its usage limit.
        parked_until: Option<Timestamp>,
    },
    /// It waits before it is taken.
    Park(Parked),
    Cancel {
        why: String,
    },
    /// A person stops its item. A runner that has taken it does not get to start its agent.
    Halt {
        why: String,
    },
    /// A person wants it to be tried again now.
    Retry,
    /// A new event asks for it: what was put off is tried again at once. What waits for a time or a person stays so.
    Wake,
}

/// What becomes of a job that did not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retry {
    /// Later, the more often it failed the later.
    Later,
    /// As soon as it may be taken.
    Again,
    /// Later, however often: someone else uses what it needs.
    InUse,
    /// Later, however often: a remote, a forge or a disk is away, which is not the job's fault.
    Away,
    /// When a person has done something about it.
    Never(ParkedFor),
    /// At this time.
    At(ParkedFor, Timestamp),
    /// Not at all: what was asked for is no longer permitted.
    Cancel,
}

/// Why a step changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotNow {
    /// Another attempt has the job, or it is over.
    Late,
    /// The state does not allow it.
    State(JobState),
}

/// The job after a step.
pub fn apply(job: &Job, step: &Step, now: Timestamp) -> Result<Job, NotNow> {
    let mut next = job.clone();
    match step {
        Step::Take(process) => {
            if !job.takes_events() {
                return Err(NotNow::State(job.state));
            }
            next.state = JobState::Starting;
            next.attempt = job.attempt.saturating_add(1);
            next.parked = None;
            next.not_before = None;
            next.taken = Some(JobTaker {
                by: process.clone(),
                at: now,
            });
        }
        Step::Start(taker, run) => {
            expect(job, taker, &[JobState::Starting])?;
            next.run = Some(run.clone());
        }
        Step::Begin(taker) => {
            expect(job, taker, &[JobState::Starting])?;
            next.state = JobState::Begun;
            next.failures = 0;
            next.failure = None;
        }
        Step::GiveBack { taker, why, retry } => {
            expect(job, taker, &[JobState::Starting])?;
            give_back(&mut next, why, retry, now);
        }
        Step::End {
            taker,
            outcome,
            why,
            parked_until,
        } => {
            expect(job, taker, &[JobState::Starting, JobState::Begun])?;
            end(&mut next, *outcome, why, *parked_until, now);
        }
        Step::Park(parked) => {
            if !job.takes_events() {
                return Err(NotNow::State(job.state));
            }
            next.state = JobState::Parked;
            next.parked = Some(parked.clone());
        }
        Step::Cancel { why } => {
            if !job.takes_events() {
                return Err(NotNow::State(job.state));
            }
            cancel(&mut next, why, now);
        }
        Step::Halt { why } => {
            if !job.takes_events() && job.state != JobState::Starting {
                return Err(NotNow::State(job.state));
            }
            next.taken = None;
            cancel(&mut next, why, now);
        }
        Step::Retry => {
            let waits = job.state == JobState::Parked
                || job.state == JobState::Queued && job.not_before.is_some();
            if !waits {
                return Err(NotNow::State(job.state));
            }
            back_in_line(&mut next);
            next.failures = 0;
        }
        Step::Wake => {
            if !job.takes_events() {
                return Err(NotNow::State(job.state));
            }
            next.not_before = None;
        }
    }
    Ok(next)
}

/// The same attempt of the same process, in one of these states.
fn expect(job: &Job, taker: &Taker, states: &[JobState]) -> Result<(), NotNow> {
    let is_taker = |taken: &JobTaker| taken.by.same_as(&taker.process);
    let is_this = job.attempt == taker.attempt && job.taken.as_ref().is_some_and(is_taker);
    if is_this && states.contains(&job.state) {
        Ok(())
    } else {
        Err(NotNow::Late)
    }
}

fn back_in_line(job: &mut Job) {
    job.state = JobState::Queued;
    job.taken = None;
    job.parked = None;
    job.not_before = None;
}

fn cancel(job: &mut Job, why: &str, now: Timestamp) {
    job.state = JobState::Cancelled;
    job.parked = None;
    job.end = Some(JobEnd {
        at: now,
        outcome: None,
        why: why.to_owned(),
    });
}

fn give_back(job: &mut Job, why: &str, retry: &Retry, now: Timestamp) {
    back_in_line(job);
    job.failure = Some(why.to_owned());
    let parked = match retry {
        Retry::Again => None,
        Retry::Later | Retry::InUse | Retry::Away => {
            job.failures = job.failures.saturating_add(1);
            job.not_before = Some(now.plus(back_off(job.failures, retry)));
            let is_last = *retry == Retry::Later && job.failures >= MAX_FAILURES;
            is_last.then_some((ParkedFor::Attempts, None))
        }
        Retry::Never(reason) => Some((*reason, None)),
        Retry::At(reason, until) => Some((*reason, Some(*until))),
        Retry::Cancel => {
            cancel(job, why, now);
            None
        }
    };
    if let Some((reason, until)) = parked {
        job.state = JobState::Parked;
        job.not_before = None;
        job.parked = Some(Parked {
            reason,
            until,
            why: why.to_owned(),
        });
    }
}

/// 10 s, doubling to 5 min; 1 s, doubling to 30 s, for what someone else uses.
fn back_off(failures: u32, retry: &Retry) -> Duration {
    let (first, most) = if *retry == Retry::InUse {
        (1_u64, 30)
    } else {
        (10, 300)
    };
    let seconds = first << failures.saturating_sub(1).min(6);
    Duration::from_secs(seconds.min(most))
}

fn end(
    job: &mut Job,
    outcome: Outcome,
    why: &str,
    parked_until: Option<Timestamp>,
    now: Timestamp,
) {
    if let (Outcome::Parked, Some(until)) = (outcome, parked_until) {
        job.state = JobState::Parked;
        job.taken = None;
        job.parked = Some(Parked {
            reason: ParkedFor::Limit,
            until: Some(until),
            why: why.to_owned(),
        });
        return;
    }
    job.state = JobState::Ended;
    job.taken = None;
    job.end = Some(JobEnd {
        at: now,
        outcome: Some(outcome),
        why: why.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HostId;
    use crate::process::{BootId, StartTicks};
    use crate::queue::job_for_tests::job;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn runner(pid: u32) -> Process {
        Process {
            host: HostId::new("h".to_owned()),
            boot: BootId {
                id: "b".to_owned(),
                private: false,
            },
            pid_ns: 1,
            pid,
            start: StartTicks {
                ticks: u64::from(pid),
                shifted: false,
            },
        }
    }

    fn taken(pid: u32) -> (Job, Taker) {
        let job = apply(&job(NOW), &Step::Take(runner(pid)), NOW).unwrap();
        let taker = Taker {
            process: runner(pid),
            attempt: job.attempt,
        };
        (job, taker)
    }

    fn ends(taker: &Taker, outcome: Outcome, parked_until: Option<Timestamp>) -> Step {
        Step::End {
            taker: taker.clone(),
            outcome,
            why: "so".to_owned(),
            parked_until,
        }
    }

    fn gives_back(taker: &Taker, retry: Retry) -> Step {
        Step::GiveBack {
            taker: taker.clone(),
            why: "so".to_owned(),
            retry,
        }
    }

    #[test]
    fn a_job_runs_once_to_its_end() {
        let (job, taker) = taken(1);
        let job = apply(&job, &Step::Begin(taker.clone()), NOW).unwrap();
        let job = apply(&job, &ends(&taker, Outcome::Failed, None), NOW).unwrap();
        assert_eq!(job.state, JobState::Ended);
        for step in [
            Step::Take(runner(2)),
            Step::Retry,
            Step::Cancel { why: String::new() },
        ] {
            assert_eq!(apply(&job, &step, NOW), Err(NotNow::State(JobState::Ended)));
        }
        assert_eq!(
            apply(&job, &ends(&taker, Outcome::Done, None), NOW),
            Err(NotNow::Late)
        );
    }

    /// What a rescue by id alone gets wrong: the old attempt reports after a new one began.
    #[test]
    fn f_r01_a_late_result_of_an_old_attempt_changes_nothing() {
        let (job, old) = taken(1);
        let job = apply(&job, &gives_back(&old, Retry::Again), NOW).unwrap();
        let job = apply(&job, &Step::Take(runner(2)), NOW).unwrap();
        for step in [
            Step::Begin(old.clone()),
            gives_back(&old, Retry::Later),
            ends(&old, Outcome::Done, None),
        ] {
            assert_eq!(apply(&job, &step, NOW), Err(NotNow::Late));
        }
        // The same process cannot speak for a later attempt either.
        let again = Taker {
            attempt: job.attempt,
            ..old
        };
        assert_eq!(apply(&job, &Step::Begin(again), NOW), Err(NotNow::Late));
    }

    #[test]
    fn a_begun_job_is_never_given_back() {
        let (job, taker) = taken(1);
        let job = apply(&job, &Step::Begin(taker.clone()), NOW).unwrap();
        for retry in [Retry::Again, Retry::Later] {
            let step = gives_back(&taker, retry);
            assert_eq!(apply(&job, &step, NOW), Err(NotNow::Late));
        }
    }

    #[test]
    fn a_job_that_cannot_start_waits_longer_each_time_and_then_for_a_person() {
        let mut job = job(NOW);
        let mut waits = Vec::new();
        for pid in 1..=MAX_FAILURES {
            job = apply(&job, &Step::Take(runner(pid)), NOW).unwrap();
            let taker = Taker {
                process: runner(pid),
                attempt: job.attempt,
            };
            job = apply(&job, &gives_back(&taker, Retry::Later), NOW).unwrap();
            waits.extend(job.not_before.map(|at| NOW.age_at(at).as_secs()));
        }
        assert_eq!(waits, [10, 20, 40, 80, 160]);
        let parked = job.parked.as_ref().unwrap();
        assert_eq!((parked.reason, parked.until), (ParkedFor::Attempts, None));
        let job = apply(&job, &Step::Retry, NOW).unwrap();
        assert_eq!((job.state, job.failures), (JobState::Queued, 0));
    }

    #[test]
    fn while_something_is_away_a_job_is_tried_without_end_and_a_new_event_wakes_it() {
        let mut job = job(NOW);
        for pid in 1..=100 {
            job = apply(&job, &Step::Take(runner(pid)), NOW).unwrap();
            let taker = Taker {
                process: runner(pid),
                attempt: job.attempt,
            };
            job = apply(&job, &gives_back(&taker, Retry::Away), NOW).unwrap();
            assert_eq!((job.state, &job.parked), (JobState::Queued, &None));
            let wait = NOW.age_at(job.not_before.unwrap());
            assert!(wait <= Duration::from_secs(300), "{wait:?}");
        }
        let job = apply(&job, &Step::Wake, NOW).unwrap();
        assert_eq!((job.state, job.not_before), (JobState::Queued, None));
        let until = Parked {
            reason: ParkedFor::Cap,
            until: Some(NOW),
            why: "enough".to_owned(),
        };
        let parked = apply(&job, &Step::Park(until), NOW).unwrap();
        let woken = apply(&parked, &Step::Wake, NOW).unwrap();
        assert_eq!(woken.parked, parked.parked, "a cap stays");
    }

    #[test]
    fn a_start_that_is_no_longer_permitted_ends_the_job() {
        let (job, taker) = taken(1);
        let job = apply(&job, &gives_back(&taker, Retry::Cancel), NOW).unwrap();
        assert_eq!((job.state, &job.taken), (JobState::Cancelled, &None));
        let end = job.end.as_ref().unwrap();
        assert_eq!((end.outcome, end.why.as_str()), (None, "so"));
        let refused = Err(NotNow::State(JobState::Cancelled));
        assert_eq!(apply(&job, &Step::Take(runner(2)), NOW), refused);
        assert_eq!(apply(&job, &Step::Retry, NOW), refused);
    }

    #[test]
    fn f_r21_a_usage_limit_parks_a_job_with_its_time() {
        let (job, taker) = taken(1);
        let job = apply(&job, &Step::Begin(taker.clone()), NOW).unwrap();
        let until = Timestamp(9_000_000);
        let job = apply(&job, &ends(&taker, Outcome::Parked, Some(until)), NOW).unwrap();
        assert_eq!(job.state, JobState::Parked);
        assert_eq!(job.parked.as_ref().unwrap().until, Some(until));
        assert!(job.takes_events());
        let job = apply(&job, &Step::Take(runner(2)), NOW).unwrap();
        assert_eq!((job.state, job.attempt), (JobState::Starting, 2));
    }

    #[test]
    fn only_what_no_one_has_is_cancelled() {
        let step = Step::Cancel {
            why: "closed".to_owned(),
        };
        let cancelled = apply(&job(NOW), &step, NOW).unwrap();
        assert_eq!(cancelled.state, JobState::Cancelled);
        let (job, _) = taken(1);
        let refused = Err(NotNow::State(JobState::Starting));
        assert_eq!(apply(&job, &step, NOW), refused);
    }
}
