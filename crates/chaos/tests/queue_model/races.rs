//! Two transactions at once: what the first one rolls back, the second must not take for stored.

use std::sync::mpsc::channel;

use tenure_core::id::{AgentName, JobId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::policy::Policy;
use tenure_core::queue::delivery::{Delivery, Verdict};
use tenure_core::queue::{Job, Trust};
use tenure_core::store::{JobFilter, Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_service::{Accept, Decided, Failure, NewJob, Person, Service};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample;
use tenure_testkit::{FakeClock, FakeWorld};

use crate::real::{arrival_of, spec};

fn delivery(item: &Key, job: &JobId) -> Delivery {
    Delivery {
        id: 0,
        endpoint: "home".to_owned(),
        delivery_id: Some("d-1".to_owned()),
        content_key: Some("comment 1 of yesterday".to_owned()),
        body_hash: None,
        received_at: Timestamp(1),
        event: "issue.comment".to_owned(),
        repo: None,
        item: Some(item.clone()),
        author: None,
        verdict: Verdict::Queued,
        rule: Some("fix".to_owned()),
        why: String::new(),
        job: Some(job.clone()),
    }
}

#[test]
fn f_r05_a_delivery_that_races_with_the_same_one_is_stored_when_the_first_is_rolled_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tenure.db");
    let clock = FakeClock::new();
    let item = Key::parse("issue:acme/web#6").unwrap();
    let (first, second) = (JobId::mint([1; 16]), JobId::mint([2; 16]));
    let mut store = SqliteStore::open(&file, clock.source()).unwrap();
    let mut tx = store.begin(TxMode::Write).unwrap();
    let agent = AgentName::known("worker");
    tx.insert_delivery(&delivery(&item, &first), b"{}").unwrap();
    tx.insert_job(&Job {
        id: first,
        agent: agent.clone(),
        role: WorkerRole::default(),
        item: item.clone(),
        root: item.clone(),
        rule: Some("fix".to_owned()),
        spec: spec(),
        ..sample::job(1)
    })
    .unwrap();
    let request = Accept {
        delivery: delivery(&item, &second),
        person: Person::No,
        repository: None,
        jobs: vec![NewJob {
            role: WorkerRole::default(),
            id: second.clone(),
            agent,
            item,
            rule: Some("fix".to_owned()),
            trust: Trust::Trusted,
            repo: None,
            spec: spec(),
            summary: "issue.comment by alice".to_owned(),
            data: "{}".to_owned(),
            reply: None,
        }],
    };
    let (tell, begins) = channel();
    let racing = std::thread::spawn(move || {
        let mut other = SqliteStore::open(&file, clock.source()).unwrap();
        let world = FakeWorld::new();
        let facts = world.facts(&[10]);
        tell.send(()).unwrap();
        let mut service = Service::new(&mut other, &world, &facts, Policy::default());
        let stored = service.store_all(&[arrival_of(&request)])?.value.remove(0);
        let mut request = request;
        request.delivery.id = stored.delivery.id;
        let decided = service
            .decide_all(&[Decided::Now(Box::new(request))])?
            .value
            .remove(0);
        Ok::<_, Failure>(decided.expect("it is undecided"))
    });
    begins.recv().unwrap();
    // The first never commits; its connection broke.
    drop(tx);
    let accepted = racing.join().unwrap().expect("it is accepted");
    assert!(!accepted.duplicate, "nothing of the first was stored");
    let mut tx = store.begin(TxMode::Read).unwrap();
    let jobs = tx.list_jobs(&JobFilter::default()).unwrap();
    let ids: Vec<&JobId> = jobs.iter().map(|job| &job.id).collect();
    assert_eq!(ids, [&second], "one job");
}
