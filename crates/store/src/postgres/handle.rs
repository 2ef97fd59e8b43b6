//! One transaction, and the few ways in which the other files run statements in it.
//!
//! Nothing is sent before an answer is needed: the begin, the locks and the clock wait in a queue
//! and are sent with the first statement that has an answer, in one round trip. Pure writes
//! (events, notices) wait in the same queue, and the last ones are sent together with COMMIT.
//!
//! Dropping it without a commit rolls it back. After a statement fails, every later call fails,
//! because the server refuses them until the transaction ends.
//!
//! *Crash, broken connection*: before COMMIT was sent, nothing was changed. After it, the
//! transaction's row in `commits` shows the outcome: [`PostgresStore::doubt_of_commit`]. *Clock
//! jump*: see the clock. *Older version*: the first statement reads the schema's number.

use std::borrow::Cow;
use std::time::Instant;

use tenure_core::id::Epoch;
use tenure_core::store::{Lock, Mode, StoreError, Tx};
use tenure_core::time::{Now, Timestamp};
use tokio_postgres::Row;

use super::PostgresStore;
use super::clock;
use super::connection::{CALL, Fault, Lost, Reply, Statement};
use super::error;
use super::lock;
use super::migrations;
use super::row::Cells;
use super::value::{Value, params};

const REMEMBER: &str = "INSERT INTO commits (id, at) \
     VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";
/// Removes commits older than a day, whose outcome is never needed again: a limited number at a
/// time, and none that another writer is removing.
const FORGET: &str = "DELETE FROM commits WHERE id IN (SELECT id FROM commits \
     WHERE at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 86400000 \
     ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED)";

pub(super) struct PostgresTx<'a> {
    store: &'a mut PostgresStore,
    mode: Mode,
    /// The deadline of the use case.
    until: Instant,
    /// Whether the caller set that deadline.
    bounded: bool,
    /// Statements that were not sent yet.
    queue: Vec<Statement>,
    state: State,
    /// What is added to every epoch; known with the first answer.
    base: i64,
    /// Whether it waits for locks, so that a late answer means that the store is busy.
    locks: bool,
    has_written: bool,
    /// How old the clock's row was when it was read.
    clock_age: i64,
    damage: Vec<String>,
}

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was sent.
    Queued,
    Open,
    /// It ended, or its connection did.
    Over,
}

impl<'a> PostgresTx<'a> {
    /// Queues the begin of a transaction.
    pub(super) fn queued(
        store: &'a mut PostgresStore,
        mode: Mode,
        until: Instant,
        bounded: bool,
        begin: Vec<Statement>,
    ) -> Self {
        Self {
            store,
            mode,
            until,
            bounded,
            queue: begin,
            state: State::Queued,
            base: 0,
            locks: false,
            has_written: false,
            clock_age: 0,
            damage: Vec::new(),
        }
    }

    /// Runs a statement that returns no rows; returns how many it changed.
    pub(super) fn run(
        &mut self,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
    ) -> Result<u64, StoreError> {
        self.has_written = true;
        Ok(self.ask(Statement::execute(sql, params))?.changed())
    }

    /// Runs a statement that inserts one row. If another row is in the way, that is a conflict, and
    /// the transaction continues. The statement must end with its values.
    pub(super) fn insert(&mut self, sql: &str, params: Vec<Value>) -> Result<(), StoreError> {
        let sql = format!("{sql} ON CONFLICT DO NOTHING");
        changed(self.run(sql, params)?)
    }

    /// Runs a statement that changes a row only if it is still as it was read; otherwise that is a
    /// conflict.
    pub(super) fn compare_and_set(
        &mut self,
        sql: &'static str,
        params: Vec<Value>,
    ) -> Result<(), StoreError> {
        changed(self.run(sql, params)?)
    }

    /// Queues a write whose result is not needed.
    pub(super) fn later(&mut self, sql: &'static str, params: Vec<Value>) {
        self.has_written = true;
        self.queue.push(Statement::execute(sql, params));
    }

    /// Reads all rows of a statement on `table`.
    pub(super) fn all<T>(
        &mut self,
        table: &'static str,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.ask(Statement::query(sql, params))?.rows();
        self.read_all(table, &rows, read)
    }

    /// The same for a statement that changes the rows that it returns.
    pub(super) fn change_all<T>(
        &mut self,
        table: &'static str,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.has_written = true;
        self.all(table, sql, params, read)
    }

