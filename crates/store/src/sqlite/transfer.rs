//! A database file in a copy of a store: see [`crate::copy`].
//!
//! A store that was moved, and an unfinished copy, have a schema number above every real one: no version of tenure uses
//! them, and checking costs nothing where the number is the usual one.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::{ToSqlOutput, Value as Stored, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, params, params_from_iter};
use tenure_core::event::EventKind;
use tenure_core::id::{Epoch, SessionId};
use tenure_core::notice::Notice;
use tenure_core::store::StoreError;
use tenure_core::time::Now;

use super::SqliteStore;
use super::connection::{Durability, classify};
use super::migrations::{MIGRATIONS, SET_ASIDE};
use super::moved::{BASE, COPIED_FROM, MOVED_TO, TICKETS, meta, number, set_meta};
use crate::copy::{CopiedCell, CopiedRow, CopyEndpoint, CopySource, CopyState, Rest, Table};

/// The name of the last copy that it was part of.
const COPY: &str = "copy";
/// Tables that describe the store itself.
const OWN: &[&str] = &["meta", "sqlite_sequence"];
/// Rows of a batch.
const BATCH: usize = 200;

impl ToSql for CopiedCell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            CopiedCell::Null => ToSqlOutput::Owned(Stored::Null),
            CopiedCell::Number(number) => ToSqlOutput::Owned(Stored::Integer(*number)),
            CopiedCell::Real(number) => ToSqlOutput::Owned(Stored::Real(*number)),
            CopiedCell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            CopiedCell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

fn cell(value: ValueRef<'_>) -> CopiedCell {
    match value {
        ValueRef::Null => CopiedCell::Null,
        ValueRef::Integer(number) => CopiedCell::Number(number),
        ValueRef::Real(number) => CopiedCell::Real(number),
        ValueRef::Text(text) => CopiedCell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => CopiedCell::Bytes(bytes.to_vec()),
    }
}

fn forget(conn: &Connection, name: &str) -> rusqlite::Result<()> {
    conn.execute("DELETE FROM meta WHERE name = ?1", [name])
        .map(|_| ())
}

/// Sets the number of the schema, which excludes every version that knows only lower ones.
fn set_schema(conn: &Connection, is_aside: bool) -> rusqlite::Result<()> {
    let newest = MIGRATIONS.last().map_or((0, 0, ""), |step| {
        (step.number, step.min_writer, step.needs)
    });
    let (number, min_writer, needs) = newest;
    let (number, min_writer, needs) = if is_aside {
        (
            SET_ASIDE + number,
            SET_ASIDE + number,
            env!("CARGO_PKG_VERSION"),
        )
    } else {
        (number, min_writer, needs)
    };
    set_meta(conn, "schema", &number.to_string())?;
    set_meta(conn, "min_writer", &min_writer.to_string())?;
    set_meta(conn, "needs", needs)?;
    conn.execute_batch(&format!("PRAGMA user_version = {number}"))
}

/// A database file, for a copy.
#[derive(Debug)]
pub struct SqliteEnd {
    store: SqliteStore,
}

impl SqliteEnd {
    /// Opens it whether it is in use, moved or unfinished; creates it if there is none.
    pub fn open(path: &Path, clock: Box<dyn Fn() -> Now>) -> Result<Self, StoreError> {
        let store = SqliteStore::open_aside_too(path, clock)?;
        Ok(Self { store })
    }

    /// A connection to a database that nobody else uses, for its rows.
    pub(super) fn alone(conn: Connection, location: String, clock: Box<dyn Fn() -> Now>) -> Self {
        Self {
            store: SqliteStore::without_files(conn, location, clock),
        }
    }

    pub(super) fn into_conn(self) -> Connection {
        self.store.conn
    }

    pub(super) fn conn(&self) -> &Connection {
        &self.store.conn
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        classify(&self.store.location, Some(self.conn()), error)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.store.check_place()?;
        self.store.execute("COMMIT")?;
        // Hooks must not rely on what they found before: the store may be set aside now, or in use again.
        if let Some(files) = &self.store.files {
            files.mark.note(None);
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        if self.conn().is_autocommit() {
            self.store.check_place()?;
            self.store.be_durable(Durability::Full)?;
            self.store.execute("BEGIN IMMEDIATE")?;
        }
        Ok(())
    }

    /// Has tables and the line of waiters give out numbers above these.
    pub(super) fn number_on(&self, sequences: &BTreeMap<String, i64>) -> rusqlite::Result<()> {
        let conn = self.conn();
        if let Some(last) = sequences.get(TICKETS) {
            set_meta(conn, TICKETS, &last.to_string())?;
        }
        for (table, last) in sequences {
            let numbers =
                "SELECT 1 FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%'";
            let is_numbered = conn.query_row(numbers, [table], |_| Ok(())).optional()?;
            if is_numbered.is_none() {
                continue;
            }
            conn.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
            conn.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                params![table, last],
            )?;
        }
        Ok(())
    }

