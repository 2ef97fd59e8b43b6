//! A log that was removed while it held changes is noticed, and nothing else is taken for that.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::id::Epoch;
use tenure_core::store::{Store, StoreError, TxMode};
use tenure_core::time::{Now, Timestamp};
use tenure_store::{Patience, SqliteStore};
use tenure_testkit::conformance::sample::{
    EPOCH, clock, event, hold, id, key, lease, session, token,
};
use tenure_testkit::poll;

const RAISE: u64 = 1 << 32;

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, clock())
}

/// The clock of another boot.
fn rebooted() -> Box<dyn Fn() -> Now> {
    let before = clock();
    Box::new(move || {
        let mut now = before();
        now.era.id = "boot-two".into();
        now
    })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    path.with_file_name(format!("tenure.db{suffix}"))
}

fn register(store: &mut SqliteStore, n: u32) {
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(n)).unwrap();
    tx.append_event(&event(n, "registered"), Timestamp(EPOCH))
        .unwrap();
    tx.commit().unwrap();
}

/// Grants a key to the first session; the epoch that it got.
fn grant(store: &mut SqliteStore, name: &str) -> Result<u64, StoreError> {
    let mut tx = store.begin(TxMode::Write)?;
    let record = tx.lock_claim(&key(name))?;
    let mut granted = hold(name, 1, 1);
    granted.epoch = Epoch(record.epoch.0 + 1);
    if let Some(open) = record.current() {
        let end = tenure_testkit::conformance::sample::end(tenure_core::claim::EndedBy::Release);
        tx.end_hold(&open.key, open.epoch, end)?;
    }
    tx.insert_hold(&granted, record.epoch)?;
    tx.append_event(&event(1, "granted"), Timestamp(EPOCH))?;
    tx.commit()?;
    Ok(granted.epoch.0)
}

/// Copies the log into the database, so that what follows is only in the log.
fn copied_so_far(path: &Path) {
    let plain = Connection::open(path).unwrap();
    plain
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
}

/// A store with one session in its database, and two grants only in its log.
fn with_grants(dir: &Path) -> PathBuf {
    let path = dir.join("tenure.db");
    let mut store = open(&path).unwrap();
    register(&mut store, 1);
    copied_so_far(&path);
    assert_eq!(grant(&mut store, "wp:1"), Ok(1));
    assert_eq!(grant(&mut store, "wp:1"), Ok(2));
    path
}

#[track_caller]
fn assert_log_lost<T>(answer: Result<T, StoreError>, says: &str) {
    match answer {
        Err(StoreError::LogLost { how, log, .. }) => {
            assert!(log.ends_with("tenure.db-wal"), "{log}");
            assert!(how.contains(says), "{how:?} does not say {says:?}");
        }
        Err(other) => panic!("expected a lost log, got {other:?}"),
        Ok(_) => panic!("a lost log was not noticed"),
    }
}

#[test]
fn a_log_removed_under_an_idle_store_is_noticed_and_can_be_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    let (log, away) = (beside(&path, "-wal"), dir.path().join("away"));
    fs_err::rename(&log, &away).unwrap();
    let before = fs_err::read(&path).unwrap();
    for _ in 0..2 {
        assert_log_lost(open(&path), "is missing");
    }
    assert_eq!(fs_err::read(&path).unwrap(), before);
    assert!(!log.exists(), "a new log would hide the loss");
    fs_err::rename(&away, &log).unwrap();
    assert_eq!(grant(&mut open(&path).unwrap(), "wp:1"), Ok(3));
}

#[test]
fn a_log_that_was_cut_off_or_exchanged_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    let log = beside(&path, "-wal");
    let whole = fs_err::read(&log).unwrap();
    fs_err::write(&log, "").unwrap();
    assert_log_lost(open(&path), "truncated");
    fs_err::write(&log, &whole[..whole.len() - 100]).unwrap();
    assert_log_lost(open(&path), "truncated");
    let mut older = whole.clone();
    older[16] ^= 1;
    fs_err::write(&log, &older).unwrap();
    assert_log_lost(open(&path), "was replaced");
    fs_err::write(&log, &whole).unwrap();
    assert!(open(&path).is_ok());
}