    fn read_all<T>(
        &self,
        table: &'static str,
        rows: &[Row],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let cells = |row| Cells::new(row, &self.store.location, table, self.base);
        rows.iter().map(|row| read(&mut cells(row))).collect()
    }

    /// The same without unreadable rows, which [`Tx::take_damage`] reports. A row is named by its first cell.
    pub(super) fn all_readable<T>(
        &mut self,
        table: &'static str,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.all(table, sql, params, |cells| {
            let name = cells.name();
            match read(cells) {
                Err(StoreError::Damaged { why, .. }) => Ok(Err(format!("{name}: {why}"))),
                other => other.map(Ok),
            }
        })?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                Ok(row) => found.push(row),
                Err(why) => self.damage.push(why),
            }
        }
        Ok(found)
    }

    /// All rows, or all readable ones, depending on the filter.
    pub(super) fn listed<T>(
        &mut self,
        readable_only: bool,
        table: &'static str,
        statement: (String, Vec<Value>),
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let (sql, params) = statement;
        if readable_only {
            self.all_readable(table, sql, params, read)
        } else {
            self.all(table, sql, params, read)
        }
    }

    /// Reads the first row of a statement on `table`.
    pub(super) fn first<T>(
        &mut self,
        table: &'static str,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut rows = self.ask(Statement::query(sql, params))?.rows();
        rows.truncate(1);
        Ok(self.read_all(table, &rows, read)?.pop())
    }

    /// How many rows a statement on `table` has.
    pub(super) fn rows(
        &mut self,
        table: &'static str,
        statement: (String, Vec<Value>),
    ) -> Result<usize, StoreError> {
        let (sql, params) = statement;
        let sql = format!("SELECT count(*) FROM ({sql}) counted");
        let count = self.first(table, sql, params, |cells| cells.number::<u64>())?;
        Ok(usize::try_from(count.unwrap_or_default()).unwrap_or(usize::MAX))
    }

    /// A count as a column value; an error if it is too large.
    pub(super) fn count(&self, what: &str, count: u64) -> Result<i64, StoreError> {
        i64::try_from(count).map_err(|_| StoreError::Unavailable {
            store: self.store.location.clone(),
            why: format!("{what} {count} is too large to store"),
        })
    }

    /// The epoch of a grant as it is stored: without the base.
    pub(super) fn stored_epoch(&mut self, epoch: Epoch) -> Result<i64, StoreError> {
        let base = self.base()?;
        Ok(self.count("epoch", epoch.0)? - base)
    }

    /// What is added to every epoch.
    pub(super) fn base(&mut self) -> Result<i64, StoreError> {
        if self.state == State::Queued {
            self.flush(Vec::new())?;
        }
        Ok(self.base)
    }

    fn ask(&mut self, statement: Statement) -> Result<Reply, StoreError> {
        let mut replies = self.flush(vec![statement])?;
        replies.pop().ok_or(StoreError::Conflict)
    }

    /// Sends the queue and these statements; returns the server's answers to these.
    fn flush(&mut self, statements: Vec<Statement>) -> Result<Vec<Reply>, StoreError> {
        if self.state == State::Over {
            return Err(StoreError::Unavailable {
                store: self.store.location.clone(),
                why: "the transaction is over after an earlier error".to_owned(),
            });
        }
        let wanted = statements.len();
        let mut sent = std::mem::take(&mut self.queue);
        sent.extend(statements);
        let is_first = self.state == State::Queued;
        self.state = State::Open;
        let until = self.until.min(Instant::now() + CALL);
        let replies = match self.store.exchange(&sent, until, is_first) {
            Ok(replies) => replies,
            Err(lost) => {
                self.state = State::Over;
                return Err(self.lost(&lost));
            }
        };
        let mut replies = replies.into_iter();
        if is_first {
            self.base = self.begun(&mut replies)?;
        }
        let mut answers = Vec::new();
        for reply in replies {
            answers.push(reply.map_err(|fault| error::classify(&self.store.location, &fault))?);
        }
        Ok(answers.split_off(answers.len() - wanted.min(answers.len())))
    }

    /// Checks the answers to the begin; returns the base.
    fn begun(
        &self,
        replies: &mut impl Iterator<Item = Result<Reply, Fault>>,
    ) -> Result<i64, StoreError> {
        let store = &self.store.location;
        let classified = |fault: Fault| error::classify(store, &fault);
        if let Some(begin) = replies.next() {
            begin.map_err(classified)?;
        }
        let about = match replies.next() {
            Some(Ok(about)) => about.rows(),
            Some(Err(fault)) if error::is_unmigrated(&fault) => {
                return Err(migrations::unmigrated(store, 0));
            }
            Some(Err(fault)) => return Err(classified(fault)),
            None => Vec::new(),
        };
        migrations::check(store, about.first())
    }

    /// The connection ended before a commit was sent.
    fn lost(&self, lost: &Lost) -> StoreError {
        let is_busy =
            *lost == Lost::Late && (self.locks || (self.bounded && Instant::now() >= self.until));
        if is_busy {
            return StoreError::Busy {
                store: self.store.location.clone(),
            };
        }
        error::lost(&self.store.location, lost, false)
    }

    /// Sends the last writes with COMMIT.
    fn commit_all(&mut self) -> Result<(), StoreError> {
        if self.state == State::Over {
            return Err(StoreError::Unavailable {
                store: self.store.location.clone(),
                why: "the transaction is over after an earlier error".to_owned(),
            });
        }
        if !self.has_written {
            self.end();
            return Ok(());
        }
        if clock::is_old(self.clock_age) {
            let limits = params![clock::JUMP, clock::AGE];
            self.queue.push(Statement::execute(FORGET, Vec::new()));
            self.queue.push(Statement::execute(clock::MOVE, limits));
        }
        // Only for writes: after a lost heartbeat, the next one follows anyway.
        let request = (self.mode == Mode::Write).then(|| self.store.next_request());
        if let Some(request) = &request {
            let row = params![request.as_str()];
            self.queue.push(Statement::execute(REMEMBER, row));
        }
        self.queue.push(Statement::batch("COMMIT"));
        let sent = std::mem::take(&mut self.queue);
        let is_first = self.state == State::Queued;
        self.state = State::Over;
        let until = self.until.min(Instant::now() + CALL);
        match self.store.exchange(&sent, until, is_first) {
            Ok(replies) => self.committed(replies, is_first),
            Err(lost) => match request {
                Some(request) => self.store.doubt_of_commit(&request, &lost, self.until),
                None => Err(self.lost(&lost)),
            },
        }
    }

    fn committed(
        &mut self,
        replies: Vec<Result<Reply, Fault>>,
        is_first: bool,
    ) -> Result<(), StoreError> {
        let mut replies = replies.into_iter();
        if is_first {
            self.begun(&mut replies)?;
        }
        for reply in replies {
            if let Err(fault) = reply {
                // COMMIT ended the failed transaction without a change.
                return Err(error::classify(&self.store.location, &fault));
            }
        }
        self.store.check_replication()
    }

    /// Ends it without a change.
    fn end(&mut self) {
        if self.state == State::Open {
            self.store.roll_back();
        }
        self.state = State::Over;
    }
}

