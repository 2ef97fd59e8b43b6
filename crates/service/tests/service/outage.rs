//! An outage that lasts longer than any retry: nothing is lost, and nothing waits for a person who was not told.

use std::time::Duration;

use tenure_core::id::JobId;
use tenure_core::queue::choose::Limits;
use tenure_core::queue::step::Retry;
use tenure_service::{GiveBack, ListJobs, LookForJobs, TakeJob, TakenJob};

use crate::jobs::job;
use crate::{Rig, Who};

const LIMITS: Limits = Limits { concurrency: 4 };

fn takes(rig: &mut Rig, who: &Who, id: &JobId, pid: u32) -> TakenJob {
    let request = TakeJob {
        job: id.clone(),
        runner: rig.world.process(pid),
        limits: LIMITS,
    };
    rig.call(who, |service| service.take_job(&request)).unwrap()
}

fn gives_back(rig: &mut Rig, who: &Who, taken: &TakenJob, pid: u32) {
    let request = GiveBack {
        of: taken.of.clone(),
        runner: rig.world.process(pid),
        why: "the remote does not answer".into(),
        retry: Retry::Away,
    };
    rig.call(who, |service| service.give_back_job(&request))
        .unwrap();
}

fn ready(rig: &mut Rig, who: &Who) -> Vec<JobId> {
    let look = LookForJobs::within(LIMITS);
    let found = rig
        .call(who, |service| service.waiting_jobs(&look))
        .unwrap();
    assert_eq!(found.parked, [], "nothing waits for a person");
    found.jobs
}

#[test]
fn a_remote_that_is_away_for_two_days_parks_nothing_and_a_new_event_wakes_what_waits() {
    let mut rig = Rig::new();
    let ann = rig.here(&[10]);
    rig.call(&ann, |service| service.enqueue(&job(1, "fix")))
        .unwrap();
    let mut tries = 0;
    for pid in 100..1_000 {
        let [id] = ready(&mut rig, &ann).try_into().expect("it may be taken");
        let taken = takes(&mut rig, &ann, &id, pid);
        if pid == 500 {
            // Its own events are frozen now; what comes waits behind it.
            rig.call(&ann, |service| service.enqueue(&job(2, "fix")))
                .unwrap();
        }
        gives_back(&mut rig, &ann, &taken, pid);
        assert_eq!(ready(&mut rig, &ann), [], "not at once");
        rig.clock.advance(Duration::from_secs(300));
        tries += 1;
    }
    assert_eq!(tries, 900, "three days, every five minutes at the latest");
    let [id] = ready(&mut rig, &ann).try_into().expect("it may be taken");
    let taken = takes(&mut rig, &ann, &id, 1_000);
    gives_back(&mut rig, &ann, &taken, 1_000);
    assert_eq!(ready(&mut rig, &ann), []);
    let joined = rig.call(&ann, |service| service.enqueue(&job(3, "fix")));
    assert!(joined.unwrap().joined, "the newest waiting job");
    assert_eq!(ready(&mut rig, &ann), [id], "the oldest is woken");
    let all = ListJobs {
        all: true,
        ..ListJobs::default()
    };
    let jobs = rig.call(&ann, |service| service.list_jobs(&all)).unwrap();
    let events: usize = jobs.items.iter().map(|job| job.events.len()).sum();
    assert_eq!(
        (jobs.items.len(), events),
        (2, 3),
        "every event is there once"
    );
}
