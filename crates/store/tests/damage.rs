//! A database that is not what was written is refused unchanged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tenure_core::store::{SessionFilter, Store, StoreError, TxMode};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample::{clock, id, key, session};

/// An intact database with some rows, all of it in its own file.
fn sound(dir: &Path) -> PathBuf {
    let path = dir.join("tenure.db");
    let mut store = SqliteStore::open(&path, clock()).unwrap();
    let mut tx = store.begin(TxMode::Write).unwrap();
    for n in 0..200 {
        tx.insert_session(&session(n)).unwrap();
    }
    tx.commit().unwrap();
    drop(store);
    // A plain connection brings the log into the file when it closes, and removes it.
    let plain = Connection::open(&path).unwrap();
    plain
        .query_row("SELECT count(*) FROM sessions", [], |_| Ok(()))
        .unwrap();
    drop(plain);
    assert!(!dir.join("tenure.db-wal").exists());
    path
}

/// Opens and reads: damage may show at either.
fn use_it(path: &Path) -> Result<(), StoreError> {
    let mut store = SqliteStore::open(path, clock())?;
    let mut tx = store.begin(TxMode::Read)?;
    let everything = SessionFilter {
        closed_too: true,
        ..SessionFilter::default()
    };
    tx.list_sessions(&everything)?;
    tx.session(id(1))?;
    tx.claim(&key("wp:1"))?;
    tx.events(&Default::default())?;
    tx.newest_holds(id(1))?;
    tx.commit()
}

/// Damages an intact database, and returns the answer of using it, after checking that no byte changed.
fn answer_to(damage: impl FnOnce(&mut Vec<u8>)) -> Result<(), StoreError> {
    let dir = tempfile::tempdir().unwrap();
    let path = sound(dir.path());
    let mut bytes = fs_err::read(&path).unwrap();
    damage(&mut bytes);
    let bad = dir.path().join("bad.db");
    fs_err::write(&bad, &bytes).unwrap();
    let answer = use_it(&bad);
    assert!(fs_err::read(&bad).unwrap() == bytes, "the file was changed");
    answer
}

#[track_caller]
fn assert_damaged(answer: &Result<(), StoreError>, says: &str) {
    match answer {
        Err(StoreError::Damaged { store, why }) => {
            assert!(store.ends_with(".db"), "{store}");
            assert!(why.contains(says), "{why:?} does not say {says:?}");
        }
        other => panic!("expected damage, got {other:?}"),
    }
}

#[test]
fn a_sound_database_is_used() {
    assert_eq!(answer_to(|_| {}), Ok(()));
}

#[test]
fn an_empty_file_is_damage() {
    assert_damaged(&answer_to(Vec::clear), "empty");
}

#[test]
fn an_empty_file_with_a_log_keeps_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    drop(SqliteStore::open(&path, clock()).unwrap());
    let mut store = SqliteStore::open(&path, clock()).unwrap();
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    tx.commit().unwrap();
    drop(store);
    let log = fs_err::read(dir.path().join("tenure.db-wal")).unwrap();
    assert!(!log.is_empty());
    fs_err::write(&path, "").unwrap();
    assert_damaged(&use_it(&path), "empty");
    assert_eq!(fs_err::read(dir.path().join("tenure.db-wal")).unwrap(), log);
    assert_eq!(fs_err::read(&path).unwrap(), b"");
}

#[test]
fn a_text_is_damage() {
    for text in ["{}", "SQLite format 3", "hello\n"] {
        assert_damaged(
            &answer_to(|bytes| *bytes = text.into()),
            "not a SQLite database",
        );
    }
    let long = "x".repeat(100_000);
    assert_damaged(
        &answer_to(|bytes| *bytes = long.into()),
        "not a SQLite database",
    );
}

#[test]
fn a_header_that_ends_early_is_damage() {
    assert_damaged(&answer_to(|bytes| bytes.truncate(50)), "within its header");
}

#[test]
fn a_truncated_database_is_damage() {
    assert_damaged(
        &answer_to(|bytes| bytes.truncate(bytes.len() / 2)),
        "truncated",
    );
    assert_damaged(
        &answer_to(|bytes| bytes.truncate(bytes.len() - 4096)),
        "truncated",
    );
    assert_damaged(
        &answer_to(|bytes| bytes.truncate(bytes.len() - 1)),
        "truncated",
    );
    assert_damaged(&answer_to(|bytes| bytes.truncate(4096)), "truncated");
}

#[test]
fn another_programs_database_is_damage() {
    let wrong = |bytes: &mut Vec<u8>| bytes[68..72].copy_from_slice(b"fsl1");
    assert_damaged(&answer_to(wrong), "another program");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("theirs.db");
    let theirs = Connection::open(&path).unwrap();
    theirs.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(theirs);
    let before = fs_err::read(&path).unwrap();
    assert_damaged(&use_it(&path), "another program");
    assert_eq!(fs_err::read(&path).unwrap(), before);
}

