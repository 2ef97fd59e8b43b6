//! A seeded store is a store like any other.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use tenure_bench::place::{BenchStore, answered};
use tenure_bench::seeded::{DAY_PAGES, Seeded, fill_log, log_pages};
use tenure_bench::worker::{Contender, Ours, request};
use tenure_core::key::Key;
use tenure_service::{ActFor, GuardRequest, ListRequest, ReleaseRequest};
use tenure_testkit::seed;

#[test]
fn a_seeded_store_passes_a_round_of_verbs() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let size = 1_000;
    Seeded::fresh(&state, size).unwrap();

    let place = BenchStore::open(&state).unwrap();
    let mut store = place.store().unwrap();
    place.register(&mut store).unwrap();
    let act_for = ActFor::default();
    let mut service = place.service(&mut store);
    assert_eq!(
        answered(service.own_session(&act_for))
            .unwrap()
            .session
            .agent,
        "bench"
    );

    let key = seed::key(2).unwrap();
    let before = answered(service.why(&key)).unwrap().claim.epoch;
    let grants = answered(service.claim(&act_for, &request(key.clone()))).unwrap();
    assert_eq!(grants[0].epoch, before + 1);
    let asked = GuardRequest { key, epoch: None };
    answered(service.guard(&act_for, &asked)).unwrap();

    let handle = seed::handle(2).unwrap().to_string();
    assert_eq!(
        answered(service.show(&handle)).unwrap().session.handle,
        handle
    );
    // The newest hold: an open hold of a process that is gone is found to be free.
    let held = seed::key(size - 2).unwrap();
    answered(service.claim(&act_for, &request(held))).unwrap();

    let all = ListRequest {
        closed_too: true,
        ..ListRequest::default()
    };
    let count = usize::try_from(size).unwrap() + 1;
    assert_eq!(answered(service.list(&all)).unwrap().items.len(), count);
}

/// How many bytes this thread has read and written so far, pages that the system had in memory included.
fn moved() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    of("rchar:") + of("wchar:")
}

/// What one claim and its release move, with the store opened anew as every command does it.
fn cost_of_an_update(size: u32) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    Seeded::fresh(&state, size).unwrap();
    let place = BenchStore::open(&state).unwrap();
    place.register(&mut place.store().unwrap()).unwrap();
    let (act_for, key) = (ActFor::default(), seed::key(2).unwrap());
    let before = moved();
    let mut store = place.store().unwrap();
    let mut service = place.service(&mut store);
    answered(service.claim(&act_for, &request(key.clone()))).unwrap();
    let given = ReleaseRequest {
        key,
        epoch: None,
        done: false,
    };
    answered(service.release(&act_for, &given)).unwrap();
    drop(store);
    moved() - before
}

#[test]
fn f_d04_an_update_moves_as_much_at_fifty_thousand_entries_as_at_five_hundred() {
    let (small, large) = (cost_of_an_update(500), cost_of_an_update(50_000));
    // A tree of a hundred times as many entries is one or two pages deeper, in each of its indexes.
    assert!(
        large < small * 2,
        "{small} bytes at 500, {large} bytes at 50,000"
    );
}

/// How many rows each table has.
fn rows(place: &BenchStore) -> Vec<(String, i64)> {
    let database = rusqlite::Connection::open(place.database()).unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut names = database.prepare(names).unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let count = |name: String| {
        let sql = format!("SELECT count(*) FROM {name}");
        let count = database.query_row(&sql, [], |row| row.get(0)).unwrap();
        (name, count)
    };
    names.map(|name| count(name.unwrap())).collect()
}

#[test]
fn f_d05_reading_shows_all_entries_and_drops_none() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let size = 2_000;
    Seeded::fresh(&state, size).unwrap();
    let place = BenchStore::open(&state).unwrap();
    let before = rows(&place);
    let size = usize::try_from(size).unwrap();
    for _ in 0..2 {
        let mut store = place.store().unwrap();
        let mut service = place.service(&mut store);
        let all = ListRequest {
            closed_too: true,
            ..ListRequest::default()
        };
        assert_eq!(answered(service.list(&all)).unwrap().items.len(), size);
        for n in [0, 1, 999, 1_999] {
            let handle = seed::handle(n).unwrap().to_string();
            let shown = answered(service.show(&handle)).unwrap();
            assert_eq!(shown.session.handle, handle);
            answered(service.why(&seed::key(n).unwrap())).unwrap();
        }
    }
    assert!(
        before.iter().any(|(_, count)| *count >= 2_000),
        "{before:?}"
    );
    for ((name, count), (_, was)) in rows(&place).iter().zip(&before) {
        // Looking may record a death that it proved, which is one event more.
        assert!(count >= was, "{name} had {was} rows and has {count}");
    }
}

#[test]
fn a_contender_gets_the_key_and_gives_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    Seeded::fresh(&state, 100).unwrap();
    let mut ours = Ours::register(BenchStore::open(&state).unwrap()).unwrap();
    let key = Key::parse("issue:acme/web#1").unwrap().to_string();
    for _ in 0..2 {
        assert!(ours.claim(&key).unwrap());
        ours.release(&key).unwrap();
    }
}

#[test]
fn a_log_is_filled_to_the_length_of_a_working_day_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let place = Seeded::fresh(&dir.path().join("state"), 100).unwrap().place;
    place.register(&mut place.store().unwrap()).unwrap();
    for _ in 0..3 {
        fill_log(&place).unwrap();
        let pages = log_pages(&place.database());
        assert!((DAY_PAGES..DAY_PAGES + 10).contains(&pages), "{pages}");
    }
}
