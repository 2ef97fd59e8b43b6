//! What is written in forges: who does it, how often it is tried, and that a parked item is told once.

use std::time::Duration;

use tenure_core::id::{AgentName, JobId, WorkerRole};
use tenure_core::queue::choose::Limits;
use tenure_core::queue::reply::NewReply;
use tenure_core::queue::{Caps, JobSpec, JobState, Trust};
use tenure_core::store::{Lock, Store, TxMode};
use tenure_service::{DueReply, LookForJobs, NewJob, ReplyAttempt};
use tenure_testkit::conformance::sample;

use crate::{Rig, Who, key};

fn job(n: u8, agent: &'static str, reply: NewReply) -> NewJob {
    NewJob {
        role: WorkerRole::default(),
        id: JobId::mint([n; 16]),
        agent: AgentName::known(agent),
        item: key("issue:acme/web#6"),
        rule: Some("fix".to_owned()),
        trust: Trust::Trusted,
        repo: None,
        spec: JobSpec {
            caps: Caps {
                breaker: Some(0),
                ..Caps::default()
            },
            ..sample::job_spec()
        },
        summary: format!("event {n}"),
        data: "{}".into(),
        reply: Some(reply),
    }
}

fn quiet() -> NewReply {
    NewReply {
        forge: "home".into(),
        eyes: false,
        comment: false,
        target: None,
        pull: false,
        merge: false,
    }
}

impl Rig {
    fn due(&mut self, who: &Who) -> Vec<DueReply> {
        self.call(who, |service| service.due_replies("home"))
            .unwrap()
    }

    fn due_kinds(&mut self, who: &Who) -> Vec<&'static str> {
        let due = self.due(who);
        due.iter().map(|one| one.reply.kind.as_str()).collect()
    }

    /// Its agent works.
    fn job_begins(&mut self, job: &JobId) {
        let mut tx = self.store.begin(TxMode::Write).unwrap();
        let mut row = tx.job(job).unwrap().unwrap();
        tx.lock(&Lock::Conversation(row.root.clone())).unwrap();
        tx.lock(&Lock::Queue).unwrap();
        row.state = JobState::Begun;
        tx.update_job(&row).unwrap();
        tx.commit().unwrap();
    }

    fn parks(&mut self, who: &Who) {
        let limits = Limits { concurrency: 4 };
        let looked = self.call(who, |service| {
            service.waiting_jobs(&LookForJobs::within(limits))
        });
        assert!(!looked.unwrap().parked.is_empty(), "the breaker is open");
    }
}

#[test]
fn a_duty_has_one_holder_and_passes_when_that_is_dead() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let (one, two) = (rig.world.process(20), rig.world.process(21));
    let taken = rig.call(&ann, |service| service.take_duty("forge home", &one));
    assert!(taken.unwrap().is_some());
    let refused = rig.call(&ann, |service| service.take_duty("forge home", &two));
    assert_eq!(refused.unwrap(), None);
    let at = rig.clock.now().wall;
    rig.call(&ann, |service| service.note_sweep("forge home", &one, at))
        .unwrap();
    // A process that does not hold it changes nothing.
    let other = tenure_core::time::Timestamp(1);
    rig.call(&ann, |service| {
        service.note_sweep("forge home", &two, other)
    })
    .unwrap();
    rig.clock.advance(Duration::from_secs(3_600));
    let refused = rig.call(&ann, |service| service.take_duty("forge home", &two));
    assert_eq!(refused.unwrap(), None, "however long it lives");
    rig.world.exit(20);
    let passed = rig.call(&ann, |service| service.take_duty("forge home", &two));
    let passed = passed.unwrap().unwrap();
    assert_eq!((passed.holder, passed.swept_at), (two, Some(at)));
}

#[test]
fn f_r15_of_two_jobs_of_a_parked_item_one_tells_it() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    for (n, agent) in [(1, "worker"), (2, "other")] {
        let new = job(n, agent, quiet());
        rig.call(&ann, |service| service.enqueue(&new)).unwrap();
    }
    rig.parks(&ann);
    let due = rig.due(&ann);
    assert_eq!(due.len(), 2);
    let mut told = Vec::new();
    for DueReply { reply, .. } in &due {
        told.push(
            rig.call(&ann, |service| service.intend_comment(reply.id))
                .unwrap(),
        );
    }
    assert_eq!(told, [true, false]);
    // The one that began, and may have been written, goes on.
    let again = rig.call(&ann, |service| service.intend_comment(due[0].reply.id));
    assert!(again.unwrap());
}

