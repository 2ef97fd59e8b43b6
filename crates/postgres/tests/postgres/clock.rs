//! The store's clock, and what is judged by it.

use std::time::Duration;

use tenure_core::session::ClosedBy;
use tenure_core::store::{Lock, Store, TxMode};
use tenure_core::time::{Now, Remaining, Timestamp};
use tenure_postgres::PostgresStore;
use tenure_testkit::conformance::sample::{EPOCH, closed, id, token, with_sessions};
use tenure_testkit::postgres::PostgresServer;

use super::support::{made, open};

fn now(store: &mut PostgresStore) -> Now {
    store.begin(TxMode::Read).unwrap().now().unwrap()
}

/// A write, which moves the clock's row if it is old.
fn beat(store: &mut PostgresStore) {
    let mut tx = store.begin(TxMode::Beat).unwrap();
    let now = tx.now().unwrap();
    let lease = now.after(Duration::from_secs(60));
    tx.touch_session(token(1), now.wall, &lease, None, None)
        .unwrap();
    tx.commit().unwrap();
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_server_clock_that_jumps_counts_for_twenty_seconds_forward_and_five_back_at_most() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    let mut store = made(&server.url(&schema));
    with_sessions(&mut store, [1]);
    for jump in [80_000, -80_000] {
        beat(&mut store);
        let before = now(&mut store);
        // The difference to the server's clock stands for a clock that was moved.
        server.run(&format!("UPDATE {schema}.clock SET off = off + {jump}"));
        for _ in 0..3 {
            let after = now(&mut store);
            let moved = after.steady - before.steady;
            assert!(
                (-5_000..=25_000).contains(&moved),
                "{moved} ms by a jump of {jump}"
            );
        }
        // The row follows, and goes on from there.
        beat(&mut store);
        let (one, other) = (now(&mut store), now(&mut store));
        assert!(other.steady >= one.steady, "it goes on");
        assert!(one.steady - before.steady >= -5_000);
        assert_eq!(one.era, before.era);
    }
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn time_stands_still_while_nobody_writes() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    let mut store = made(&server.url(&schema));
    with_sessions(&mut store, [1]);
    let lease = now(&mut store).after(Duration::from_secs(300));
    // A server that was down for an hour: its clock is an hour ahead of the row.
    server.run(&format!("UPDATE {schema}.clock SET last = last - 3600000"));
    let after = now(&mut store);
    assert!(matches!(lease.remaining(&after), Remaining::Open(_)));
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s01_a_renewal_that_waited_behind_a_death_changes_nothing() {
    let server = PostgresServer::shared();
    let url = server.url(&server.new_schema());
    let mut store = made(&url);
    with_sessions(&mut store, [1]);
    let mut judge = store.begin(TxMode::Write).unwrap();
    judge.lock(&Lock::Session(id(1))).unwrap();
    judge.now().unwrap();
    let mut seen = judge.session(id(1)).unwrap().unwrap();
    let renewed = std::thread::scope(|scope| {
        let renewal = scope.spawn(|| {
            let mut other = open(&url);
            let mut tx = other.begin(TxMode::Beat).unwrap();
            let lease = tenure_testkit::conformance::sample::lease(99_000);
            let renewed = tx.touch_session(token(1), Timestamp(EPOCH), &lease, None, None);
            renewed.unwrap()
        });
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        tenure_testkit::poll(Duration::from_secs(20), "the renewal waits", || {
            (renewal.is_finished() || server.ask(waits) != ["0"]).then_some(())
        });
        seen.closed = closed(ClosedBy::Death);
        judge.update_session(&seen).unwrap();
        judge.commit().unwrap();
        renewal.join().unwrap()
    });
    assert!(!renewed, "the session was closed before the renewal");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_judge_sees_the_renewal_that_it_waited_for() {
    let server = PostgresServer::shared();
    let url = server.url(&server.new_schema());
    let mut store = made(&url);
    with_sessions(&mut store, [1]);
    let lease = tenure_testkit::conformance::sample::lease(99_000);
    let mut renewal = store.begin(TxMode::Beat).unwrap();
    let renewed = renewal.touch_session(token(1), Timestamp(EPOCH + 7), &lease, None, None);
    assert!(renewed.unwrap());
    let judged = std::thread::scope(|scope| {
        let judge = scope.spawn(|| {
            let mut other = open(&url);
            let mut tx = other.begin(TxMode::Write).unwrap();
            tx.lock(&Lock::Session(id(1))).unwrap();
            let now = tx.now().unwrap();
            (now, tx.session(id(1)).unwrap().unwrap())
        });
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        tenure_testkit::poll(Duration::from_secs(20), "the judge waits", || {
            (judge.is_finished() || server.ask(waits) != ["0"]).then_some(())
        });
        renewal.commit().unwrap();
        judge.join().unwrap()
    });
    assert_eq!(judged.1.lease, lease);
}
