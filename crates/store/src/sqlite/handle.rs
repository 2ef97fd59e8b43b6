//! One transaction, and the few ways in which the nouns' files run statements in it.
//!
//! Dropping it without a commit undoes it. When SQLite itself undid it after an error (a full disk, a
//! failed read), every later call fails: nothing is ever written outside the transaction.
//!
//! *Crash*: what was not committed never was. *Clock jump*: the clock is the caller's and is only passed
//! on. *Older version*: see the migrations.

use rusqlite::{Connection, Params};
use tenure_core::store::StoreError;
use tenure_core::time::Now;

use super::connection::{Durability, classify};
use super::log::Log;
use super::row::Cells;

/// A transaction of SQLite.
pub(super) struct SqliteTx<'a> {
    conn: &'a Connection,
    store: &'a str,
    clock: &'a dyn Fn() -> Now,
    /// The log that a commit lengthens, if it does.
    log: Option<(&'a Log, Durability)>,
}

impl<'a> SqliteTx<'a> {
    /// Stands for the transaction that was just begun on `conn`.
    pub(super) fn begun(
        conn: &'a Connection,
        store: &'a str,
        clock: &'a dyn Fn() -> Now,
        log: Option<(&'a Log, Durability)>,
    ) -> Self {
        Self {
            conn,
            store,
            clock,
            log,
        }
    }

    /// Runs a statement that returns no rows; tells how many it changed.
    pub(super) fn run(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        self.still_open()?;
        self.conn
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params))
            .map_err(|error| self.failed(&error))
    }

    /// Reads all rows of a statement on `table`.
    pub(super) fn all<T>(
        &self,
        table: &'static str,
        sql: &str,
        params: impl Params,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.still_open()?;
        let failed = |error: rusqlite::Error| self.failed(&error);
        let mut statement = self.conn.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(params).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            found.push(read(&mut Cells::new(row, self.store, table))?);
        }
        Ok(found)
    }

    /// Reads the first row of a statement on `table`.
    pub(super) fn first<T>(
        &self,
        table: &'static str,
        sql: &str,
        params: impl Params,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.still_open()?;
        let failed = |error: rusqlite::Error| self.failed(&error);
        let mut statement = self.conn.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(params).map_err(failed)?;
        match rows.next().map_err(failed)? {
            Some(row) => read(&mut Cells::new(row, self.store, table)).map(Some),
            None => Ok(None),
        }
    }

    /// The number that the last insert gave its row.
    pub(super) fn last_row(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    /// A count that SQLite can keep and order.
    pub(super) fn count(&self, what: &str, count: u64) -> Result<i64, StoreError> {
        i64::try_from(count).map_err(|_| StoreError::Unavailable {
            store: self.store.to_owned(),
            why: format!("{what} {count} is larger than it can keep"),
        })
    }

    /// How many rows a statement on `table` has.
    pub(super) fn rows(
        &self,
        table: &'static str,
        sql: &str,
        params: impl Params,
    ) -> Result<usize, StoreError> {
        let sql = format!("SELECT count(*) FROM ({sql})");
        let count = self.first(table, &sql, params, |cells| cells.number::<u64>())?;
        Ok(usize::try_from(count.unwrap_or_default()).unwrap_or(usize::MAX))
    }

    /// Makes everything last, or nothing; then keeps the log short.
    pub(super) fn commit_all(&self) -> Result<(), StoreError> {
        self.still_open()?;
        self.conn
            .prepare_cached("COMMIT")
            .and_then(|mut statement| statement.execute([]))
            .map_err(|error| self.failed(&error))?;
        if let Some((log, durability)) = self.log {
            log.keep_short(self.conn, durability);
        }
        Ok(())
    }

    /// What time it is.
    pub(super) fn time(&self) -> Now {
        (self.clock)()
    }

    fn still_open(&self) -> Result<(), StoreError> {
        if !self.conn.is_autocommit() {
            return Ok(());
        }
        Err(StoreError::Unavailable {
            store: self.store.to_owned(),
            why: "the transaction was undone after an earlier error".to_owned(),
        })
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        classify(self.store, Some(self.conn), error)
    }
}

impl Drop for SqliteTx<'_> {
    fn drop(&mut self) {
        if !self.conn.is_autocommit() && self.conn.execute_batch("ROLLBACK").is_err() {
            // Beginning the next transaction tries once more and reports what is wrong.
        }
    }
}

/// A limit as SQL has it, where zero means all.
pub(super) fn limit_or_all(limit: usize) -> i64 {
    match limit {
        0 => -1,
        limit => i64::try_from(limit).unwrap_or(-1),
    }
}
