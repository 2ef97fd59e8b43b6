//! The log stays short, whatever the traffic, and closing never pays for it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::store::{Checkpoint, Store, StoreError, TxMode};
use tenure_core::time::Timestamp;
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample::{EPOCH, clock, event, id, lease, session, token};
use tenure_testkit::poll;

const PATIENCE: Duration = Duration::from_secs(60);

/// A page with its frame header.
const PAGE: u64 = 4096 + 24;

/// What a heartbeat leaves if nobody waits: 16 pages, and the header of the file.
const SHORT: u64 = 32 + 16 * PAGE;

/// 256 pages, and a tenth more for the transaction that reached them.
const MAX_LENGTH: u64 = 256 * PAGE * 11 / 10;

/// The same for a log that a process checkpoints, which is copied at 3,000 pages.
const MAX_TENDED: u64 = 3_000 * PAGE * 11 / 10;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, clock()).unwrap()
}

fn log_length(path: &Path) -> u64 {
    let log = path.with_file_name("tenure.db-wal");
    fs_err::metadata(log).unwrap().len()
}

fn write_event(store: &mut dyn Store, n: u32) {
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.append_event(&event(n, "it changed"), Timestamp(EPOCH))
        .unwrap();
    tx.commit().unwrap();
}

fn beat(store: &mut dyn Store, n: u32, at: i64) {
    let mut tx = store.begin(TxMode::Beat).unwrap();
    assert!(
        tx.touch_session(token(n), Timestamp(EPOCH + at), &lease(at), None, None)
            .unwrap()
    );
    tx.commit().unwrap();
}

fn with_session(path: &Path) -> SqliteStore {
    let mut store = open(path);
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    tx.commit().unwrap();
    store
}

#[test]
fn the_log_stays_short_over_thousands_of_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut store = with_session(&path);
    let mut longest = 0;
    for n in 0..5_000 {
        write_event(&mut store, n);
        longest = longest.max(log_length(&path));
    }
    assert!(longest < MAX_LENGTH, "the log grew to {longest} bytes");
}

#[test]
fn the_log_stays_short_over_thousands_of_heartbeats_of_new_connections() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    drop(with_session(&path));
    let mut longest = 0;
    for at in 0..2_000 {
        beat(&mut open(&path), 1, at);
        longest = longest.max(log_length(&path));
    }
    assert!(longest <= SHORT, "the log stayed at {longest} bytes");
}

#[test]
fn a_log_is_not_copied_while_somebody_waits_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut first = with_session(&path);
    while log_length(&path) <= 2 * SHORT {
        write_event(&mut first, 1);
    }
    std::thread::scope(|scope| {
        let mut tx = first.begin(TxMode::Beat).unwrap();
        let touched = tx.touch_session(token(1), Timestamp(EPOCH + 1), &lease(1), None, None);
        assert!(touched.unwrap());
        let second = scope.spawn(|| write_event(&mut open(&path), 2));
        let waiters = path.with_file_name("tenure.db.waiting");
        poll(PATIENCE, "the second waits to write", || {
            let file = fs_err::File::open(&waiters).ok()?;
            file.file().try_lock().is_err().then_some(())
        });
        tx.commit().unwrap();
        let length = log_length(&path);
        assert!(length > SHORT, "the second had to wait: {length} bytes");
        second.join().unwrap();
    });
    beat(&mut first, 1, 2);
    let length = log_length(&path);
    assert!(length <= SHORT, "the log stayed at {length} bytes");
}

#[test]
fn the_log_stays_short_beside_readers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    drop(with_session(&path));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut store = open(&path);
                while !over.load(Ordering::Relaxed) {
                    let mut tx = store.begin(TxMode::Read).unwrap();
                    assert!(tx.session(id(1)).unwrap().is_some());
                }
            });
        }
        let mut store = open(&path);
        for n in 0..2_000 {
            write_event(&mut store, n);
        }
        over.store(true, Ordering::Relaxed);
    });
    let length = log_length(&path);
    assert!(length < 4 * MAX_LENGTH, "the log grew to {length} bytes");
    // As soon as no one reads, it is short again.
    let mut store = open(&path);
    for n in 0..300 {
        write_event(&mut store, n);
    }
    let length = log_length(&path);
    assert!(length < MAX_LENGTH, "the log stayed at {length} bytes");
}

#[test]
fn one_large_transaction_does_not_leave_a_large_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut store = with_session(&path);
    let mut tx = store.begin(TxMode::Write).unwrap();
    for n in 0..20_000 {
        tx.append_event(&event(n, "it changed"), Timestamp(EPOCH))
            .unwrap();
    }
    tx.commit().unwrap();
    write_event(&mut store, 1);
    let length = log_length(&path);
    assert!(length < MAX_LENGTH, "the log stayed at {length} bytes");
}