    fn add_rest(&self, rest: &Rest) -> rusqlite::Result<()> {
        let conn = self.conn();
        let now = (self.store.clock)();
        set_meta(conn, BASE, &rest.base.to_string())?;
        self.number_on(&rest.sequences)?;
        let lease = i64::try_from(rest.lease.as_millis()).unwrap_or(i64::MAX);
        conn.execute(
            "UPDATE sessions SET lease_era = ?1, lease_era_private = ?2, lease_at = ?3 WHERE closed_at IS NULL",
            params![now.era.id, now.era.private, now.steady.saturating_add(lease)],
        )?;
        conn.execute(
            "UPDATE waiters SET turn_epoch = NULL, turn_era = NULL, turn_era_private = NULL, turn_at = NULL",
            [],
        )?;
        conn.execute(
            "INSERT INTO events (at, kind, mechanism, evidence) VALUES (?1, ?2, ?3, ?4)",
            params![
                now.wall.0,
                EventKind::StoreMoved.as_str(),
                rest.filled.mechanism(),
                rest.filled.recorded(&rest.from)
            ],
        )?;
        let why_raised = rest.filled.why_raised();
        let held: Vec<(String, String, i64)> = conn
            .prepare("SELECT session, key, epoch FROM holds WHERE ended_at IS NULL")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        for (session, key, stored) in held {
            let epoch = stored.saturating_add(rest.base);
            if let Ok(to) = SessionId::parse(&session) {
                let told = Notice::of_raised_epoch(
                    to,
                    &key,
                    Epoch(epoch.unsigned_abs()),
                    &why_raised,
                    now.wall,
                );
                conn.execute(
                    "INSERT INTO notices (recipient, kind, message, key, epoch, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![session, told.kind.as_str(), told.message, key, epoch, now.wall.0],
                )?;
            }
        }
        set_meta(conn, COPY, &rest.copy)
    }

    fn standing(&self) -> Result<CopyState, StoreError> {
        let conn = self.conn();
        let standing = || -> rusqlite::Result<CopyState> {
            Ok(CopyState {
                id: meta(conn, "store_id")?.unwrap_or_default(),
                moved_to: meta(conn, MOVED_TO)?,
                copied_from: meta(conn, COPIED_FROM)?,
                copy: meta(conn, COPY)?,
                base: super::moved::base(conn)?,
            })
        };
        standing().map_err(|error| self.failed(&error))
    }
}

impl CopySource for SqliteEnd {
    fn location(&self) -> String {
        self.store.location.clone()
    }

    fn snapshot(&mut self) -> Result<CopyState, StoreError> {
        if self.conn().is_autocommit() {
            self.store.check_place()?;
            self.store.execute("BEGIN")?;
        }
        self.standing()
    }

    fn tables(&mut self) -> Result<Vec<Table>, StoreError> {
        let listed = || -> rusqlite::Result<Vec<Table>> {
            let mut statement = self.conn().prepare(
                "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
                 WHERE t.type = 'table' ORDER BY t.name, c.cid",
            )?;
            let mut rows = statement.query([])?;
            let mut tables: Vec<Table> = Vec::new();
            while let Some(row) = rows.next()? {
                let (name, column): (String, String) = (row.get(0)?, row.get(1)?);
                match tables.last_mut() {
                    Some(table) if table.name == name => table.columns.push(column),
                    _ => tables.push(Table {
                        name,
                        columns: vec![column],
                    }),
                }
            }
            tables.retain(|table| !OWN.contains(&table.name.as_str()));
            Ok(tables)
        };
        listed().map_err(|error| self.failed(&error))
    }

