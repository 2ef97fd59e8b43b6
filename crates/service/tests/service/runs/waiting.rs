//! A run that claims its item waits for that in line, as every other waiter does.

use tenure_core::queue::choose::Limits;
use tenure_core::store::{Store, TxMode};
use tenure_service::{LookForJobs, StartTurn, Wait, WaitingCaller};

use super::{Asked, ITEM, Office, asked, done};
use crate::{Who, key, kind};

impl Office {
    /// One look of a run that waits, by its runner.
    fn looks(&mut self, asked: &Asked, waiting: &mut WaitingCaller) -> Option<Wait> {
        let request = self.request(asked).unwrap();
        let runner = self.rig.here(&[asked.runner]);
        let turn = self.rig.call(&runner, |service| {
            service.start_run(&request, Some(waiting))
        });
        match turn.unwrap() {
            StartTurn::Started(_) => None,
            StartTurn::Wait(wait) => {
                waiting.ticket = Some(wait.ticket);
                Some(wait)
            }
            other => panic!("{other:?}"),
        }
    }

    fn person(&mut self, pid: u32, name: &str) -> Who {
        let who = self.rig.here(&[pid]);
        self.rig.register(&who, name);
        who
    }
}

#[test]
fn runs_and_claims_that_wait_are_served_in_order_of_arrival() {
    let mut office = Office::new();
    let (ann, bob) = (office.person(20, "ann"), office.person(30, "bob"));
    office.rig.claim(&ann, ITEM).unwrap();
    let run = Asked {
        exclusive: true,
        ..asked(1)
    };
    let mut place = office.rig.waiting(run.runner);
    assert!(office.looks(&run, &mut place).is_some());
    let mut bobs = office.rig.waiting(31);
    assert!(office.rig.look(&bob, &mut bobs, ITEM).is_some());
    office.rig.release(&ann, ITEM);
    assert!(
        office.rig.look(&bob, &mut bobs, ITEM).is_some(),
        "the run came first"
    );
    assert!(office.looks(&run, &mut place).is_none());
    assert!(office.show(1).exclusive);
    let mut tx = office.rig.store.inner().begin(TxMode::Read).unwrap();
    let line = tx.line(&key(ITEM)).unwrap();
    drop(tx);
    assert_eq!(line.len(), 1, "it left the line");
    assert_eq!(kind(office.rig.claim(&bob, ITEM)), "held");
    office.ends(&run, &done(1, "n1")).unwrap();
    assert!(office.rig.look(&bob, &mut bobs, ITEM).is_none());
}

#[test]
fn a_run_that_comes_later_waits_for_who_came_first() {
    let mut office = Office::new();
    let (ann, bob) = (office.person(20, "ann"), office.person(30, "bob"));
    office.rig.claim(&ann, ITEM).unwrap();
    let mut bobs = office.rig.waiting(31);
    assert!(office.rig.look(&bob, &mut bobs, ITEM).is_some());
    let run = Asked {
        exclusive: true,
        ..asked(1)
    };
    let mut place = office.rig.waiting(run.runner);
    assert!(office.looks(&run, &mut place).is_some());
    office.rig.release(&ann, ITEM);
    assert!(office.looks(&run, &mut place).is_some(), "it is bob's turn");
    assert!(office.rig.look(&bob, &mut bobs, ITEM).is_none());
    office.rig.release(&bob, ITEM);
    assert!(office.looks(&run, &mut place).is_none());
}

#[test]
fn a_run_that_lacks_its_directory_lets_the_others_go_first() {
    let mut office = Office::new();
    let (ann, bob) = (office.person(20, "ann"), office.person(30, "bob"));
    office.rig.claim(&ann, "wp:2").unwrap();
    let run = Asked {
        item: "wp:2",
        exclusive: true,
        ..asked(1)
    };
    let mut place = office.rig.waiting(run.runner);
    assert!(office.looks(&run, &mut place).is_some());
    let mut bobs = office.rig.waiting(31);
    assert!(office.rig.look(&bob, &mut bobs, "wp:2").is_some());
    let other = asked(2);
    office.works(&other, "n2");
    office.rig.release(&ann, "wp:2");
    let request = office.request(&run).unwrap();
    let runner = office.rig.here(&[run.runner]);
    let turn = office
        .rig
        .call(&runner, |service| service.start_run(&request, Some(&place)));
    assert!(matches!(turn.unwrap(), StartTurn::Held { .. }));
    assert!(
        office.rig.look(&bob, &mut bobs, "wp:2").is_none(),
        "at once, not after its turn"
    );
    office.ends(&other, &done(2, "n2")).unwrap();
    office.rig.release(&bob, "wp:2");
    assert!(
        office.looks(&run, &mut place).is_none(),
        "it kept its place"
    );
}

#[test]
fn a_job_waits_while_a_person_runs_an_agent_in_its_directory() {
    let mut office = Office::new();
    let by_hand = asked(1);
    office.works(&by_hand, "n1");
    let mut queued = crate::jobs::job(7, "none");
    queued.rule = None;
    queued.item = key("issue:acme/web#77");
    queued.spec.dispatched = false;
    queued.spec.workdir.dir = by_hand.dir.to_owned();
    let shell = office.shell.clone();
    office
        .rig
        .call(&shell, |service| service.enqueue(&queued))
        .unwrap();
    let look = LookForJobs::within(Limits { concurrency: 4 });
    let ready = |office: &mut Office| {
        let found = office
            .rig
            .call(&shell, |service| service.waiting_jobs(&look));
        found.unwrap().jobs.len()
    };
    assert_eq!(ready(&mut office), 0, "the person's run has the directory");
    office.ends(&by_hand, &done(1, "n1")).unwrap();
    assert_eq!(ready(&mut office), 1);
}
