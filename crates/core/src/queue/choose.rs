//! Which job may be taken now.
//!
//! Of a conversation only the oldest job is considered. A cap, a budget, the breaker or a doubt about its repository parks a job before
//! anything is started for it; a full house only makes it wait.

use std::time::Duration;

use super::breaker::Breaker;
use super::identity::Identity;
use super::record::{Job, JobState, Parked, ParkedFor};
use crate::id::HostId;
use crate::time::{DAY, Timestamp};

/// How much may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub concurrency: usize,
}

/// What is running, and what an item has used.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Jobs that are starting or begun.
    pub running: usize,
    /// The same in the job's repository.
    pub in_repo: usize,
    /// When runs of the item began within the last hour, the oldest first.
    pub begun: Vec<Timestamp>,
    /// What runs of the item cost within the last day, and when the oldest of them began.
    pub cost: f64,
    pub cost_since: Option<Timestamp>,
    pub breaker: Breaker,
    /// Whether a job that is starting or begun, or any other run, has its directory.
    pub dir_in_use: bool,
    /// Its repository, where the id of that is known.
    pub repository: Option<Identity>,
    /// The host that has its conversation, if that is another one.
    pub away: Option<HostId>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    Take,
    /// Not now; why, and when to look again if a clock decides that.
    Wait {
        why: String,
        until: Option<Timestamp>,
    },
    Park(Parked),
}

pub const HOUR: Duration = Duration::from_secs(3_600);

/// Whether a job may be taken.
pub fn choose(job: &Job, load: &Load, limits: &Limits, now: Timestamp) -> Choice {
    match job.state {
        JobState::Queued => {}
        JobState::Parked => match &job.parked {
            Some(Parked {
                until: Some(until), ..
            }) if *until <= now => {}
            parked => {
                let why = parked.as_ref().map_or("it is parked", |parked| &parked.why);
                return wait(why, parked.as_ref().and_then(|parked| parked.until));
            }
        },
        JobState::Starting => return wait("it is starting", None),
        JobState::Begun => return wait("it is running", None),
        JobState::Ended => return wait("it has ended", None),
        JobState::Cancelled => return wait("it was cancelled", None),
    }
    if let Some(at) = job.not_before.filter(|at| *at > now) {
        return wait("it could not be started and will be tried again", Some(at));
    }
    if let Some(host) = load.away.as_ref().filter(|_| !job.spec.fresh) {
        let why =
            format!("its conversation is on host {host}, and only a dispatcher there can run it");
        return wait(&why, None);
    }
    if let Some(parked) = parks(job, load, now) {
        return Choice::Park(parked);
    }
    if load.running >= limits.concurrency {
        let why = format!("{} jobs are running, the most allowed", load.running);
        return wait(&why, None);
    }
    if load.dir_in_use {
        return wait("another run works in its directory", None);
    }
    if let Some(most) = full_repo(job, load) {
        return wait(
            &format!("{most} jobs of its repository are running, the most allowed"),
            None,
        );
    }
    Choice::Take
}

/// The directory that no other job may work in at the same time. A place or a worktree is a job's own.
pub fn sole_dir(job: &Job) -> Option<&str> {
    let spec = &job.spec;
    let shares = spec.dispatched || spec.workdir.worktree || spec.shares_dir;
    (!shares).then_some(spec.workdir.dir.as_str())
}

/// How many jobs of its repository may run at once, if that many run.
pub fn full_repo(job: &Job, load: &Load) -> Option<u32> {
    let per_repo = job.spec.caps.per_repo;
    per_repo.filter(|most| load.in_repo >= *most as usize)
}

fn wait(why: &str, until: Option<Timestamp>) -> Choice {
    Choice::Wait {
        why: why.to_owned(),
        until,
    }
}

fn runs(count: usize) -> String {
    match count {
        1 => "1 run".to_owned(),
        more => format!("{more} runs"),
    }
}

