//! A store that was copied, moved or restored reports it once, and grants no old number again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tenure_core::claim::EndedBy;
use tenure_core::id::Epoch;
use tenure_core::store::{Store, TxMode};
use tenure_core::time::Timestamp;
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample::{EPOCH, clock, end, event, hold, id, key, session};

const RAISE: u64 = 1 << 32;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, clock()).unwrap()
}

fn granted(store: &mut SqliteStore, name: &str) -> u64 {
    let mut tx = store.begin(TxMode::Write).unwrap();
    let record = tx.lock_claim(&key(name)).unwrap();
    if let Some(open) = record.current() {
        tx.end_hold(&open.key, open.epoch, end(EndedBy::Release))
            .unwrap();
    }
    let mut grant = hold(name, 1, 1);
    grant.epoch = Epoch(record.epoch.0 + 1);
    tx.insert_hold(&grant, record.epoch).unwrap();
    tx.append_event(&event(1, "granted"), Timestamp(EPOCH))
        .unwrap();
    tx.commit().unwrap();
    grant.epoch.0
}

/// A state directory with a key that is held for the second time, and one that was released.
fn original(dir: &Path) -> PathBuf {
    let state = dir.join("state");
    fs_err::create_dir(&state).unwrap();
    let path = state.join("tenure.db");
    let mut store = open(&path);
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    tx.commit().unwrap();
    for name in ["wp:held", "wp:held", "wp:back"] {
        granted(&mut store, name);
    }
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.end_hold(&key("wp:back"), Epoch(1), end(EndedBy::Death))
        .unwrap();
    tx.commit().unwrap();
    path
}

fn copy(from: &Path, to: &Path, names: &[&str]) -> PathBuf {
    fs_err::create_dir(to).unwrap();
    for name in names {
        fs_err::copy(from.with_file_name(name), to.join(name)).unwrap();
    }
    to.join("tenure.db")
}

const ALL: &[&str] = &[
    "tenure.db",
    "tenure.db-wal",
    "tenure.db-shm",
    "tenure.db.mark",
];

fn store_id(path: &Path) -> String {
    let plain = Connection::open(path).unwrap();
    plain
        .query_row(
            "SELECT value FROM meta WHERE name = 'store_id'",
            [],
            |row| row.get(0),
        )
        .unwrap()
}

#[test]
fn f_c23_a_copy_says_once_that_it_is_one_and_grants_other_numbers() {
    for names in [ALL, &["tenure.db", "tenure.db-wal"][..]] {
        let dir = tempfile::tempdir().unwrap();
        let path = original(dir.path());
        let other = copy(&path, &dir.path().join("copy"), names);
        let mut store = open(&other);
        let news = store.take_news().expect("it is said");
        assert!(news.contains("copied, moved or restored"), "{news}");
        assert_eq!(open(&other).take_news(), None, "it is said once");
        assert_eq!(granted(&mut store, "wp:held"), RAISE + 3);
        assert_eq!(granted(&mut store, "wp:new"), RAISE + 1);
        let mut tx = store.begin(TxMode::Read).unwrap();
        let log = tx.events(&Default::default()).unwrap();
        let said = log.iter().filter(|event| event.kind == "store.moved");
        assert_eq!(said.count(), 1);
        drop(tx);
        let mut first = open(&path);
        assert_eq!(first.take_news(), None, "the original is as it was");
        assert_eq!(granted(&mut first, "wp:held"), 3);
        assert_ne!(store_id(&path), store_id(&other));
    }
}

/// Holders keep their keys, and a resumed session gets back what it had.
#[test]
fn what_is_held_stays_held_in_a_store_that_was_moved() {
    let dir = tempfile::tempdir().unwrap();
    let path = original(dir.path());
    let other = copy(&path, &dir.path().join("copy"), ALL);
    let mut store = open(&other);
    let mut tx = store.begin(TxMode::Read).unwrap();
    let held = tx.claim(&key("wp:held")).unwrap().unwrap();
    assert_eq!(held.epoch, Epoch(RAISE + 2));
    assert_eq!(held.current().unwrap().epoch, held.epoch);
    let back = tx.claim(&key("wp:back")).unwrap().unwrap();
    let mine = tx.newest_hold_of(id(1), &key("wp:back")).unwrap().unwrap();
    assert!(back.is_regrantable(&mine));
}

#[test]
fn a_renamed_directory_is_the_same_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = original(dir.path());
    let there = dir.path().join("elsewhere");
    fs_err::rename(path.parent().unwrap(), &there).unwrap();
    let mut store = open(&there.join("tenure.db"));
    assert_eq!(store.take_news(), None);
    assert_eq!(granted(&mut store, "wp:held"), 3);
}

/// A backup that is copied over the database keeps the file, but not its newest changes.
#[test]
fn f_c23_a_restored_backup_grants_no_old_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = original(dir.path());
    let backup = dir.path().join("backup.db");
    let plain = Connection::open(&path).unwrap();
    plain
        .execute("VACUUM INTO ?1", [backup.to_str().unwrap()])
        .unwrap();
    drop(plain);
    assert_eq!(granted(&mut open(&path), "wp:held"), 3);
    for gone in ["-wal", "-shm"] {
        fs_err::remove_file(format!("{}{gone}", path.display())).unwrap();
    }
    let bytes = fs_err::read(&backup).unwrap();
    // VACUUM INTO does not keep WAL mode; a backup by copying does.
    let mut bytes = bytes;
    bytes[18..20].copy_from_slice(&[2, 2]);
    fs_err::write(&path, bytes).unwrap();
    let mut store = open(&path);
    assert!(store.take_news().unwrap().contains("newest changes"));
    assert_eq!(granted(&mut store, "wp:held"), RAISE + 3);
}

/// A lost or old mark is silently recreated.
#[test]
fn a_store_without_a_mark_is_used_in_silence() {
    let dir = tempfile::tempdir().unwrap();
    let path = original(dir.path());
    fs_err::remove_file(path.with_file_name("tenure.db.mark")).unwrap();
    let mut store = open(&path);
    assert_eq!(store.take_news(), None);
    assert!(path.with_file_name("tenure.db.mark").exists());
    assert_eq!(granted(&mut store, "wp:held"), 3);
}
