//! Copying a store: every row of every table, from either backend into either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value, json};
use tenure_core::store::{Store, StoreError, TxMode};
use tenure_postgres::PostgresEnd;
use tenure_store::SqliteStore;
use tenure_store::copy::{Copied, CopyEndpoint, CopySource, copy};
use tenure_store::sqlite::SqliteEnd;
use tenure_testkit::conformance::sample::clock;
use tenure_testkit::postgres::PostgresServer;

use super::support::{access, made, open};

const LEASE: Duration = Duration::from_secs(600);
const RAISE: i64 = 1 << 32;

/// All rows by table, each as an object.
type Dump = BTreeMap<String, Vec<Map<String, Value>>>;

/// A place of a store.
enum At {
    File(PathBuf),
    Server(String, String),
}

impl At {
    fn end(&self, creates: bool) -> Box<dyn CopyEndpoint> {
        match self {
            At::File(path) => Box::new(SqliteEnd::open(path, clock()).unwrap()),
            At::Server(url, _) => Box::new(PostgresEnd::open(access(url), creates).unwrap()),
        }
    }

    fn begin(&self) -> Result<(), StoreError> {
        match self {
            At::File(path) => {
                let mut store = SqliteStore::open(path, clock())?;
                store.begin(TxMode::Read)?.now().map(|_| ())
            }
            At::Server(url, _) => open(url).begin(TxMode::Read)?.now().map(|_| ()),
        }
    }

    fn dump(&self, server: &PostgresServer) -> Dump {
        match self {
            At::File(path) => dump_file(path),
            At::Server(_, schema) => dump_schema(server, schema),
        }
    }
}