    fn read(
        &mut self,
        table: &Table,
        each: &mut dyn FnMut(Vec<CopiedRow>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let failed = |error: rusqlite::Error| self.failed(&error);
        let sql = format!(
            "SELECT {} FROM {} ORDER BY 1",
            table.columns.join(", "),
            table.name
        );
        let mut statement = self.conn().prepare(&sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        let mut batch = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let cells = (0..table.columns.len()).map(|index| row.get_ref(index).map(cell));
            batch.push(
                cells
                    .collect::<rusqlite::Result<CopiedRow>>()
                    .map_err(failed)?,
            );
            let has_bytes = batch.last().is_some_and(|row: &CopiedRow| {
                row.iter().any(|cell| matches!(cell, CopiedCell::Bytes(_)))
            });
            if has_bytes || batch.len() == BATCH {
                each(std::mem::take(&mut batch))?;
            }
        }
        each(batch)
    }

    fn sequences(&mut self) -> Result<BTreeMap<String, i64>, StoreError> {
        let read = || -> rusqlite::Result<BTreeMap<String, i64>> {
            let mut statement = self
                .conn()
                .prepare("SELECT name, seq FROM sqlite_sequence")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let mut all: BTreeMap<String, i64> = rows.collect::<Result<_, _>>()?;
            all.insert(TICKETS.to_owned(), number(self.conn(), TICKETS)?);
            Ok(all)
        };
        read().map_err(|error| self.failed(&error))
    }
}

impl CopyEndpoint for SqliteEnd {
    fn lock(&mut self) -> Result<CopyState, StoreError> {
        self.begin()?;
        self.standing()
    }

    fn is_empty(&mut self, table: &Table) -> Result<bool, StoreError> {
        let sql = format!("SELECT 1 FROM {} LIMIT 1", table.name);
        let found = self.conn().query_row(&sql, [], |_| Ok(())).optional();
        let found = found.map_err(|error| self.failed(&error))?;
        Ok(found.is_none())
    }

    fn clear(&mut self, table: &Table) -> Result<(), StoreError> {
        let sql = format!("PRAGMA defer_foreign_keys = ON; DELETE FROM {}", table.name);
        let done = self.conn().execute_batch(&sql);
        done.map_err(|error| self.failed(&error))
    }

    fn write(&mut self, table: &Table, rows: Vec<CopiedRow>) -> Result<(), StoreError> {
        let places = vec!["?"; table.columns.len()].join(", ");
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({places})",
            table.name,
            table.columns.join(", ")
        );
        let write = || -> rusqlite::Result<()> {
            let conn = self.conn();
            // Until the commit, because rows come in the order of their tables' names.
            conn.execute_batch("PRAGMA defer_foreign_keys = ON")?;
            let mut statement = conn.prepare_cached(&sql)?;
            for row in &rows {
                statement.execute(params_from_iter(row))?;
            }
            Ok(())
        };
        write().map_err(|error| self.failed(&error))
    }

    fn commit_unfinished(&mut self, rest: &Rest) -> Result<(), StoreError> {
        let conn = self.conn();
        let mark = || -> rusqlite::Result<()> {
            self.add_rest(rest)?;
            set_meta(conn, COPIED_FROM, &rest.from)?;
            set_schema(conn, true)
        };
        mark().map_err(|error| self.failed(&error))?;
        self.commit()
    }

    fn commit_filled(&mut self, rest: &Rest) -> Result<(), StoreError> {
        self.add_rest(rest).map_err(|error| self.failed(&error))?;
        self.commit()?;
        if let Some(files) = &self.store.files {
            files.log.keep_short(self.conn(), Durability::Full);
        }
        Ok(())
    }

    fn commit_moved(&mut self, to: &str, copy: &str) -> Result<(), StoreError> {
        let conn = self.conn();
        let mark = || -> rusqlite::Result<()> {
            set_meta(conn, MOVED_TO, to)?;
            set_meta(conn, COPY, copy)?;
            set_schema(conn, true)
        };
        mark().map_err(|error| self.failed(&error))?;
        self.commit()
    }

    fn commit_finished(&mut self, copy: &str) -> Result<(), StoreError> {
        self.begin()?;
        let conn = self.conn();
        let finish = || -> rusqlite::Result<()> {
            if meta(conn, COPY)?.as_deref() == Some(copy) {
                forget(conn, COPIED_FROM)?;
                set_schema(conn, false)?;
            }
            Ok(())
        };
        finish().map_err(|error| self.failed(&error))?;
        self.commit()
    }
}
