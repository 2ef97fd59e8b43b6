//! The queue: what joins what, who takes a job, and what a dead taker leaves.

use tenure_core::id::{AgentName, JobId, WorkerRole};
use tenure_core::queue::Trust;
use tenure_core::queue::choose::Limits;
use tenure_core::queue::step::Retry;
use tenure_service::error::Error;
use tenure_service::{
    ActFor, GiveBack, LookForJobs, NewJob, Queued, SetRequest, TakeJob, TakenJob, WhichJobs,
};
use tenure_testkit::conformance::sample;

use crate::{Rig, Who, key, kind};

const LIMITS: Limits = Limits { concurrency: 4 };

pub(crate) fn job(n: u8, rule: &str) -> NewJob {
    NewJob {
        role: WorkerRole::default(),
        id: JobId::mint([n; 16]),
        agent: AgentName::known("worker"),
        item: key("issue:acme/web#6"),
        rule: Some(rule.to_owned()),
        trust: Trust::Trusted,
        repo: None,
        spec: sample::job_spec(),
        summary: format!("event {n}"),
        data: "{}".into(),
        reply: None,
    }
}

impl Rig {
    fn queues(&mut self, who: &Who, new: &NewJob) -> Queued {
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
    let looked = rig.call(&ann, |service| {
        service.waiting_jobs(&LookForJobs::within(LIMITS))
    });
    let jobs: Vec<String> = looked
        .unwrap()
        .jobs
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(jobs, [first]);
}

#[test]
fn a_job_that_waits_for_another_of_its_conversation_is_told_which_and_why() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let first = rig.queues(&ann, &job(1, "fix")).job.id;
    let second = rig.queues(&ann, &job(2, "review")).job.id;
    let refused = |rig: &mut Rig| rig.takes(&ann, &second, 21).unwrap_err().to_string();
    let older = refused(&mut rig);
    assert!(
        older.contains(&format!("{first} of the same conversation is older")),
        "{older}"
    );
    rig.takes(&ann, &first, 20).unwrap();
    let running = refused(&mut rig);
    assert!(
        running.contains(&format!("{first} of the same conversation is running")),
        "{running}"
    );
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

/// An id that no other number has.
pub(crate) fn one_of_many(n: u8) -> JobId {
    let mut bytes = [0; 16];
    (bytes[0], bytes[1]) = (n / 26, n % 26);
    JobId::mint(bytes)
}

/// A job of an item of its own in a repository that runs at most one at a time.
fn job_in(n: u8, repo: &str) -> NewJob {
    let mut new = job(n, "fix");
    new.id = one_of_many(n);
    new.item = key(&format!("issue:{repo}#{n}"));
    new.repo = Some(repo.to_owned());
    new.spec.caps.per_repo = Some(1);
    new
}

impl Rig {
    fn looks(&mut self, who: &Who, look: &LookForJobs) -> Vec<String> {
        let seen = self.call(who, |service| service.waiting_jobs(look));
        seen.unwrap().jobs.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn jobs_behind_many_of_a_full_repository_are_taken() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let first = rig.queues(&ann, &job_in(0, "acme/web")).job.id;
    rig.takes(&ann, &first, 20).unwrap();
    for n in 1..=90 {
        rig.queues(&ann, &job_in(n, "acme/web"));
    }
    // Also those that a second repository takes one of, and behind all of them one that waited for a time.
    for n in 91..=180 {
        rig.queues(&ann, &job_in(n, "acme/docs"));
    }
    let mut free = job(181, "fix");
    free.id = one_of_many(181);
    free.item = key("wp:1");
    let free = rig.queues(&ann, &free).job.id;
    let late = rig.queues(&ann, &job_in(182, "acme/api")).job.id;
    let taken = rig.takes(&ann, &late, 21).unwrap();
    let later = GiveBack {
        of: taken.of,
        runner: rig.world.process(21),
        why: "not yet".into(),
        retry: Retry::Later,
    };
    rig.call(&ann, |service| service.give_back_job(&later))
        .unwrap();
    rig.clock.advance(std::time::Duration::from_secs(60));
    let seen = rig.looks(&ann, &LookForJobs::within(LIMITS));
    let docs = one_of_many(91).to_string();
    assert_eq!(seen, [docs, free, late]);
}

/// A worker that started runners, or whose runners ended at once, goes on with the next jobs.
#[test]
fn jobs_that_a_worker_knows_about_do_not_hide_the_others() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let mut ids = Vec::new();
    for n in 1..=9 {
        let mut new = job(n, "fix");
        new.item = key(&format!("issue:acme/web#{n}"));
        ids.push(rig.queues(&ann, &new).job.id);
    }
    let parsed = |from: &[String]| from.iter().map(|id| JobId::parse(id).unwrap()).collect();
    let look = LookForJobs {
        limits: LIMITS,
        starting: parsed(&ids[..1]),
        left_alone: parsed(&ids[1..6]),
    };
    assert_eq!(rig.looks(&ann, &look), ids[6..9], "three places are left");
    rig.takes(&ann, &ids[0], 20).unwrap();
    assert_eq!(rig.looks(&ann, &look), ids[6..9], "it is counted once");
}

#[test]
fn a_job_whose_conversation_is_on_another_host_waits_for_a_dispatcher_there() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let set = SetRequest {
        role: WorkerRole::default(),
        agent: AgentName::known("worker"),
        item: key("issue:acme/web#6"),
        native_id: tenure_core::id::NativeId::parse("n1").unwrap(),
        home: tenure_core::conversation::Home {
            host: tenure_core::id::HostId::new("other"),
            user: "1000".into(),
            agent_home: None,
            repo_host: None,
            dir: "/srv/web".into(),
        },
        revision: None,
    };
    rig.call(&ann, |service| {
        service.set_conversation(&ActFor::default(), &set)
    })
    .unwrap();
    let away = rig.queues(&ann, &job(1, "fix")).job.id;
    let mut fresh = job(2, "fix");
    fresh.item = key("issue:acme/web#7");
    fresh.spec.fresh = true;
    let fresh = rig.queues(&ann, &fresh).job.id;
    assert_eq!(rig.looks(&ann, &LookForJobs::within(LIMITS)), [fresh]);
    assert_eq!(kind(rig.takes(&ann, &away, 20)), "not_yet");
    let explained = rig.call(&ann, |service| service.explain_job(&away, &LIMITS));
    let explanation = explained.unwrap().explanation;
    assert!(!explanation.may_be_taken);
    assert!(explanation.why.contains("host other"), "{explanation:?}");
}

