//! One transaction, and the few ways in which the other files run statements in it.
//!
//! Dropping it without a commit rolls it back. If SQLite itself rolled it back after an error (a full disk, a
//! failed read), every later call fails: nothing is ever written outside the transaction.
//!
//! *Crash*: what was not committed never happened. *Clock jump*: the caller's clock is only passed on. *Older
//! version*: see the migrations.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use rusqlite::{Connection, Params};
use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::store::{Lock, StoreError, Tx};
use tenure_core::time::{Now, Timestamp};

use super::attached::Attached;
use super::bells;
use super::connection::{Durability, classify};
use super::moved;
use super::row::Cells;

/// An SQLite transaction.
pub(super) struct SqliteTx<'a> {
    conn: &'a Connection,
    store: &'a str,
    clock: &'a dyn Fn() -> Now,
    /// The files that a commit writes to, if it does.
    files: Option<(&'a Attached, Durability)>,
    /// The newest event that this transaction appended.
    event: Cell<Option<u64>>,
    /// Rows that were skipped in lists.
    damage: RefCell<Vec<String>>,
    /// The bells that a commit rings.
    rings: RefCell<BTreeSet<u64>>,
}

impl<'a> SqliteTx<'a> {
    /// Wraps the transaction that was just begun on `conn`.
    pub(super) fn begun(
        conn: &'a Connection,
        store: &'a str,
        clock: &'a dyn Fn() -> Now,
        files: Option<(&'a Attached, Durability)>,
    ) -> Self {
        Self {
            conn,
            store,
            clock,
            files,
            event: Cell::new(None),
            damage: RefCell::default(),
            rings: RefCell::default(),
        }
    }

    /// Runs a statement that returns no rows; returns how many it changed.
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

    /// The same without unreadable rows, which [`SqliteTx::taken_damage`] reports. A row is named by its first
    /// cell.
    pub(super) fn all_readable<T>(
        &self,
        table: &'static str,
        sql: &str,
        params: impl Params,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let (found, damage) = self.readable_and_damage(table, sql, params, read)?;
        self.damage.borrow_mut().extend(damage);
        Ok(found)
    }

    /// The first `limit` readable rows, or all if it is negative, of a statement. `params` makes its
    /// parameters for a limit.
    pub(super) fn first_readable<T, P: Params>(
        &self,
        table: &'static str,
        sql: &str,
        limit: i64,
        params: impl Fn(i64) -> P,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut skipped = 0;
        loop {
            let most = if limit < 0 { limit } else { limit + skipped };
            let (found, damage) = self.readable_and_damage(table, sql, params(most), &read)?;
            let count = i64::try_from(damage.len()).unwrap_or(i64::MAX);
            // Behind unreadable rows there may be others.
            if limit < 0 || count == skipped {
                self.damage.borrow_mut().extend(damage);
                return Ok(found);
            }
            skipped = count;
        }
    }

    /// The rows of a statement, and what is wrong with those that cannot be read.
    fn readable_and_damage<T>(
        &self,
        table: &'static str,
        sql: &str,
        params: impl Params,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<(Vec<T>, Vec<String>), StoreError> {
        let rows = self.all(table, sql, params, |cells| {
            let name = cells.name();
            match read(cells) {
                Err(StoreError::Damaged { why, .. }) => Ok(Err(format!("{name}, {why}"))),
                other => other.map(Ok),
            }
        })?;
        let mut found = Vec::with_capacity(rows.len());
        let mut damage = Vec::new();
        for row in rows {
            match row {
                Ok(row) => found.push(row),
                Err(why) => damage.push(why),
            }
        }
        Ok((found, damage))
    }

    /// The rows that were skipped so far.
    pub(super) fn taken_damage(&self) -> Vec<String> {
        self.damage.take()
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

    /// Records an appended event.
    pub(super) fn appended(&self, event: u64) {
        self.event.set(Some(event));
    }

    /// Reads what is stored about the store itself.
    pub(super) fn about_store<T>(
        &self,
        read: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.still_open()?;
        read(self.conn).map_err(|error| self.failed(&error))
    }

    /// The number that the last insert gave its row.
    pub(super) fn last_row(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    /// A count that SQLite can store and order.
    pub(super) fn count(&self, what: &str, count: u64) -> Result<i64, StoreError> {
        i64::try_from(count).map_err(|_| StoreError::Unavailable {
            store: self.store.to_owned(),
            why: format!("{what} {count} is too large to store"),
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

    /// A key was granted or became free, or its line moved: its waiters must check.
    pub(super) fn moved(&self, key: &Key) {
        self.rings.borrow_mut().insert(bells::of_key(key));
    }

    /// A session was closed: its waiters must check.
    pub(super) fn closed(&self, session: SessionId) {
        self.rings.borrow_mut().insert(bells::of_session(session));
    }

    /// Makes all changes durable, or none; then wakes waiters, and keeps the log short.
    ///
    /// A commit into a file that others can no longer reach is not acknowledged.
    pub(super) fn commit_all(&self) -> Result<(), StoreError> {
        self.still_open()?;
        self.conn
            .prepare_cached("COMMIT")
            .and_then(|mut statement| statement.execute([]))
            .map_err(|error| self.failed(&error))?;
        if let Some((files, durability)) = self.files {
            files.bells.ring(&self.rings.borrow());
            files.check(self.store)?;
            // Only what is on disk is remembered: a heartbeat may be lost after a power failure.
            if let (Some(event), Durability::Full) = (self.event.get(), durability) {
                files.mark.note(event);
            }
            files.log.keep_short(self.conn, durability);
        }
        Ok(())
    }

    pub(super) fn time(&self) -> Now {
        (self.clock)()
    }

    fn still_open(&self) -> Result<(), StoreError> {
        if !self.conn.is_autocommit() {
            return Ok(());
        }
        Err(StoreError::over(self.store))
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        classify(self.store, Some(self.conn), error)
    }
}

impl Drop for SqliteTx<'_> {
    fn drop(&mut self) {
        if !self.conn.is_autocommit() && self.conn.execute_batch("ROLLBACK").is_err() {
            // The start of the next transaction tries again and reports the error.
        }
    }
}

/// A limit for SQL, where zero means all.
pub(super) fn limit_or_all(limit: usize) -> i64 {
    match limit {
        0 => -1,
        limit => i64::try_from(limit).unwrap_or(-1),
    }
}

impl Tx for SqliteTx<'_> {
    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.commit_all()
    }

    fn lock(&mut self, _: &Lock) -> Result<(), StoreError> {
        // SQLite has one writer at a time: a write transaction has locked everything.
        Ok(())
    }

    fn now(&mut self) -> Result<Now, StoreError> {
        Ok(self.time())
    }

    fn take_damage(&mut self) -> Vec<String> {
        self.taken_damage()
    }

    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError> {
        self.about_store(moved::news)
    }
}
