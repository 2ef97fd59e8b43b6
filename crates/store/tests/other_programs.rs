//! Databases of other programs: read as they are, and left as they are.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tenure_store::sqlite::foreign::{rows, rows_within};

const MAX_LENGTH: u64 = 1 << 20;
const QUERY: &str = "SELECT name FROM t ORDER BY rowid";

fn database(dir: &Path, mode: &str) -> (PathBuf, Connection) {
    let path = dir.join("other.sqlite");
    let owner = Connection::open(&path).unwrap();
    let sql = format!(
        "PRAGMA journal_mode = {mode}; CREATE TABLE t (name TEXT); INSERT INTO t VALUES ('a');"
    );
    owner.execute_batch(&sql).unwrap();
    (path, owner)
}

fn names(path: &Path) -> Result<Vec<String>, String> {
    let rows = rows_within(path, QUERY, MAX_LENGTH)?;
    Ok(rows.into_iter().flatten().flatten().collect())
}

/// Every file of a directory with its content.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let listed = fs::read_dir(dir).unwrap().map(|one| one.unwrap().path());
    let mut found: Vec<_> = listed
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn an_idle_database_with_a_log_is_read_and_gets_no_file_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let (path, owner) = database(dir.path(), "wal");
    drop(owner);
    let before = files(dir.path());
    assert_eq!(before.len(), 1, "its program has closed it");
    let link = tempfile::tempdir().unwrap();
    let linked = link.path().join("link.sqlite");
    std::os::unix::fs::symlink(&path, &linked).unwrap();
    assert_eq!(names(&path).unwrap(), ["a"]);
    assert_eq!(names(&linked).unwrap(), ["a"]);
    assert_eq!(files(dir.path()), before);
}

#[test]
fn what_is_only_in_the_log_is_read_while_its_program_has_it_open_and_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (path, owner) = database(dir.path(), "wal");
    owner
        .execute_batch("PRAGMA wal_autocheckpoint = 0; INSERT INTO t VALUES ('b');")
        .unwrap();
    let before = files(dir.path());
    assert_eq!(before.len(), 3, "database, -wal and -shm");
    assert_eq!(names(&path).unwrap(), ["a", "b"]);
    // Its program is in the middle of a change.
    owner
        .execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES ('c');")
        .unwrap();
    assert_eq!(names(&path).unwrap(), ["a", "b"]);
    owner.execute_batch("ROLLBACK").unwrap();
    assert_eq!(files(dir.path()).len(), 3);

    let crashed = tempfile::tempdir().unwrap();
    let copied = crashed.path().join("other.sqlite");
    fs::copy(&path, &copied).unwrap();
    let log = crashed.path().join("other.sqlite-wal");
    let mut logged = fs::read(dir.path().join("other.sqlite-wal")).unwrap();
    fs::write(&log, &logged).unwrap();
    let before = files(crashed.path());
    assert_eq!(names(&copied).unwrap(), ["a", "b"]);
    assert_eq!(files(crashed.path()), before);
    // The last frame was cut off: what was committed before it counts.
    logged.pop();
    fs::write(&log, &logged).unwrap();
    assert_eq!(names(&copied).unwrap(), ["a"]);
    fs::write(&log, "not a log").unwrap();
    assert!(names(&copied).unwrap_err().contains("no such table"));
    // Pages that the log has twice, and a database that got shorter.
    let many = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO t SELECT 'filler ' || i FROM n; DELETE FROM t WHERE name LIKE 'filler%'; VACUUM;";
    owner.execute_batch(many).unwrap();
    assert_eq!(names(&path).unwrap(), ["a", "b"]);
    owner
        .execute_batch("PRAGMA wal_checkpoint(RESTART); INSERT INTO t VALUES ('d')")
        .unwrap();
    assert_eq!(names(&path).unwrap(), ["a", "b", "d"]);
}

#[test]
fn a_database_without_a_log_is_read_under_its_locks() {
    let dir = tempfile::tempdir().unwrap();
    let (path, owner) = database(dir.path(), "delete");
    assert_eq!(names(&path).unwrap(), ["a"]);
    owner.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let before = files(dir.path());
    assert_eq!(names(&path).unwrap_err(), "another program has it locked");
    assert_eq!(files(dir.path()), before);
}

#[test]
fn a_database_that_is_too_long_or_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, owner) = database(dir.path(), "wal");
    let log = fs::metadata(dir.path().join("other.sqlite-wal")).unwrap();
    let shorter = log.len() - 1;
    assert!(
        rows_within(&path, QUERY, shorter)
            .unwrap_err()
            .contains("longer")
    );
    drop(owner);
    assert!(
        rows_within(&path, QUERY, 4096)
            .unwrap_err()
            .contains("longer")
    );
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len((64 << 20) + 1).unwrap();
    assert!(rows(&path, QUERY).unwrap_err().contains("longer"));
    fs::write(&path, "").unwrap();
    assert_eq!(names(&path).unwrap_err(), "it is empty");
    fs::write(&path, "text ".repeat(1000)).unwrap();
    assert_eq!(names(&path).unwrap_err(), "it is not an SQLite database");
    assert!(names(dir.path()).unwrap_err().contains("regular"));
}