/// Each open job has one, and has nothing to say until it begins.
#[test]
fn many_replies_with_nothing_to_say_do_not_hide_another() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let comment = || NewReply {
        comment: true,
        ..quiet()
    };
    let mut last = None;
    for n in 0..=250 {
        let mut new = job(n, "worker", comment());
        new.id = crate::jobs::one_of_many(n);
        new.item = key(&format!("issue:acme/web#{n}"));
        rig.call(&ann, |service| service.enqueue(&new)).unwrap();
        if n % 10 != 1 {
            rig.job_begins(&new.id);
        }
        last = Some(new.id);
    }
    let due = rig.due(&ann);
    assert_eq!(due.len(), 226, "more than one page");
    assert_eq!(due.last().map(|one| &one.job.id), last.as_ref());
}

#[test]
fn what_was_written_is_forgotten_with_the_deliveries() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let eyes = NewReply {
        eyes: true,
        ..quiet()
    };
    let new = job(1, "worker", eyes);
    rig.call(&ann, |service| service.enqueue(&new)).unwrap();
    let id = rig.due(&ann)[0].reply.id;
    let said = ReplyAttempt::Said {
        comment: None,
        label: None,
        is_last: true,
    };
    rig.call(&ann, |service| service.note_written(id, &said))
        .unwrap();
    let is_left = |rig: &mut Rig| {
        let before = rig.clock.now().wall.minus(Duration::from_secs(30 * 86_400));
        rig.call(&ann, |service| service.forget_deliveries(before, u64::MAX))
            .unwrap();
        let mut tx = rig.store.begin(TxMode::Read).unwrap();
        tx.reply(id).unwrap().is_some()
    };
    assert!(is_left(&mut rig));
    rig.clock.advance(Duration::from_secs(31 * 86_400));
    assert!(!is_left(&mut rig));
}

#[test]
fn a_reply_that_was_not_taken_is_due_later_and_its_comment_is_kept() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    let reply = NewReply {
        eyes: true,
        comment: true,
        target: Some("comment-7".into()),
        ..quiet()
    };
    let new = job(1, "worker", reply);
    rig.call(&ann, |service| service.enqueue(&new)).unwrap();
    assert_eq!(
        rig.due_kinds(&ann),
        ["eyes"],
        "nothing is said of a job that waits"
    );
    // A second event joins the job: it gets eyes, and no second comment.
    rig.call(&ann, |service| service.enqueue(&new)).unwrap();
    rig.job_begins(&new.id);
    let due = rig.due(&ann);
    assert_eq!(rig.due_kinds(&ann), ["eyes", "status", "eyes"]);
    let status = due[1].reply.id;
    rig.call(&ann, |service| service.intend_comment(status))
        .unwrap();
    let later = ReplyAttempt::Later {
        why: "away".into(),
        not_before: None,
    };
    rig.call(&ann, |service| service.note_written(status, &later))
        .unwrap();
    assert!(rig.due(&ann).iter().all(|one| one.reply.id != status));
    rig.clock.advance(Duration::from_secs(3));
    let due = rig.due(&ann);
    let found = due.iter().find(|one| one.reply.id == status).unwrap();
    assert!(found.reply.unsure, "it may have been written");
    let said = ReplyAttempt::Said {
        comment: Some(77),
        label: Some("running".into()),
        is_last: false,
    };
    rig.call(&ann, |service| service.note_written(status, &said))
        .unwrap();
    let due = rig.due(&ann);
    let found = due.iter().find(|one| one.reply.id == status).unwrap();
    assert_eq!((found.reply.comment, found.reply.unsure), (Some(77), false));
    let limit = ReplyAttempt::Later {
        why: "limited".into(),
        not_before: Some(rig.clock.now().wall.plus(Duration::from_secs(90))),
    };
    rig.call(&ann, |service| service.note_written(status, &limit))
        .unwrap();
    rig.clock.advance(Duration::from_secs(80));
    assert!(rig.due(&ann).iter().all(|one| one.reply.id != status));
    rig.clock.advance(Duration::from_secs(20));
    assert!(rig.due(&ann).iter().any(|one| one.reply.id == status));
}