#[test]
fn a_log_that_held_nothing_of_its_own_is_not_missed() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    // Truncated by tenure itself.
    copied_so_far(&path);
    assert_eq!(grant(&mut open(&path).unwrap(), "wp:1"), Ok(3));
    // Copied, but not truncated.
    let plain = Connection::open(&path).unwrap();
    plain
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        .unwrap();
    std::mem::forget(plain);
    fs_err::remove_file(beside(&path, "-wal")).unwrap();
    assert_eq!(grant(&mut open(&path).unwrap(), "wp:1"), Ok(4));
}

#[test]
fn a_plain_sqlite_that_closes_last_takes_log_and_index_away_and_nobody_complains() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    let plain = Connection::open(&path).unwrap();
    plain
        .query_row("SELECT count(*) FROM claims", [], |_| Ok(()))
        .unwrap();
    drop(plain);
    assert!(!beside(&path, "-wal").exists());
    let mut store = open(&path).unwrap();
    assert_eq!(store.take_news(), None);
    assert_eq!(grant(&mut store, "wp:1"), Ok(3));
}

/// An index from before a power failure may be older than the log, in any way.
#[test]
fn an_index_of_an_earlier_boot_proves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    let stale = fs_err::read(beside(&path, "-shm")).unwrap();
    let not_the_last_to_close = open(&path).unwrap();
    copied_so_far(&path);
    drop(not_the_last_to_close);
    fs_err::write(beside(&path, "-shm"), &stale).unwrap();
    assert_eq!(fs_err::metadata(beside(&path, "-wal")).unwrap().len(), 0);
    let mut store = SqliteStore::open(&path, rebooted()).unwrap();
    assert_eq!(store.take_news(), None);
    assert_eq!(grant(&mut store, "wp:1"), Ok(3));
    // In the same boot it would be proof.
    drop(store);
    fs_err::write(beside(&path, "-shm"), &stale).unwrap();
    let again = SqliteStore::open(&path, rebooted());
    assert_log_lost(again, "");
}

/// The remedy that the error names: no granted number is granted again.
#[test]
fn f_c23_going_on_without_the_log_raises_every_epoch() {
    for reboot in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = with_grants(dir.path());
        fs_err::remove_file(beside(&path, "-wal")).unwrap();
        fs_err::remove_file(beside(&path, "-shm")).unwrap();
        let clock = if reboot { rebooted() } else { clock() };
        let mut store = SqliteStore::open(&path, clock).unwrap();
        let news = store.take_news().expect("it is said");
        assert!(news.contains("it had event 3"), "{news}");
        // The key's row is lost too, and still it does not begin at one.
        assert_eq!(grant(&mut store, "wp:1"), Ok(RAISE + 1));
        assert_eq!(grant(&mut store, "wp:1"), Ok(RAISE + 2));
        assert_eq!(open(&path).unwrap().take_news(), None, "it is said once");
        let mut tx = store.begin(TxMode::Read).unwrap();
        let log = tx.events(&Default::default()).unwrap();
        assert!(log.iter().any(|event| event.kind == "store.rolled_back"));
        assert!(tx.store_news().unwrap().is_some());
    }
}

/// A hook has no time to compare when it opens; it does before it grants anything.
#[test]
fn without_time_it_compares_before_it_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    fs_err::remove_file(beside(&path, "-wal")).unwrap();
    fs_err::remove_file(beside(&path, "-shm")).unwrap();
    let until = std::time::Instant::now() + Duration::from_secs(60);
    let limit = Patience {
        until,
        pause: |_| (),
    };
    let mut hook = SqliteStore::open_until(&path, clock(), Some(limit)).unwrap();
    assert_eq!(grant(&mut hook, "wp:1"), Ok(RAISE + 1));
    let news = open(&path)
        .unwrap()
        .take_news()
        .expect("a person is told later");
    assert!(news.contains("newest changes"), "{news}");
}

