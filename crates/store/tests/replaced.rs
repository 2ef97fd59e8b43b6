//! A database file that is removed or replaced while it is open: nothing more is acknowledged in it.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::path::Path;

use tenure_core::store::{Store, StoreError, TxMode};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample::{clock, session};

fn remove(file: &Path) {
    std::fs::remove_file(file).unwrap();
}

fn move_directory(file: &Path) {
    let dir = file.parent().unwrap();
    std::fs::rename(dir, dir.with_extension("away")).unwrap();
}

fn replace(file: &Path) {
    let copy = file.with_extension("copy");
    std::fs::copy(file, &copy).unwrap();
    std::fs::rename(copy, file).unwrap();
}

/// The directory that holds the one with the database is reached through a link.
fn point_elsewhere(file: &Path) {
    let link = file.parent().unwrap().parent().unwrap();
    std::fs::remove_file(link).unwrap();
    let other = link.with_extension("other");
    std::fs::create_dir_all(other.join("state")).unwrap();
    std::os::unix::fs::symlink(&other, link).unwrap();
}

fn is_replaced<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Replaced { .. }))
}

#[test]
fn nothing_is_acknowledged_in_a_file_that_others_cannot_reach() {
    for way in [remove, move_directory, replace, point_elsewhere] {
        let scratch = tempfile::tempdir().unwrap();
        let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
        std::fs::create_dir_all(real.join("state")).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let file = link.join("state/tenure.db");
        let mut store = SqliteStore::open(&file, clock()).unwrap();
        store.changes().unwrap();
        let mut tx = store.begin(TxMode::Write).unwrap();
        tx.insert_session(&session(1)).unwrap();
        way(&file);
        assert!(is_replaced(&tx.commit()), "a commit");
        for mode in [TxMode::Read, TxMode::Write, TxMode::Beat] {
            assert!(is_replaced(&store.begin(mode)), "{mode:?}");
        }
        assert!(is_replaced(&store.changes()), "a look for changes");
    }
}

#[test]
fn the_same_file_under_its_name_again_is_the_store_again() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, away) = (
        scratch.path().join("tenure.db"),
        scratch.path().join("away"),
    );
    let mut store = SqliteStore::open(&file, clock()).unwrap();
    std::fs::rename(&file, &away).unwrap();
    assert!(is_replaced(&store.begin(TxMode::Read)));
    std::fs::rename(&away, &file).unwrap();
    assert!(store.begin(TxMode::Read).is_ok());
}