fn dump_file(path: &Path) -> Dump {
    let conn = Connection::open(path).unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' \
         AND name NOT IN ('meta', 'sqlite_sequence')";
    let mut names = conn.prepare(names).unwrap();
    let names: Vec<String> = names
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let rows = |table: &String| {
        let mut all = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns: Vec<String> = all.column_names().map(str::to_owned).collect();
        let rows = all.query_map([], |row| {
            let cell = |index: usize| match row.get_ref(index).unwrap() {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => json!(number),
                ValueRef::Real(number) => json!(number),
                ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
                ValueRef::Blob(bytes) => json!(hex(bytes)),
            };
            let cells = columns.iter().enumerate();
            Ok(cells.map(|(at, name)| (name.clone(), cell(at))).collect())
        });
        rows.unwrap().collect::<Result<Vec<_>, _>>().unwrap()
    };
    names
        .iter()
        .map(|name| (name.clone(), rows(name)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\\x{digits}")
}

fn dump_schema(server: &PostgresServer, schema: &str) -> Dump {
    let names = server.ask(&format!(
        "SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' \
         AND tablename NOT IN ('store', 'clock', 'counter', 'commits', 'keepers', 'watched', 'untold')"
    ));
    let rows = |table: &String| {
        let rows = server.ask(&format!("SELECT to_json(t)::text FROM {schema}.{table} t"));
        let parse = |row: &String| {
            let mut row: Map<String, Value> = serde_json::from_str(row).unwrap();
            if table == "events" || table == "sessions" {
                for own in ["written", "uid", "by_role", "by_address"] {
                    row.remove(own);
                }
            }
            row
        };
        rows.iter().map(parse).collect()
    };
    names
        .iter()
        .map(|name| (name.clone(), rows(name)))
        .collect()
}

/// What a copy changes: leases of open sessions, turns; and an event and notices that it adds.
fn without_changes(mut dump: Dump) -> Dump {
    for (table, rows) in &mut dump {
        for row in rows.iter_mut() {
            if table == "sessions" && row["closed_at"].is_null() {
                for column in ["lease_era", "lease_era_private", "lease_at"] {
                    row.remove(column);
                }
            }
            if table == "waiters" {
                row.retain(|column, _| !column.starts_with("turn_"));
            }
        }
        let is_added = |row: &Map<String, Value>| match table.as_str() {
            "events" => row["kind"] == "store.moved",
            "notices" => row["message"]
                .as_str()
                .unwrap()
                .contains("every epoch was raised"),
            _ => false,
        };
        rows.retain(|row| !is_added(row));
        rows.sort_by_key(|row| serde_json::to_string(row).unwrap());
    }
    dump
}

/// A store with two rows in every table: one with every column, one with only those that it needs.
fn filled(path: &Path) {
    drop(
        SqliteStore::open(path, clock())
            .unwrap()
            .begin(TxMode::Read)
            .unwrap(),
    );
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let columns = "SELECT t.name, c.name, c.type, c.\"notnull\" OR c.pk > 0, f.\"table\", f.\"to\" FROM sqlite_schema t \
         JOIN pragma_table_info(t.name) c LEFT JOIN pragma_foreign_key_list(t.name) f ON f.\"from\" = c.name \
         WHERE t.type = 'table' AND t.name NOT IN ('meta', 'sqlite_sequence') ORDER BY t.name, c.cid";
    let mut statement = conn.prepare(columns).unwrap();
    type Column = (String, String, String, bool, Option<String>, Option<String>);
    let columns: Vec<Column> = statement
        .query_map([], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
            ))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut tables: BTreeMap<&str, Vec<&Column>> = BTreeMap::new();
    for column in &columns {
        tables.entry(&column.0).or_default().push(column);
    }
    for (table, columns) in tables {
        for row in 0..2_i64 {
            let value = |column: &Column| -> String {
                let (_, name, kind, is_needed, to_table, to_column) = column;
                if row == 0 && !is_needed {
                    return "NULL".into();
                }
                let text = match (table, name.as_str()) {
                    // Ids that are read.
                    ("sessions", "id") => session_id(row),
                    _ if to_table.as_deref() == Some("sessions") => session_id(row),
                    _ => match (to_table, to_column) {
                        (Some(table), Some(column)) => format!("{table} {column} 'é' {row}"),
                        _ => format!("{table} {name} 'é' {row}"),
                    },
                };
                let number = 1 + row + 10 * i64::from(name == "at");
                match kind.as_str() {
                    "INTEGER" => number.to_string(),
                    "REAL" => format!("{number}.25"),
                    "BLOB" => format!("x'00ff{row:02x}'"),
                    _ => format!("'{}'", text.replace('\'', "''")),
                }
            };
            let names: Vec<&str> = columns.iter().map(|column| column.1.as_str()).collect();
            let values: Vec<String> = columns.iter().map(|column| value(column)).collect();
            let sql = format!(
                "INSERT INTO {table} ({}) VALUES ({})",
                names.join(", "),
                values.join(", ")
            );
            conn.execute(&sql, [])
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }
    // A number that was given out and whose row is gone is not given out again.
    conn.execute(
        "UPDATE sqlite_sequence SET seq = 70 WHERE name = 'deliveries'",
        [],
    )
    .unwrap();
    conn.execute(
        "INSERT INTO meta (name, value) VALUES ('tickets', '41')",
        [],
    )
    .unwrap();
}

fn session_id(row: i64) -> String {
    format!("01890a5d-ac96-774b-bcce-b302099a805{row}")
}

fn copied(from: &At, to: &At, name: &str) -> Result<Copied, StoreError> {
    copy(from.end(false).as_mut(), to.end(true).as_mut(), name, LEASE)
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn every_row_of_every_table_is_copied_between_all_backends() {
    let server = PostgresServer::shared();
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| At::File(dir.path().join(name));
    let schema = || {
        let schema = server.new_schema();
        At::Server(server.url(&schema), schema)
    };
    let chain = [file("a.db"), schema(), schema(), file("b.db"), file("c.db")];
    let At::File(first) = &chain[0] else {
        unreachable!()
    };
    filled(first);
    let tables = chain[0].dump(&server).len();
    assert!(tables > 28, "{tables}");
    for (number, pair) in chain.windows(2).enumerate() {
        let (from, to) = (&pair[0], &pair[1]);
        let before = without_changes(from.dump(&server));
        let done = copied(from, to, &format!("copy-{number}")).unwrap();
        assert!(done.rows >= 2 * tables as u64, "{done:?}");
        let after = without_changes(to.dump(&server));
        for (table, rows) in &before {
            assert_eq!(after.get(table), Some(rows), "{table}, copy {number}");
        }
        assert_eq!(before.len(), after.len());
        let error = from.begin().unwrap_err();
        let expected = to.end(false).location();
        assert!(
            matches!(&error, StoreError::Moved { to, .. } if *to == expected),
            "{error}"
        );
        // Sessions that are open have a lease on the new store's clock.
        let leases: Vec<_> = to.dump(&server)["sessions"]
            .iter()
            .filter(|row| row["closed_at"].is_null())
            .map(|row| row["lease_era"].clone())
            .collect();
        assert_eq!(leases.len(), 1);
        assert_ne!(leases[0], json!("sessions lease_era 'é' 0"));
    }
    // The same command again finds that it is done; another one that the store was moved.
    let again = copied(&chain[3], &chain[4], "copy-9").unwrap();
    assert!(again.was_resumed);
    let elsewhere = copied(&chain[3], &schema(), "copy-10").unwrap_err();
    assert!(matches!(elsewhere, StoreError::Moved { .. }), "{elsewhere}");
    let conn = Connection::open(dir.path().join("c.db")).unwrap();
    let last = |name: &str| -> i64 {
        let sql = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
        conn.query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    let meta = |name: &str| -> String {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        conn.query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    assert_eq!((last("deliveries"), meta("tickets").as_str()), (70, "41"));
    // Four copies, and each raised every epoch.
    assert_eq!(meta("base"), (4 * RAISE).to_string());
    let newest: i64 = conn
        .query_row("SELECT max(id) FROM events", [], |row| row.get(0))
        .unwrap();
    assert!(last("events") >= newest);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn only_an_empty_store_is_copied_into_and_a_refused_copy_changes_nothing() {
    let server = PostgresServer::shared();
    let dir = tempfile::tempdir().unwrap();
    let from = At::File(dir.path().join("a.db"));
    let At::File(path) = &from else {
        unreachable!()
    };
    filled(path);
    let schema = server.new_schema();
    let to = At::Server(server.url(&schema), schema.clone());
    tenure_testkit::conformance::sample::with_sessions(&mut made(&server.url(&schema)), [1]);
    let before = (from.dump(&server), to.dump(&server));
    let error = copied(&from, &to, "copy-1").unwrap_err();
    assert!(error.to_string().contains("empty"), "{error}");
    let same = copied(&from, &from, "copy-2").unwrap_err();
    assert!(
        same.to_string().contains("itself") || matches!(same, StoreError::Busy { .. }),
        "{same}"
    );
    assert_eq!(before, (from.dump(&server), to.dump(&server)));
    from.begin().unwrap();
    to.begin().unwrap();
}

/// Between the second and the third commit neither is in use; the same command finishes it.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_copy_that_stopped_after_each_commit_is_never_in_use_twice_and_can_be_repeated() {
    let server = PostgresServer::shared();
    let dir = tempfile::tempdir().unwrap();
    for (number, last_done) in ["unfinished", "moved"].into_iter().enumerate() {
        for is_file in [true, false] {
            let from = At::File(dir.path().join(format!("from-{number}-{is_file}.db")));
            let At::File(path) = &from else {
                unreachable!()
            };
            filled(path);
            let schema = server.new_schema();
            let to = if is_file {
                At::File(dir.path().join(format!("to-{number}.db")))
            } else {
                At::Server(server.url(&schema), schema.clone())
            };
            let expected = without_changes(from.dump(&server));
            let mut stops = Stops {
                end: from.end(false),
                at: last_done,
            };
            let mut other = Stops {
                end: to.end(true),
                at: last_done,
            };
            copy(&mut stops, &mut other, "copy-1", LEASE).unwrap_err();
            drop((stops, other));
            let refused = to.begin().unwrap_err();
            assert!(
                matches!(refused, StoreError::Unfinished { .. }),
                "{refused}"
            );
            assert_eq!(from.begin().is_ok(), last_done == "unfinished");
            let done = copied(&from, &to, "copy-2").unwrap();
            assert_eq!(done.was_resumed, last_done == "moved");
            to.begin().unwrap();
            assert!(matches!(from.begin(), Err(StoreError::Moved { .. })));
            assert_eq!(without_changes(to.dump(&server)), expected);
        }
    }
}

/// An end that fails instead of what follows a commit.
struct Stops {
    end: Box<dyn CopyEndpoint>,
    at: &'static str,
}

impl Stops {
    fn stopped(&self) -> StoreError {
        StoreError::Unavailable {
            store: self.end.location(),
            why: "it stops here".into(),
        }
    }
}

impl CopySource for Stops {
    fn location(&self) -> String {
        self.end.location()
    }
    fn snapshot(&mut self) -> Result<tenure_store::copy::CopyState, StoreError> {
        self.end.snapshot()
    }
    fn tables(&mut self) -> Result<Vec<tenure_store::copy::Table>, StoreError> {
        self.end.tables()
    }
    fn read(
        &mut self,
        table: &tenure_store::copy::Table,
        each: &mut dyn FnMut(Vec<tenure_store::copy::CopiedRow>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.end.read(table, each)
    }
    fn sequences(&mut self) -> Result<BTreeMap<String, i64>, StoreError> {
        self.end.sequences()
    }
}

impl CopyEndpoint for Stops {
    fn lock(&mut self) -> Result<tenure_store::copy::CopyState, StoreError> {
        self.end.lock()
    }
    fn is_empty(&mut self, table: &tenure_store::copy::Table) -> Result<bool, StoreError> {
        self.end.is_empty(table)
    }
    fn clear(&mut self, table: &tenure_store::copy::Table) -> Result<(), StoreError> {
        self.end.clear(table)
    }
    fn write(
        &mut self,
        table: &tenure_store::copy::Table,
        rows: Vec<tenure_store::copy::CopiedRow>,
    ) -> Result<(), StoreError> {
        self.end.write(table, rows)
    }
    fn commit_unfinished(&mut self, rest: &tenure_store::copy::Rest) -> Result<(), StoreError> {
        self.end.commit_unfinished(rest)
    }
    fn commit_filled(&mut self, rest: &tenure_store::copy::Rest) -> Result<(), StoreError> {
        self.end.commit_filled(rest)
    }
    fn commit_moved(&mut self, to: &str, copy: &str) -> Result<(), StoreError> {
        if self.at == "unfinished" {
            return Err(self.stopped());
        }
        self.end.commit_moved(to, copy)
    }
    fn commit_finished(&mut self, _: &str) -> Result<(), StoreError> {
        Err(self.stopped())
    }
}
