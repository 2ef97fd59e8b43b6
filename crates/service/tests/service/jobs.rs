//! The queue: what joins what, who takes a job, and what a dead taker leaves.

use tenure_core::id::{AgentName, JobId};
use tenure_core::queue::choose::Limits;
use tenure_core::queue::code::JobCode;
use tenure_core::queue::step::Retry;
use tenure_core::queue::{Caps, JobAsk, JobSpec, JobWorkdir, Trust};
use tenure_service::error::Error;
use tenure_service::{GiveBack, NewJob, Queued, TakeJob, TakenJob};

use crate::{Rig, Who, key, kind};

const LIMITS: Limits = Limits { concurrency: 4 };

fn job(n: u8, rule: &str) -> NewJob {
    NewJob {
        id: JobId::mint([n; 16]),
        agent: AgentName::known("worker"),
        item: key("issue:acme/web#6"),
        rule: Some(rule.to_owned()),
        trust: Trust::Trusted,
        repo: None,
        spec: JobSpec {
            ask: JobAsk::Text("do it".into()),
            workdir: JobWorkdir {
                dir: "/work".into(),
                worktree: false,
            },
            args: Vec::new(),
            env: Vec::new(),
            wrap: Vec::new(),
            exclusive: false,
            fresh: false,
            shares_dir: false,
            timeout_ms: None,
            caps: Caps::default(),
            dispatched: true,
            trusted_repo: false,
            code: JobCode::default(),
        },
        summary: format!("event {n}"),
        data: "{}".into(),
        reply: None,
    }
}

impl Rig {
    fn queues(&mut self, who: &Who, new: &NewJob) -> Queued {
        self.clock.advance(std::time::Duration::from_millis(5));
        self.call(who, |service| service.enqueue(new)).unwrap()
    }

    fn takes(&mut self, who: &Who, job: &str, pid: u32) -> Result<TakenJob, Error> {
        let request = TakeJob {
            job: JobId::parse(job).unwrap(),
            runner: self.world.process(pid),
            limits: LIMITS,
        };
        self.call(who, |service| service.take_job(&request))
    }

    fn gives_back(&mut self, who: &Who, taken: &TakenJob, pid: u32) -> Result<(), Error> {
        let request = GiveBack {
            of: taken.of.clone(),
            runner: self.world.process(pid),
            why: "the directory is in use".into(),
            retry: Retry::Again,
        };
        self.call(who, |service| service.give_back_job(&request))
            .map(|_| ())
    }
}

/// Found by killing dispatchers at random: what came while a start failed was overtaken by what came later.
#[test]
fn f_r06_an_event_joins_the_newest_waiting_job_so_that_none_is_overtaken() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let first = rig.queues(&ann, &job(1, "fix")).job.id;
    let taken = rig.takes(&ann, &first, 20).unwrap();
    let second = rig.queues(&ann, &job(2, "fix"));
    assert!(!second.joined, "the events of the first are frozen");
    rig.gives_back(&ann, &taken, 20).unwrap();
    let third = rig.queues(&ann, &job(3, "fix"));
    assert_eq!((third.joined, &third.job.id), (true, &second.job.id));
    assert_eq!(kind(rig.takes(&ann, &second.job.id, 21)), "not_yet");
    let again = rig.takes(&ann, &first, 22).unwrap();
    assert_eq!(again.events.len(), 1);
    assert_eq!(kind(rig.gives_back(&ann, &taken, 20)), "late");
}

#[test]
fn jobs_of_another_rule_wait_behind_and_join_nothing() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let first = rig.queues(&ann, &job(1, "fix")).job.id;
    let other = rig.queues(&ann, &job(2, "review"));
    assert!(!other.joined);
    let looked = rig.call(&ann, |service| service.waiting_jobs(&LIMITS));
    let jobs: Vec<String> = looked
        .unwrap()
        .jobs
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(jobs, [first]);
}

#[test]
fn f_r04_a_job_whose_taker_is_dead_is_queued_again() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let first = rig.queues(&ann, &job(1, "fix")).job.id;
    rig.takes(&ann, &first, 20).unwrap();
    let swept = rig.call(&ann, |service| service.sweep_jobs()).unwrap();
    assert!(swept.returned.is_empty(), "its taker lives");
    rig.world.exit(20);
    let swept = rig.call(&ann, |service| service.sweep_jobs()).unwrap();
    assert_eq!(swept.returned.len(), 1);
    assert_eq!(
        (swept.returned[0].state.as_str(), swept.returned[0].failures),
        ("queued", 1)
    );
}
