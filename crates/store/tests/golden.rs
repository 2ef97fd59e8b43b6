//! Stores written by an earlier tenure are migrated without loss.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::Value;
use tenure_core::store::{ClaimFilter, Mode, SessionFilter, Store};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample::{clock, key};

fn copy_of(name: &str, dir: &Path) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = dir.join("tenure.db");
    fs_err::copy(golden.join(name), &path).unwrap();
    path
}

fn texts(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// A table with its columns.
type Shape = (String, Vec<String>);

/// The tables of a database, except `meta`, which records its version.
fn shapes(conn: &Connection) -> Vec<Shape> {
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
         AND name <> 'meta' ORDER BY name";
    let columns = |table: &String| {
        texts(
            conn,
            &format!("SELECT name FROM pragma_table_info('{table}')"),
        )
    };
    let named = |table: String| (table.clone(), columns(&table));
    texts(conn, tables).into_iter().map(named).collect()
}

/// Every row of a table, by these columns.
fn rows(conn: &Connection, (table, columns): &Shape) -> Vec<Vec<Value>> {
    let columns = columns.join(", ");
    let sql = format!("SELECT {columns} FROM {table} ORDER BY {columns}");
    let mut statement = conn.prepare(&sql).unwrap();
    let width = statement.column_count();
    let cells = |row: &rusqlite::Row<'_>| (0..width).map(|at| row.get(at)).collect();
    let rows = statement.query_map([], cells).unwrap();
    rows.map(Result::unwrap).collect()
}

fn version(path: &Path) -> u32 {
    let plain = Connection::open(path).unwrap();
    let number = plain.query_row("PRAGMA user_version", [], |row| row.get(0));
    number.unwrap()
}

#[test]
fn every_schema_before_the_newest_has_a_golden_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new.db");
    drop(SqliteStore::open(&path, clock()).unwrap());
    for number in 1..version(&path) {
        let name = format!("schema-{number}.db");
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        assert!(
            golden.join(&name).is_file(),
            "{name} is missing: docs/adding-a-column.md says how to make it"
        );
        let old = copy_of(&name, dir.path());
        assert_eq!(version(&old), number);
    }
}

#[test]
fn a_store_of_the_first_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-1.db");
}

#[test]
fn a_store_of_the_second_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-2.db");
}

#[test]
fn a_store_of_the_third_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-3.db");
}

#[test]
fn a_store_of_the_fourth_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-4.db");
}

#[test]
fn a_store_of_the_fifth_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-5.db");
}

#[test]
fn a_store_of_the_sixth_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-6.db");
}

#[test]
fn a_store_of_the_seventh_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-7.db");
}

#[test]
fn a_store_of_the_eighth_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-8.db");
}

#[test]
fn a_store_of_the_ninth_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-9.db");
}

#[test]
fn a_store_of_the_tenth_schema_is_migrated_with_nothing_lost() {
    is_migrated_with_nothing_lost("schema-10.db");
}

fn is_migrated_with_nothing_lost(golden: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = copy_of(golden, dir.path());
    let old = version(&path);
    let plain = Connection::open(&path).unwrap();
    let shapes = shapes(&plain);
    assert!(shapes.len() >= 20, "{shapes:?}");
    let before: Vec<_> = shapes.iter().map(|shape| rows(&plain, shape)).collect();
    let pairs = shapes.iter().zip(&before);
    let empty: Vec<&String> = pairs
        .filter(|(_, rows)| rows.is_empty())
        .map(|((table, _), _)| table)
        .collect();
    assert!(
        empty.is_empty(),
        "{golden} proves nothing about {empty:?}: give each a row in make_{old}.py, and run it"
    );
    drop(plain);
    let mut store = SqliteStore::open(&path, clock()).unwrap();
    assert_eq!(store.take_news(), None, "a migration is no news");
    let mut tx = store.begin(Mode::Read).unwrap();
    let everything = SessionFilter {
        closed_too: true,
        ..SessionFilter::default()
    };
    let sessions = tx.list_sessions(&everything).unwrap();
    assert_eq!(sessions.len(), 2);
    assert_eq!(tx.list_claims(&ClaimFilter::default()).unwrap().len(), 1);
    assert!(tx.claim(&key("issue:acme/web#42")).unwrap().is_some());
    assert_eq!(tx.events(&Default::default()).unwrap().len(), 1);
    assert!(tx.has_notices(sessions[1].id).unwrap());
    drop(tx);
    // The migrated rows can be written, too.
    let mut tx = store.begin(Mode::Write).unwrap();
    tx.update_session(&sessions[0]).unwrap();
    drop(tx);
    let plain = Connection::open(&path).unwrap();
    for (shape, before) in shapes.iter().zip(before) {
        assert_eq!(rows(&plain, shape), before, "{}", shape.0);
    }
    let schema = texts(&plain, "SELECT value FROM meta WHERE name = 'schema'");
    assert!(version(&path) > old);
    assert_eq!(schema, [version(&path).to_string()]);
}

#[test]
fn a_conversation_that_was_bound_to_a_daemon_is_known_to_be_run_by_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = copy_of("schema-4.db", dir.path());
    let plain = Connection::open(&path).unwrap();
    let open = "UPDATE sessions SET closed_at = NULL, closed_by = NULL, closed_why = NULL, end_kind = NULL, \
         agent = 'codex', hosted = 1";
    let changed = plain.execute(open, []).unwrap();
    let other =
        "UPDATE sessions SET agent = 'opencode' WHERE rowid = (SELECT max(rowid) FROM sessions)";
    plain.execute(other, []).unwrap();
    assert_eq!(changed, 2);
    drop(plain);
    let mut store = SqliteStore::open(&path, clock()).unwrap();
    let mut tx = store.begin(Mode::Read).unwrap();
    for session in tx.list_sessions(&SessionFilter::default()).unwrap() {
        assert!(session.process.is_some(), "{session:?}");
        let daemon = match session.agent.as_str() {
            "codex" => session.process.clone(),
            _ => None,
        };
        assert_eq!(session.daemon, daemon, "{}", session.agent);
    }
}
