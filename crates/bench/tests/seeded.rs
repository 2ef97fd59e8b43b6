//! A seeded store is a store like any other.

use tenure_bench::place::{Place, answered};
use tenure_bench::seeded::Seeded;
use tenure_bench::worker::{Contender, Ours, request};
use tenure_core::key::Key;
use tenure_core::service::{GuardRequest, ListRequest, Naming};
use tenure_testkit::seed;

#[test]
fn a_seeded_store_passes_a_round_of_verbs() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let size = 1_000;
    Seeded::fresh(&state, size).unwrap();

    let place = Place::open(&state).unwrap();
    let mut store = place.store().unwrap();
    place.register(&mut store).unwrap();
    let naming = Naming::default();
    let mut service = place.service(&mut store);
    assert_eq!(
        answered(service.whoami(&naming)).unwrap().session.agent,
        "bench"
    );

    let key = seed::key(2).unwrap();
    let before = answered(service.why(&key)).unwrap().claim.epoch;
    let grants = answered(service.claim(&naming, &request(key.clone()))).unwrap();
    assert_eq!(grants[0].epoch, before + 1);
    let asked = GuardRequest { key, epoch: None };
    answered(service.guard(&naming, &asked)).unwrap();

    let handle = seed::handle(2).unwrap().to_string();
    assert_eq!(
        answered(service.show(&handle)).unwrap().session.handle,
        handle
    );
    // The newest hold: an open hold of a process that is gone is found to be free.
    let held = seed::key(size - 2).unwrap();
    answered(service.claim(&naming, &request(held))).unwrap();

    let all = ListRequest {
        closed_too: true,
        ..ListRequest::default()
    };
    let count = usize::try_from(size).unwrap() + 1;
    assert_eq!(answered(service.list(&all)).unwrap().items.len(), count);
}

#[test]
fn whoever_contends_gets_the_key_and_gives_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    Seeded::fresh(&state, 100).unwrap();
    let mut ours = Ours::register(Place::open(&state).unwrap()).unwrap();
    let key = Key::parse("issue:acme/web#1").unwrap().to_string();
    for _ in 0..2 {
        assert!(ours.claim(&key).unwrap());
        ours.release(&key).unwrap();
    }
}