#[test]
fn a_process_that_lost_its_log_writes_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let mut store = open(&path).unwrap();
    register(&mut store, 1);
    fs_err::remove_file(beside(&path, "-wal")).unwrap();
    for mode in [TxMode::Read, TxMode::Write, TxMode::Beat] {
        assert_log_lost(store.begin(mode).map(|_| ()), "in use");
    }
}

/// Not a test by itself: a process that grants as fast as it can until it is killed.
#[test]
#[ignore = "run by other tests, as another process"]
fn one_that_grants() {
    let path = PathBuf::from(std::env::var_os("STORE").unwrap());
    let mut n: i64 = 0;
    loop {
        let mut store = open(&path).unwrap();
        for _ in 0..7 {
            grant(&mut store, "wp:1").unwrap();
            n += 1;
            let mut tx = store.begin(TxMode::Beat).unwrap();
            tx.touch_session(token(1), Timestamp(EPOCH + n), &lease(n), None, None)
                .unwrap();
            tx.commit().unwrap();
        }
    }
}

/// Not a test by itself: a process that opens the store and prints the result.
#[test]
#[ignore = "run by other tests, as another process"]
fn one_that_opens() {
    let path = PathBuf::from(std::env::var_os("STORE").unwrap());
    assert_log_lost(open(&path), "is missing");
}

fn start(name: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--ignored"])
        .env("STORE", path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn newest(path: &Path) -> u64 {
    let mut store = open(path).unwrap();
    assert_eq!(store.take_news(), None);
    let mut tx = store.begin(TxMode::Read).unwrap();
    assert!(tx.session(id(1)).unwrap().is_some());
    tx.claim(&key("wp:1"))
        .unwrap()
        .map_or(0, |claim| claim.epoch.0)
}

#[test]
fn beside_a_living_process_a_second_one_notices() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    let mut alive = open(&path).unwrap();
    assert_eq!(grant(&mut alive, "wp:1"), Ok(3));
    fs_err::remove_file(beside(&path, "-wal")).unwrap();
    assert!(start("one_that_opens", &path).wait().unwrap().success());
    assert_log_lost(grant(&mut alive, "wp:1"), "in use");
}

#[test]
fn after_kill_9_a_removed_log_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    let granted = newest(&path);
    let mut worker = start("one_that_grants", &path);
    poll(Duration::from_secs(60), "it grants", || {
        (newest(&path) > granted).then_some(())
    });
    worker.kill().unwrap();
    worker.wait().unwrap();
    // Whatever the worker was about to do: one more grant that is only in the log.
    let last = grant(&mut open(&path).unwrap(), "wp:1").unwrap();
    fs_err::rename(beside(&path, "-wal"), dir.path().join("away")).unwrap();
    assert_log_lost(open(&path), "is missing");
    fs_err::rename(dir.path().join("away"), beside(&path, "-wal")).unwrap();
    assert_eq!(newest(&path), last);
}

#[test]
fn two_hundred_crashes_raise_no_alarm_and_lose_no_grant() {
    let dir = tempfile::tempdir().unwrap();
    let path = with_grants(dir.path());
    let mut before = newest(&path);
    for round in 0..200u64 {
        let mut workers = [
            start("one_that_grants", &path),
            start("one_that_grants", &path),
        ];
        // Killed at another number of grants in each round, while both write and truncate the log.
        let wanted = before + 1 + (round * 7919) % 31;
        poll(Duration::from_secs(60), "they grant", || {
            (newest(&path) >= wanted).then_some(())
        });
        for worker in &mut workers {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
        let after = newest(&path);
        assert!(after >= wanted, "round {round}: {after} after {wanted}");
        before = after;
    }
}
