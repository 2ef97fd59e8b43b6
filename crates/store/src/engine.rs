//! What an engine does with statements, and the rows on top of it.
//!
//! Each noun has one file in [`crate::rows`], with its SQL once, for every engine. [`Rows`] is a transaction of an engine
//! that answers core's questions about all nouns; it is compiled for each engine, so a call goes straight to it.
//!
//! SQL is written as SQLite reads it, so that a hook translates nothing. Another engine translates it
//! ([`Engine::query`] gets the text as it is written). These are the forms that differ:
//!
//! | written | means |
//! |---|---|
//! | `?` and `?1` | the next parameter, and the first |
//! | `x IS ?` | equal, or both empty |
//! | `instr(x, y)` | where y begins in x |
//! | `INDEXED BY name`, `NOT INDEXED` | which index SQLite uses: it cannot know how few rows are open |
//! | `CROSS JOIN t ON` | a join that SQLite runs from left to right |
//! | `json_each(?)` | the elements of a list, in the columns `value` and `key` (their order) |
//! | `/* skip locked */` | leave out rows that another transaction has locked |
//! | `/* may scan: why */` | SQLite may read the whole table; without it a test fails |
//!
//! *Crash*: what was not committed never happened. *Clock jump*: an engine says what time it is. *Older version*: see
//! each engine's schema.