/// Ids are random, so they must not decide between jobs of one moment; nor may a clock that was set back.
#[test]
fn f_r06_jobs_run_in_the_order_in_which_they_came_whatever_the_clock_says() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let mut came = Vec::new();
    for (n, rule) in [(9, "a"), (2, "b"), (5, "c"), (1, "d")] {
        came.push(rig.queues(&ann, &job(n, rule)).job.id);
        if n == 2 {
            let back = rig
                .clock
                .now()
                .wall
                .minus(std::time::Duration::from_secs(60));
            rig.clock.set_wall(back);
        }
    }
    for (n, next) in came.iter().enumerate() {
        for later in &came[n + 1..] {
            assert_eq!(kind(rig.takes(&ann, later, 20)), "not_yet");
        }
        rig.takes(&ann, next, 20).unwrap();
        rig.world.exit(20);
        rig.call(&ann, |service| service.sweep_jobs()).unwrap();
        rig.call(&ann, |service| {
            service.cancel_jobs(&WhichJobs::one(next), "done with it")
        })
        .unwrap();
    }
}

#[test]
fn f_r04_a_new_process_under_the_number_of_a_dead_taker_does_not_have_its_job() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let first = rig.queues(&ann, &job(1, "fix")).job.id;
    let taken = rig.takes(&ann, &first, 20).unwrap();
    rig.world.exit(20);
    // A dispatcher of the same host starts a runner, and the kernel gives it the same number.
    rig.world.process(20);
    assert_eq!(kind(rig.gives_back(&ann, &taken, 20)), "late");
    let swept = rig.call(&ann, |service| service.sweep_jobs()).unwrap();
    assert_eq!(swept.returned.len(), 1);
    rig.call(&ann, |service| service.retry_jobs(&WhichJobs::one(&first)))
        .unwrap();
    let again = rig.takes(&ann, &first, 20).unwrap();
    assert_eq!(again.of.attempt, 2);
}

/// A sweep that goes by the id alone would queue again what ended between its look and its write.
#[test]
fn f_r01_a_job_that_ends_while_a_sweep_looks_at_its_taker_stays_ended() {
    use tenure_core::queue::{JobEnd, JobState};
    use tenure_core::store::{Store, TxMode};
    for before in 1..=4 {
        let mut rig = Rig::new();
        let ann = rig.here(&[10]);
        let first = rig.queues(&ann, &job(1, "fix")).job.id;
        let taken = rig.takes(&ann, &first, 20).unwrap();
        rig.world.exit(20);
        let at = rig.clock.now().wall;
        rig.store.do_before(before, move |store| {
            let mut tx = store.begin(TxMode::Write).unwrap();
            let mut row = tx.job(&taken.of.id).unwrap().unwrap();
            row.state = JobState::Ended;
            row.taken = None;
            row.end = Some(JobEnd {
                at,
                outcome: Some(tenure_core::run::Outcome::Done),
                why: "its end landed".into(),
            });
            tx.update_job(&row).unwrap();
            tx.commit().unwrap();
        });
        rig.call(&ann, |service| service.sweep_jobs()).unwrap();
        if rig.store.cancel_pending() {
            assert!(before > 1, "nothing happened meanwhile");
            break;
        }
        let shown = rig.call(&ann, |service| service.show_job(&first)).unwrap();
        let end = (shown.state.as_str(), shown.outcome.as_deref());
        assert_eq!(end, ("ended", Some("done")), "before transaction {before}");
    }
}
