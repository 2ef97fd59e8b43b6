//! A store that this version did not just write: the golden database, `golden/schema-1.db`.
//!
//! `scripts/golden` makes it of the schema and `golden/rows.sql`, in which every column of every table has a value. Until
//! the first release schema 1 is edited in place, and the file is made again with each edit.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::Value;
use tenure_core::store::{
    ClaimFilter, ConversationFilter, DeliveryFilter, JobFilter, RunFilter, SessionFilter, Store,
    TxMode,
};
use tenure_store::SqliteStore;
use tenure_testkit::conformance::sample::clock;

const MAKE: &str = "run scripts/golden, and commit crates/store/tests/golden/schema-1.db";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schema-1.db")
}

fn texts(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn count(conn: &Connection, sql: &str) -> i64 {
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// A table with its columns.
struct Table {
    name: String,
    columns: Vec<String>,
}

/// The tables of a database, except `meta`, in which a store describes itself.
fn tables(conn: &Connection) -> Vec<Table> {
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
         AND name <> 'meta' ORDER BY name";
    let columns = |table: &str| format!("SELECT name FROM pragma_table_info('{table}')");
    let described = |name: String| Table {
        columns: texts(conn, &columns(&name)),
        name,
    };
    texts(conn, names).into_iter().map(described).collect()
}

fn rows(conn: &Connection, table: &Table) -> Vec<Vec<Value>> {
    let columns = table.columns.join(", ");
    let sql = format!("SELECT {columns} FROM {} ORDER BY {columns}", table.name);
    let mut statement = conn.prepare(&sql).unwrap();
    let width = statement.column_count();
    let cells = |row: &rusqlite::Row<'_>| (0..width).map(|at| row.get(at)).collect();
    let rows = statement.query_map([], cells).unwrap();
    rows.map(Result::unwrap).collect()
}

/// The statements that made a database.
fn schema(conn: &Connection) -> Vec<String> {
    texts(
        conn,
        "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1",
    )
}

fn new_store(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    drop(SqliteStore::open(&path, clock()).unwrap());
    path
}

fn copy_of_golden(dir: &Path) -> PathBuf {
    let path = dir.join("tenure.db");
    fs_err::copy(golden(), &path).unwrap();
    path
}

#[test]
fn it_has_the_schema_of_a_new_store() {
    let dir = tempfile::tempdir().unwrap();
    let new = Connection::open(new_store(dir.path(), "new.db")).unwrap();
    let old = Connection::open(copy_of_golden(dir.path())).unwrap();
    let number = "PRAGMA user_version";
    assert_eq!(count(&old, number), count(&new, number), "{MAKE}");
    assert!(schema(&old) == schema(&new), "the schema differs: {MAKE}");
}

#[test]
fn it_has_a_value_in_every_column() {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(copy_of_golden(dir.path())).unwrap();
    let mut empty = Vec::new();
    for Table { name, columns } in tables(&conn) {
        for column in columns {
            let filled = format!("SELECT count({column}) FROM {name}");
            if count(&conn, &filled) == 0 {
                empty.push(format!("{name}.{column}"));
            }
        }
    }
    assert!(
        empty.is_empty(),
        "no value in {empty:?}: add one to crates/store/tests/golden/rows.sql; then {MAKE}"
    );
}

#[test]
fn opening_and_reading_it_changes_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let path = copy_of_golden(dir.path());
    let conn = Connection::open(&path).unwrap();
    let tables = tables(&conn);
    let all =
        |conn: &Connection| -> Vec<_> { tables.iter().map(|table| rows(conn, table)).collect() };
    let before = all(&conn);
    drop(conn);
    let mut store = SqliteStore::open(&path, clock()).unwrap();
    assert_eq!(store.take_news(), None);
    everything_reads(&mut store);
    drop(store);
    let after = all(&Connection::open(&path).unwrap());
    for ((table, before), after) in tables.iter().zip(before).zip(after) {
        assert_eq!(after, before, "{}", table.name);
    }
}

/// Reads every noun, and changes what it read.
fn everything_reads(store: &mut SqliteStore) {
    let mut tx = store.begin(TxMode::Write).unwrap();
    let all = SessionFilter {
        closed_too: true,
        ..SessionFilter::default()
    };
    let sessions = tx.list_sessions(&all).unwrap();
    assert!(!sessions.is_empty());
    for session in &sessions {
        let id = session.id;
        tx.newest_holds(id).unwrap();
        tx.waits_of(&[id]).unwrap();
        tx.pending_notices(id, 9).unwrap();
        tx.metadata(id).unwrap();
        tx.lineage(id).unwrap();
        tx.quarantined_transcripts(id).unwrap();
        tx.writes_of(id, 9).unwrap();
        tx.tree_of(id).unwrap();
        tx.participations(id).unwrap();
        tx.update_session(session).unwrap();
    }
    let claims = ClaimFilter {
        free_too: true,
        ..ClaimFilter::default()
    };
    assert!(!tx.list_claims(&claims).unwrap().is_empty());
    assert!(!tx.events(&Default::default()).unwrap().is_empty());
    assert!(!tx.list_missions().unwrap().is_empty());
    assert!(!tx.list_pointers().unwrap().is_empty());
    assert!(!tx.mirror_failures().unwrap().is_empty());
    let conversations = tx.list_conversations(&ConversationFilter::default());
    for conversation in conversations.unwrap() {
        let (agent, item) = (&conversation.agent, &conversation.item);
        tx.past_ids(agent, &conversation.role, item).unwrap();
        tx.item_state(item).unwrap();
        tx.update_conversation(&conversation).unwrap();
    }
    for run in tx.list_runs(&RunFilter::default()).unwrap() {
        tx.update_run(&run).unwrap();
    }
    assert!(!tx.tokens("host-one/1000").unwrap().is_empty());
    assert!(!tx.parks().unwrap().is_empty());
    for job in tx.list_jobs(&JobFilter::default()).unwrap() {
        tx.job_events(&job.id).unwrap();
        tx.breaker(&job.item).unwrap();
        tx.update_job(&job).unwrap();
    }
    let deliveries = tx.list_deliveries(&DeliveryFilter::default()).unwrap();
    assert!(!deliveries.is_empty());
    for delivery in deliveries {
        tx.undecided_of(&delivery.endpoint, true, 9).unwrap();
    }
    assert_eq!(tx.take_damage(), [""; 0]);
    // What was changed is dropped.
}

/// Makes the file again: the schema of a new store, and the rows.
#[test]
#[ignore = "scripts/golden runs it"]
fn make() {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(new_store(dir.path(), "new.db")).unwrap();
    conn.execute_batch(include_str!("golden/rows.sql")).unwrap();
    assert_eq!(
        count(&conn, "SELECT count(*) FROM pragma_foreign_key_check"),
        0
    );
    // A store that remembers no file takes any for its own.
    let same = "DELETE FROM meta WHERE name = 'file'; \
         UPDATE meta SET value = '0123456789abcdef0123456789abcdef' WHERE name = 'store_id'";
    conn.execute_batch(same).unwrap();
    let path = golden();
    if path.exists() {
        fs_err::remove_file(&path).unwrap();
    }
    conn.execute("VACUUM INTO ?1", [path.to_str().unwrap()])
        .unwrap();
    let made = Connection::open(&path).unwrap();
    assert_eq!(texts(&made, "PRAGMA journal_mode = WAL"), ["wal"]);
    made.close().unwrap();
}