fn parks(job: &Job, load: &Load, now: Timestamp) -> Option<Parked> {
    if let Some(why) = load.repository.as_ref().and_then(Identity::why) {
        return Some(Parked {
            reason: ParkedFor::Repository,
            until: None,
            why,
        });
    }
    let caps = &job.spec.caps;
    if load.breaker.is_open(caps.breaker) {
        return Some(Parked {
            reason: ParkedFor::Breaker,
            until: None,
            why: format!(
                "{} of {} since a person last asked",
                runs(usize::try_from(load.breaker.runs).unwrap_or(usize::MAX)),
                job.item
            ),
        });
    }
    let lately = |at: &&Timestamp| at.age_at(now) < HOUR;
    let count = load.begun.iter().filter(lately).count();
    if let Some(most) = caps.runs_per_hour
        && count >= usize::try_from(most).unwrap_or(usize::MAX)
    {
        let oldest = load.begun.iter().find(|at| at.age_at(now) < HOUR);
        return Some(Parked {
            reason: ParkedFor::Cap,
            until: Some(oldest.copied().unwrap_or(now).plus(HOUR)),
            why: format!(
                "{} of {} began within an hour, the most allowed",
                runs(count),
                job.item
            ),
        });
    }
    if let Some(most) = caps.budget_per_day
        && load.cost >= most
    {
        return Some(Parked {
            reason: ParkedFor::Budget,
            until: Some(load.cost_since.unwrap_or(now).plus(DAY)),
            why: format!(
                "runs of {} cost ${:.2} within a day; the budget is ${most:.2}",
                job.item, load.cost
            ),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::queue::Caps;
    use crate::queue::identity::SeenRepository;
    use crate::queue::job_for_tests as sample;

    const NOW: Timestamp = Timestamp(100_000_000);
    const LIMITS: Limits = Limits { concurrency: 2 };

    fn job(caps: Caps) -> Job {
        let mut job = sample::job(NOW);
        job.repo = Some("acme/web".to_owned());
        job.spec.caps = caps;
        job
    }

    fn idle() -> Load {
        Load {
            running: 0,
            in_repo: 0,
            begun: Vec::new(),
            cost: 0.0,
            cost_since: None,
            breaker: Breaker::of(Key::stored("issue:acme/web#6").unwrap()),
            dir_in_use: false,
            repository: None,
            away: None,
        }
    }

    #[track_caller]
    fn parked(job: &Job, load: &Load) -> (ParkedFor, Option<Timestamp>) {
        match choose(job, load, &LIMITS, NOW) {
            Choice::Park(parked) => (parked.reason, parked.until),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_cap_for_an_hour_parks_until_its_oldest_run_is_an_hour_old() {
        let job = job(Caps {
            runs_per_hour: Some(2),
            ..Caps::default()
        });
        let (first, second) = (NOW.minus(HOUR / 2), NOW.minus(HOUR / 4));
        let with = |begun: &[Timestamp]| Load {
            begun: begun.to_vec(),
            ..idle()
        };
        assert_eq!(choose(&job, &with(&[second]), &LIMITS, NOW), Choice::Take);
        let until = Some(first.plus(HOUR));
        assert_eq!(
            parked(&job, &with(&[first, second])),
            (ParkedFor::Cap, until)
        );
        let old = [NOW.minus(HOUR), second];
        assert_eq!(choose(&job, &with(&old), &LIMITS, NOW), Choice::Take);
    }

    #[test]
    fn a_budget_for_a_day_parks_until_its_oldest_run_is_a_day_old() {
        let job = job(Caps {
            budget_per_day: Some(1.0),
            ..Caps::default()
        });
        let since = NOW.minus(HOUR);
        let with = |cost| Load {
            cost,
            cost_since: Some(since),
            ..idle()
        };
        assert_eq!(choose(&job, &with(0.99), &LIMITS, NOW), Choice::Take);
        let until = Some(since.plus(DAY));
        assert_eq!(parked(&job, &with(1.0)), (ParkedFor::Budget, until));
    }

    #[test]
    fn f_r15_the_breaker_parks_until_a_person_asks() {
        let job = job(Caps {
            breaker: Some(2),
            ..Caps::default()
        });
        let with = |runs| {
            let mut load = idle();
            load.breaker.runs = runs;
            load
        };
        assert_eq!(choose(&job, &with(1), &LIMITS, NOW), Choice::Take);
        assert_eq!(parked(&job, &with(2)), (ParkedFor::Breaker, None));
        let lifted = Load {
            breaker: with(2).breaker.after_person(NOW),
            ..idle()
        };
        assert_eq!(choose(&job, &lifted, &LIMITS, NOW), Choice::Take);
    }

    #[test]
    fn a_repository_with_another_id_parks_until_a_person_believes_it() {
        let job = job(Caps::default());
        let seen = |id| SeenRepository {
            name: "acme/web".to_owned(),
            id,
            is_deleted: false,
        };
        let with = |identity: &Identity| Load {
            repository: Some(identity.clone()),
            ..idle()
        };
        let known = Identity::of("acme/web").after(&seen(3));
        assert_eq!(choose(&job, &with(&known), &LIMITS, NOW), Choice::Take);
        let other = known.after(&seen(9));
        assert_eq!(parked(&job, &with(&other)), (ParkedFor::Repository, None));
        let believed = with(&other.believed());
        assert_eq!(choose(&job, &believed, &LIMITS, NOW), Choice::Take);
    }

    #[test]
    fn a_conversation_of_another_host_is_continued_there_unless_the_job_starts_a_new_one() {
        let mut job = job(Caps::default());
        let away = Load {
            away: Some(HostId::new("other".to_owned())),
            ..idle()
        };
        let choice = choose(&job, &away, &LIMITS, NOW);
        assert!(
            matches!(&choice, Choice::Wait { why, until: None } if why.contains("host other")),
            "{choice:?}"
        );
        job.spec.fresh = true;
        assert_eq!(choose(&job, &away, &LIMITS, NOW), Choice::Take);
    }

    #[test]
    fn a_full_house_makes_a_job_wait_and_parks_nothing() {
        let job = job(Caps {
            per_repo: Some(1),
            ..Caps::default()
        });
        for (running, in_repo) in [(2, 0), (1, 1)] {
            let load = Load {
                running,
                in_repo,
                ..idle()
            };
            let choice = choose(&job, &load, &LIMITS, NOW);
            assert!(
                matches!(choice, Choice::Wait { until: None, .. }),
                "{choice:?}"
            );
        }
    }

    #[test]
    fn jobs_that_share_a_directory_take_turns() {
        let mut job = job(Caps::default());
        assert_eq!(sole_dir(&job), None, "a dispatched job has a place");
        job.spec.dispatched = false;
        assert_eq!(sole_dir(&job), Some("/work"));
        let used = Load {
            dir_in_use: true,
            ..idle()
        };
        let waits = choose(&job, &used, &LIMITS, NOW);
        assert!(matches!(waits, Choice::Wait { .. }), "{waits:?}");
        job.spec.shares_dir = true;
        assert_eq!(sole_dir(&job), None);
    }
}