fn changed(rows: u64) -> Result<(), StoreError> {
    match rows {
        0 => Err(StoreError::Conflict),
        _ => Ok(()),
    }
}

impl Drop for PostgresTx<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// A limit for SQL, where zero means all.
pub(super) fn limit_or_all(limit: usize) -> Option<i64> {
    match limit {
        0 => None,
        limit => i64::try_from(limit).ok(),
    }
}

impl Tx for PostgresTx<'_> {
    fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        self.commit_all()
    }

    fn lock(&mut self, lock: &Lock) -> Result<(), StoreError> {
        self.locks = true;
        // This is not a write: a key's row that was created only to be locked need not be kept.
        self.queue.extend(lock::statements(lock));
        Ok(())
    }

    fn now(&mut self) -> Result<Now, StoreError> {
        let statement = Statement::query(clock::NOW, params![clock::JUMP]);
        let rows = self.ask(statement)?.rows();
        let read = self.read_all("clock", &rows, |cells| {
            Ok((cells.number()?, cells.number()?, cells.number()?))
        })?;
        let Some((wall, steady, age)) = read.into_iter().next() else {
            return Err(StoreError::Damaged {
                store: self.store.location.clone(),
                why: "table clock is empty".to_owned(),
            });
        };
        self.clock_age = age;
        Ok(clock::now(wall, steady))
    }

    fn take_damage(&mut self) -> Vec<String> {
        std::mem::take(&mut self.damage)
    }

    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError> {
        let sql = "SELECT news_at, news FROM store WHERE news IS NOT NULL";
        self.first("store", sql, Vec::new(), |cells| {
            Ok((cells.time()?, cells.text()?))
        })
    }
}