#[test]
fn closing_leaves_the_log_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    drop(with_session(&path));
    assert!(log_length(&path) > 0, "closing made a checkpoint");
    assert!(
        open(&path)
            .begin(TxMode::Read)
            .unwrap()
            .session(id(1))
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_reader_sees_one_state_and_does_not_stop_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut writer = with_session(&path);
    let mut reader = open(&path);
    let mut tx = reader.begin(TxMode::Read).unwrap();
    assert_eq!(tx.events(&Default::default()).unwrap().len(), 0);
    write_event(&mut writer, 1);
    assert_eq!(tx.events(&Default::default()).unwrap().len(), 0);
    drop(tx);
    let mut tx = reader.begin(TxMode::Read).unwrap();
    assert_eq!(tx.events(&Default::default()).unwrap().len(), 1);
}

#[test]
fn a_read_transaction_cannot_be_turned_into_a_write_behind_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut writer = with_session(&path);
    let mut reader = open(&path);
    let mut tx = reader.begin(TxMode::Read).unwrap();
    assert!(tx.session(id(1)).unwrap().is_some());
    write_event(&mut writer, 1);
    let answer = tx.append_event(&event(2, "late"), Timestamp(EPOCH));
    assert!(matches!(answer, Err(StoreError::Busy { .. })), "{answer:?}");
}

/// A process that checkpoints the log, and a log that is longer than others leave it.
fn checkpointed(path: &Path) -> SqliteStore {
    let mut tender = with_session(path);
    tender.checkpoint(Checkpoint::Small);
    let mut n = 0;
    while log_length(path) < 2 * MAX_LENGTH {
        write_event(&mut tender, n);
        n += 1;
        assert!(n < 10_000, "the log is truncated");
    }
    tender
}

#[test]
fn a_tended_log_is_left_to_its_process_and_written_again_from_its_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut tender = checkpointed(&path);
    let length = log_length(&path);
    beat(&mut open(&path), 1, 1);
    write_event(&mut open(&path), 1);
    assert!(log_length(&path) >= length, "another process truncated it");
    tender.checkpoint(Checkpoint::Full);
    let length = log_length(&path);
    for n in 0..50 {
        write_event(&mut tender, n);
    }
    assert_eq!(
        log_length(&path),
        length,
        "it is not written from its start"
    );
}

#[test]
fn a_tended_log_stays_bounded_and_keeps_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut tender = checkpointed(&path);
    let mut longest = 0;
    for n in 0..5_000 {
        let before = log_length(&path);
        write_event(&mut tender, n);
        tender.checkpoint(Checkpoint::Small);
        let length = log_length(&path);
        assert!(length >= before, "{before} bytes became {length}");
        longest = longest.max(length);
    }
    assert!(longest < MAX_TENDED, "the log grew to {longest} bytes");
}

#[test]
fn a_log_is_truncated_by_the_process_that_tended_it_or_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut tender = checkpointed(&path);
    tender.checkpoint(Checkpoint::Final);
    assert_eq!(log_length(&path), 0);
    drop(tender);
    let killed = tended_again(&path);
    drop(killed);
    beat(&mut open(&path), 1, 2);
    let length = log_length(&path);
    assert!(length < MAX_LENGTH, "the log stayed at {length} bytes");
}

/// The same in a store that exists.
fn tended_again(path: &Path) -> SqliteStore {
    let mut tender = open(path);
    tender.checkpoint(Checkpoint::Small);
    while log_length(path) < 2 * MAX_LENGTH {
        write_event(&mut tender, 1);
    }
    tender
}

#[test]
fn one_process_tends_a_log_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let first = checkpointed(&path);
    let mut second = open(&path);
    second.checkpoint(Checkpoint::Small);
    drop(first);
    second.checkpoint(Checkpoint::Small);
    let length = log_length(&path);
    beat(&mut open(&path), 1, 1);
    assert!(log_length(&path) >= length, "nobody tends it");
}

/// A process that hangs must not make the log grow without end.
#[test]
fn a_log_that_is_neglected_is_truncated_by_any_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let _stuck = checkpointed(&path);
    let mut longest = 0;
    for n in 0..3_000 {
        write_event(&mut open(&path), n);
        longest = longest.max(log_length(&path));
    }
    assert!(longest < MAX_TENDED * 4 / 3, "it grew to {longest} bytes");
    assert!(log_length(&path) < longest, "it was never truncated");
}
