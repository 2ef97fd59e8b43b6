//! One transaction of a database file.
//!
//! Dropping it without a commit rolls it back. If SQLite itself rolled it back after an error (a full disk, a
//! failed read), every later call fails: nothing is ever written outside the transaction.
//!
//! *Crash*: what was not committed never happened. *Clock jump*: the caller's clock is only passed on. *Older
//! version*: see the migrations.

use std::collections::BTreeSet;

use rusqlite::types::{ToSqlOutput, Value as Stored, ValueRef};
use rusqlite::{CachedStatement, Connection, Row, ToSql};
use tenure_core::ignore::Ignore;
use tenure_core::store::{Lock, StoreError, WaitTopic};
use tenure_core::time::{Era, Now, Timestamp};

use super::attached::Attached;
use super::connection::{self, Durability, classify};
use super::moved;
use super::wake_files;
use crate::cells::{Cells, ColumnSource, Content, RowOf};
use crate::engine::Engine;
use crate::value::Value;

/// Looks at every statement before it runs, for tests of their plans.
pub type StatementCheck = fn(&Connection, &str);

/// An SQLite transaction.
pub struct SqliteTx<'a> {
    conn: &'a Connection,
    store: &'a str,
    clock: &'a dyn Fn() -> Now,
    /// The files that a commit writes to, if it does.
    files: Option<(&'a Attached, Durability)>,
    check: Option<StatementCheck>,
    /// What is added to every epoch, once it was read.
    base: Option<i64>,
    /// The newest event that this transaction appended.
    event: Option<u64>,
    /// Whether it changes what a session is doing.
    changes_activity: bool,
    /// How much the connection had changed before it.
    changes_before: u64,
    /// The wake files that a commit writes to.
    wakes: BTreeSet<u64>,
}