use tenure_core::id::{Epoch, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{Lock, StoreError, WaitTopic};
use tenure_core::time::{Era, Now, Timestamp};

use crate::cells::Cells;
use crate::value::Value;

/// A row that a transaction may have locked.
#[derive(Debug, Clone, Copy)]
pub enum LockedRow<'a> {
    Key(&'a Key),
    Session(SessionId),
}

/// One transaction of an engine.
pub trait Engine {
    /// Whether several machines use the store, and so keepers vouch for sessions.
    const SHARED: bool;

    /// Its location for people.
    fn location(&self) -> &str;

    /// Passes each row of a statement on `table` that changes nothing to `read`.
    fn query(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnMut(&mut Cells<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// The same for one statement with several sets of parameters, in one round trip.
    fn query_each<const N: usize>(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[[Value<'_>; N]],
        mut read: impl FnMut(&mut Cells<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for params in params {
            self.query(table, sql, params, &mut read)?;
        }
        Ok(())
    }

    /// The same as [`Engine::query`] for a statement that changes the rows that it returns.
    fn change(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnMut(&mut Cells<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.query(table, sql, params, read)
    }

    /// Runs a statement that returns no rows; returns how many it changed.
    fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<usize, StoreError>;

    /// Runs a statement whose result is not needed; at the latest it runs before the commit.
    fn execute_later(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        self.execute(sql, params).map(|_| ())
    }

    /// Runs a statement that must change something, else it is a conflict. If this transaction has locked the row, the
    /// conflict may be found as late as the commit.
    fn change_row(
        &mut self,
        _row: LockedRow<'_>,
        sql: &str,
        params: &[Value<'_>],
    ) -> Result<(), StoreError> {
        changed(self.execute(sql, params)?)
    }

    /// Whether this transaction has locked a row, so that a change of it cannot fail.
    fn has_locked(&self, _row: LockedRow<'_>) -> bool {
        false
    }

    /// Whether others may wait for this transaction, so that one answer must be small.
    fn has_locks(&self) -> bool {
        false
    }

    /// Announces a statement that will be queried.
    fn prefetch(&mut self, _sql: &str, _params: &[Value<'_>]) {}

    /// Appends an event.
    fn append_event(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError>;

    /// Removes old events where the role that writes them may not delete them; none if it is done row by row.
    fn forget_events(
        &mut self,
        _before: Timestamp,
        _limit: i64,
    ) -> Result<Option<usize>, StoreError> {
        Ok(None)
    }

    /// What is added to every epoch.
    fn base(&mut self) -> Result<i64, StoreError>;

    /// The number of a new place in line, never given before.
    fn next_ticket(&mut self) -> Result<i64, StoreError>;

    /// Locks the row of a key, and makes it if it is not there.
    fn lock_key(&mut self, _key: &Key) -> Result<(), StoreError> {
        Ok(())
    }

    /// A session does something else from now on.
    fn changes_activity(&mut self) {}

    /// Something happened that waiters look for.
    fn wake(&mut self, _topic: WaitTopic) {}

    /// Notes a grant, in case its commit is not confirmed.
    fn granted(&mut self, _session: SessionId, _key: &Key, _epoch: Epoch) {}

    /// The era of the store's clock, if the store has one of its own.
    fn era() -> Era;

    fn lock(&mut self, lock: &Lock) -> Result<(), StoreError>;

    fn now(&mut self) -> Result<Now, StoreError>;

    /// The last incident of the store itself.
    fn news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError>;

    fn commit(self) -> Result<(), StoreError>;
}

pub fn changed(rows: usize) -> Result<(), StoreError> {
    match rows {
        0 => Err(StoreError::Conflict),
        _ => Ok(()),
    }
}

/// A transaction, as core sees it.
pub struct Rows<E> {
    pub engine: E,
    /// Rows that were skipped in lists.
    pub(crate) damage: Vec<String>,
}

impl<E: Engine> Rows<E> {
    pub fn new(engine: E) -> Self {
        Self {
            engine,
            damage: Vec::new(),
        }
    }

    /// Reads all rows of a statement on `table`.
    pub(crate) fn all<T>(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.engine.query(table, sql, params, |cells| {
            found.push(read(cells)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads all rows of one statement with each of these parameters.
    pub(crate) fn each<T, const N: usize>(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[[Value<'_>; N]],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.engine.query_each(table, sql, params, |cells| {
            found.push(read(cells)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads the first row of a statement on `table`.
    pub(crate) fn first<T>(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut found = None;
        self.engine.query(table, sql, params, |cells| {
            if found.is_none() {
                found = Some(read(cells)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads the rows that a statement changed.
    pub(crate) fn changed<T>(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.engine.change(table, sql, params, |cells| {
            found.push(read(cells)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// All rows, or all readable ones, depending on the filter.
    pub(crate) fn listed<T>(
        &mut self,
        readable_only: bool,
        table: &'static str,
        statement: (String, Vec<Value<'_>>),
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let (sql, params) = statement;
        if readable_only {
            self.all_readable(table, &sql, &params, read)
        } else {
            self.all(table, &sql, &params, read)
        }
    }

    /// All rows but unreadable ones, which [`tenure_core::store::Tx::take_damage`] reports. A row is named by its first cell.
    pub(crate) fn all_readable<T>(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let (found, damage) = self.readable_and_damage(table, sql, params, read)?;
        self.damage.extend(damage);
        Ok(found)
    }

    /// The first `limit` readable rows of a statement, or all if it is zero. `params` makes its parameters for a limit.
    pub(crate) fn first_readable<'p, T, P: AsRef<[Value<'p>]>>(
        &mut self,
        table: &'static str,
        sql: &str,
        limit: usize,
        params: impl Fn(Value<'static>) -> P,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut skipped = 0;
        loop {
            let most = match limit {
                0 => 0,
                limit => limit.saturating_add(skipped),
            };
            let most = crate::value::limit_or_all(most);
            let values = params(most);
            let (found, damage) = self.readable_and_damage(table, sql, values.as_ref(), &read)?;
            // Behind unreadable rows there may be others.
            if limit == 0 || damage.len() == skipped {
                self.damage.extend(damage);
                return Ok(found);
            }
            skipped = damage.len();
        }
    }

    /// The rows of a statement, and what is wrong with those that cannot be read.
    fn readable_and_damage<T>(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<(Vec<T>, Vec<String>), StoreError> {
        let (mut found, mut damage) = (Vec::new(), Vec::new());
        self.engine.query(table, sql, params, |cells| {
            let name = cells.row().name();
            match read(cells) {
                Err(StoreError::Damaged { why, .. }) => damage.push(format!("{name}, {why}")),
                other => found.push(other?),
            }
            Ok(())
        })?;
        Ok((found, damage))
    }

    /// How many rows a statement on `table` has.
    pub(crate) fn count_rows(
        &mut self,
        table: &'static str,
        statement: (String, Vec<Value<'_>>),
    ) -> Result<usize, StoreError> {
        let (sql, params) = statement;
        let sql = format!("SELECT count(*) FROM ({sql}) counted");
        self.counted(table, &sql, &params)
    }

    /// The number that a statement counted.
    pub(crate) fn counted(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
    ) -> Result<usize, StoreError> {
        let count = self.first(table, sql, params, |cells| cells.number::<u64>())?;
        Ok(usize::try_from(count.unwrap_or_default()).unwrap_or(usize::MAX))
    }

    /// Runs a statement; returns how many rows it changed.
    pub(crate) fn run(&mut self, sql: &str, params: &[Value<'_>]) -> Result<usize, StoreError> {
        self.engine.execute(sql, params)
    }

    /// Runs a statement that must change something, else it is a conflict. An INSERT says `ON CONFLICT DO NOTHING`, so
    /// that a row in its way is a conflict too, and the transaction goes on.
    pub(crate) fn compare_and_set(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
    ) -> Result<(), StoreError> {
        changed(self.run(sql, params)?)
    }

    /// A count as a column value; an error if it is too large.
    pub(crate) fn count(&self, what: &str, count: u64) -> Result<i64, StoreError> {
        i64::try_from(count).map_err(|_| StoreError::Unavailable {
            store: self.engine.location().to_owned(),
            why: format!("{what} {count} is too large to store"),
        })
    }

    /// The epoch of a grant as it is stored: without the base.
    pub(crate) fn stored_epoch(&mut self, epoch: Epoch) -> Result<i64, StoreError> {
        Ok(self.count("epoch", epoch.0)? - self.engine.base()?)
    }
}