#[test]
fn flips_in_the_fixed_header_are_damage() {
    for at in [0, 7, 16, 17, 18, 19, 20, 21, 22, 23, 47, 59, 70, 80] {
        for bit in 0..8 {
            let answer = answer_to(|bytes| bytes[at] ^= 1 << bit);
            assert!(
                matches!(answer, Err(StoreError::Damaged { .. })),
                "byte {at}, bit {bit}: {answer:?}"
            );
        }
    }
}

/// The counters of the header may take any value: whatever is flipped there, the result is a correct answer or
/// a report of damage.
#[test]
fn flips_in_the_counters_of_the_header_never_go_further() {
    for at in (24..44).chain(48..56).chain(60..68).chain(92..100) {
        for bit in [0, 3, 7] {
            let answer = answer_to(|bytes| bytes[at] ^= 1 << bit);
            assert!(
                matches!(answer, Ok(()) | Err(StoreError::Damaged { .. })),
                "byte {at}, bit {bit}: {answer:?}"
            );
        }
    }
}

#[test]
fn a_ruined_page_is_damage_with_what_a_quick_check_finds() {
    let answer = answer_to(|bytes| {
        // Leaves of indexes: without the pages of the schema itself no check gets that far.
        const INDEX_LEAF: u8 = 0x0a;
        for page in bytes.chunks_exact_mut(4096).skip(1) {
            if page[0] == INDEX_LEAF {
                page[..200].fill(0xA5);
            }
        }
    });
    assert_damaged(&answer, "quick_check");
}

fn change(path: &Path, sql: &str) -> Vec<u8> {
    let plain = Connection::open(path).unwrap();
    plain.execute_batch(sql).unwrap();
    drop(plain);
    fs_err::read(path).unwrap()
}

#[test]
fn values_that_this_version_does_not_know_are_damage_with_their_place() {
    let cases = [
        (
            "UPDATE sessions SET activity = 'dreaming', activity_since = 1",
            "dreaming",
        ),
        (
            "UPDATE sessions SET activity = 'busy'",
            "activity is incomplete",
        ),
        ("UPDATE sessions SET id = 'x' || id", "column id"),
        (
            "UPDATE sessions SET handle = upper(handle)",
            "column handle",
        ),
        ("UPDATE sessions SET hosted = 2", "column hosted"),
        ("UPDATE sessions SET life = -1", "column life"),
        ("UPDATE sessions SET pid = NULL", "process is incomplete"),
        (
            "UPDATE sessions SET closed_at = 1, closed_by = 'magic', closed_why = ''",
            "magic",
        ),
    ];
    for (sql, says) in cases {
        let dir = tempfile::tempdir().unwrap();
        let path = sound(dir.path());
        let before = change(&path, sql);
        let answer = use_it(&path);
        assert_damaged(&answer, says);
        assert_damaged(&answer, "table sessions");
        assert!(fs_err::read(&path).unwrap() == before);
    }
}

/// The schema that this build makes.
fn newest(path: &Path) -> u32 {
    let plain = Connection::open(path).unwrap();
    let number = plain.query_row("PRAGMA user_version", [], |row| row.get(0));
    number.unwrap()
}

#[test]
fn a_store_from_the_future_is_refused_with_the_version_needed() {
    let dir = tempfile::tempdir().unwrap();
    let path = sound(dir.path());
    let known = newest(&path);
    let before = change(
        &path,
        "PRAGMA user_version = 999; UPDATE meta SET value = '999' WHERE name IN ('schema', 'min_writer'); \
         UPDATE meta SET value = '2.5.0' WHERE name = 'needs'",
    );
    let expected = StoreError::TooNew {
        store: path.display().to_string(),
        found: 999,
        known,
        needs: "2.5.0".into(),
    };
    assert_eq!(use_it(&path), Err(expected));
    assert!(fs_err::read(&path).unwrap() == before);
}

#[test]
fn a_newer_store_that_still_lets_us_write_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = sound(dir.path());
    change(
        &path,
        "PRAGMA user_version = 998; UPDATE meta SET value = '998' WHERE name = 'schema'; \
         ALTER TABLE sessions ADD COLUMN mood TEXT; CREATE TABLE moods (x TEXT) STRICT",
    );
    assert_eq!(use_it(&path), Ok(()));
}

#[test]
fn a_store_that_became_too_new_while_it_was_open_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = sound(dir.path());
    let mut store = SqliteStore::open(&path, clock()).unwrap();
    let newer = Connection::open(&path).unwrap();
    newer
        .execute_batch(
            "PRAGMA user_version = 998; \
             UPDATE meta SET value = '998' WHERE name IN ('schema', 'min_writer')",
        )
        .unwrap();
    for mode in [TxMode::Write, TxMode::Beat] {
        let answer = store.begin(mode).map(|_| ());
        assert!(
            matches!(answer, Err(StoreError::TooNew { .. })),
            "{answer:?}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_is_unavailable_with_the_systems_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    fs_err::create_dir(&path).unwrap();
    let answer = use_it(&path);
    assert!(
        matches!(&answer, Err(StoreError::Unavailable { why, .. }) if why.contains("regular file"))
    );
}