impl<'a> SqliteTx<'a> {
    /// Wraps the transaction that was just begun on `conn`.
    pub(super) fn begun(
        conn: &'a Connection,
        store: &'a str,
        clock: &'a dyn Fn() -> Now,
        files: Option<(&'a Attached, Durability)>,
        check: Option<StatementCheck>,
    ) -> Self {
        Self {
            conn,
            store,
            clock,
            files,
            check,
            base: None,
            event: None,
            changes_activity: false,
            changes_before: conn.total_changes(),
            wakes: BTreeSet::new(),
        }
    }

    /// A statement with its parameters.
    fn prepared(&self, sql: &str, params: &[Value<'_>]) -> Result<CachedStatement<'a>, StoreError> {
        if self.conn.is_autocommit() {
            return Err(StoreError::over(self.store));
        }
        if let Some(check) = self.check {
            check(self.conn, sql);
        }
        let bound = || -> rusqlite::Result<CachedStatement<'a>> {
            let mut statement = self.conn.prepare_cached(sql)?;
            for (index, value) in params.iter().enumerate() {
                statement.raw_bind_parameter(index + 1, value)?;
            }
            Ok(statement)
        };
        bound().map_err(|error| self.failed(&error))
    }

    /// Why a commit failed. If the disk did not confirm what was written, the whole change may still be in the log: if every
    /// process dies before another one overwrites it, the next one finds it there and takes it as committed.
    fn not_committed(&self, error: &rusqlite::Error) -> StoreError {
        match error.sqlite_error() {
            Some(cause) if connection::is_unconfirmed(*cause) => StoreError::OutcomeUnknown {
                store: self.store.to_owned(),
                request: None,
            },
            _ => self.failed(error),
        }
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        classify(self.store, Some(self.conn), error)
    }

    /// Makes a new generation of the store if this may change how a plain event is answered: always, but for heartbeats and
    /// traces of written files, the only changes that do not wait for the disk.
    fn note(&self, files: &Attached, durability: Durability) {
        let changed = match durability {
            Durability::Full => self.conn.total_changes() != self.changes_before,
            Durability::Order => self.changes_activity,
        };
        if changed {
            // Only what is on disk is remembered: a heartbeat may be lost after a power failure.
            files
                .mark
                .note(self.event.filter(|_| durability == Durability::Full));
        }
    }
}

/// Tables with epochs, which are stored without the base.
fn has_epochs(table: &str) -> bool {
    matches!(table, "claims" | "holds")
}

impl Engine for SqliteTx<'_> {
    const SHARED: bool = false;

    fn location(&self) -> &str {
        self.store
    }

    fn query(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        mut read: impl FnMut(&mut Cells<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let base = if has_epochs(table) { self.base()? } else { 0 };
        let mut statement = self.prepared(sql, params)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.failed(&error))? {
            read(&mut Cells::new(RowOf::new(row, self.store, table, base)))?;
        }
        Ok(())
    }

    fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<usize, StoreError> {
        let changed = self.prepared(sql, params)?.raw_execute();
        changed.map_err(|error| self.failed(&error))
    }

    fn append_event(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        self.execute(sql, params)?;
        self.event = Some(self.conn.last_insert_rowid().unsigned_abs());
        Ok(())
    }

    fn base(&mut self) -> Result<i64, StoreError> {
        if let Some(base) = self.base {
            return Ok(base);
        }
        let base = moved::base(self.conn).map_err(|error| self.failed(&error))?;
        self.base = Some(base);
        Ok(base)
    }

    fn next_ticket(&mut self) -> Result<i64, StoreError> {
        moved::next_ticket(self.conn).map_err(|error| self.failed(&error))
    }

    fn changes_activity(&mut self) {
        self.changes_activity = true;
    }

    fn wake(&mut self, topic: WaitTopic) {
        self.wakes.insert(match topic {
            WaitTopic::Key(key) => wake_files::of_key(&key),
            WaitTopic::Session(session) => wake_files::of_session(session),
        });
    }

    fn era() -> Era {
        // Deadlines of keepers are only in stores that several machines use.
        Era {
            id: String::new(),
            private: false,
        }
    }

    fn lock(&mut self, _: &Lock) -> Result<(), StoreError> {
        // SQLite has one writer at a time: a write transaction has locked everything.
        Ok(())
    }

    fn now(&mut self) -> Result<Now, StoreError> {
        Ok((self.clock)())
    }

    fn news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError> {
        moved::news(self.conn).map_err(|error| self.failed(&error))
    }

    /// Makes all changes durable, or none; then tells hooks, wakes waiters, and keeps the log short.
    ///
    /// A commit into a file that others can no longer reach is not acknowledged.
    fn commit(self) -> Result<(), StoreError> {
        let committed = self.prepared("COMMIT", &[])?.raw_execute();
        committed.map_err(|error| self.not_committed(&error))?;
        if let Some((files, durability)) = self.files {
            files.wake_files.wake(&self.wakes);
            files.check(self.store)?;
            self.note(files, durability);
            files.log.keep_short(self.conn, durability);
        }
        Ok(())
    }
}

impl Drop for SqliteTx<'_> {
    fn drop(&mut self) {
        if !self.conn.is_autocommit() {
            self.conn
                .execute_batch("ROLLBACK")
                .ignore("the start of the next transaction tries again and reports the error");
        }
    }
}

impl ColumnSource for Row<'_> {
    fn content(&self, index: usize) -> Result<Content<'_>, String> {
        match self.get_ref(index) {
            Ok(ValueRef::Null) => Ok(Content::Nothing),
            Ok(ValueRef::Integer(number)) => Ok(Content::Number(number)),
            Ok(ValueRef::Real(number)) => Ok(Content::Real(number)),
            Ok(ValueRef::Text(bytes)) => Ok(Content::Text(bytes)),
            Ok(ValueRef::Blob(bytes)) => Ok(Content::Bytes(bytes)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn column(&self, index: usize) -> String {
        let name = self.as_ref().column_name(index);
        name.map(str::to_owned).unwrap_or_default()
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = |text: String| ToSqlOutput::Owned(Stored::Text(text));
        let number =
            |number: Option<i64>| ToSqlOutput::Owned(number.map_or(Stored::Null, Stored::Integer));
        Ok(match self {
            Value::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Text(None) | Value::Bytes(None) => ToSqlOutput::Owned(Stored::Null),
            Value::Number(value) => number(*value),
            Value::Real(value) => ToSqlOutput::Owned(value.map_or(Stored::Null, Stored::Real)),
            Value::Bytes(Some(bytes)) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Value::Texts(texts) => text(serde_json::Value::from(texts.as_slice()).to_string()),
            Value::Numbers(numbers) => {
                text(serde_json::Value::from(numbers.as_slice()).to_string())
            }
            // A negative limit is none.
            Value::Limit(limit) => number(Some(limit.unwrap_or(-1))),
        })
    }
}
