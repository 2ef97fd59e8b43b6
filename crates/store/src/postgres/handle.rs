//! One transaction, and the few ways in which the other files run statements in it.
//!
//! Nothing is sent before something has to be known: the begin, the locks and the clock wait in a queue and go out
//! with the first statement that has an answer, in one round trip. What is only written (events, notices) waits in the
//! same queue, and the last writes go out together with COMMIT. So does a change of what this transaction locked: it
//! cannot fail, and if it does, it makes the commit fail as a conflict.
//!
//! What the use case announced, and what it read in the attempt before this one, is read along with the first
//! statement, after the locks and the clock. An answer is used once, and none after a write of this transaction.
//!
//! While a transaction that may write has neither locked nor written anything, it ends with each exchange, and the next
//! one begins it again. READ COMMITTED promises nothing from one statement to the next, so nothing is lost by that, and
//! a process keeps no connection of a pooler while it thinks, or while the machine has other work.
//!
//! Dropping it without a commit rolls it back. After a statement fails, every later call fails,
//! because the server refuses them until the transaction ends.
//!
//! *Crash, broken connection*: before COMMIT was sent, nothing was changed. After it, the
//! transaction's row in `commits` shows the outcome: [`PostgresStore::doubt_of_commit`]. *Clock
//! jump*: see the clock. *Older version*: the first statement reads the schema's number.

mod commit;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Instant;

use tenure_core::id::{Epoch, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{Lock, Mode, StoreError};
use tenure_core::time::Now;
use tokio_postgres::Row;

use super::clock;
use super::connection::{CALL, Fault, Lost, Reply, Statement, Wait};
use super::error;
use super::lock;
use super::migrations::{self, About};
use super::row::Cells;
use super::value::{Value, params};
use super::{PostgresStore, USE_CASE};

/// How much of what an attempt read is asked for again at once. A client that is stopped with an unread answer keeps its
/// locks past every time limit if the answer does not fit into the buffers of its socket.
const AGAIN: usize = 48 * 1024;
/// How many statements are repeated at once.
const MOST_AGAIN: usize = 64;

/// A transaction.
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
    /// What the first answer brought.
    about: About,
    is_known: bool,
    /// The grants of this transaction.
    grants: Vec<(SessionId, String, Epoch)>,
    /// The commits of earlier commands that this transaction decided about.
    decided: Vec<String>,
    /// Whether it waits for locks of others, so that a late answer means that the store is busy.
    locks: bool,
    /// Keys that it locks, and those of them whose statements are not queued yet.
    locked_keys: BTreeSet<Key>,
    unqueued_keys: Vec<Key>,
    locked_sessions: BTreeSet<SessionId>,
    has_written: bool,
    /// What is read along with the next statement.
    soon: Vec<Statement>,
    /// Answers that nobody asked for yet.
    ahead: Vec<(Statement, Vec<Row>)>,
    /// What was read, for the next attempt.
    asked: Vec<Statement>,
    asked_bytes: usize,
    /// How old the clock's row was when it was read.
    clock_age: i64,
    damage: Vec<String>,
}

type Replies = std::vec::IntoIter<Result<Reply, Fault>>;

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was sent, or it ended and can begin again.
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
    ) -> Self {
        let soon = std::mem::take(&mut store.again);
        Self {
            store,
            mode,
            until,
            bounded,
            queue: Vec::new(),
            state: State::Queued,
            about: About::default(),
            is_known: false,
            grants: Vec::new(),
            decided: Vec::new(),
            locks: false,
            locked_keys: BTreeSet::new(),
            unqueued_keys: Vec::new(),
            locked_sessions: BTreeSet::new(),
            has_written: false,
            soon,
            ahead: Vec::new(),
            asked: Vec::new(),
            asked_bytes: 0,
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
        self.writes();
        Ok(self.ask(Statement::execute(sql, params))?.changed())
    }

    /// What was read ahead is not what is there after a write.
    fn writes(&mut self) {
        self.has_written = true;
        self.ahead.clear();
    }

    /// Runs a statement that adds one row; a row that is in its way is a conflict, and the transaction goes on. The
    /// statement ends with its values.
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
        self.push(Statement::execute(sql, params));
    }

    pub(super) fn push(&mut self, write: Statement) {
        self.writes();
        self.queue.push(write);
    }

    /// Notes a grant, in case its commit is not confirmed.
    pub(super) fn granted(&mut self, session: SessionId, key: &str, epoch: Epoch) {
        self.grants.push((session, key.to_owned(), epoch));
    }

    /// Queues a change of a row that this transaction locked. If it changes nothing, the server ends the transaction
    /// with an error that means a conflict.
    pub(super) fn change_later(&mut self, sql: &str, params: Vec<Value>) {
        self.writes();
        let sql = format!("WITH changed AS ({sql} RETURNING 1) SELECT 1 / count(*) FROM changed");
        self.queue.push(Statement::query(sql, params));
    }

    /// Whether this transaction locked a key.
    pub(super) fn has_locked(&self, key: &Key) -> bool {
        self.locked_keys.contains(key)
    }

    /// Whether this transaction locked a session.
    pub(super) fn has_locked_session(&self, id: SessionId) -> bool {
        self.locked_sessions.contains(&id)
    }

    /// Whether others may wait for this transaction, so that an answer must be small.
    pub(super) fn has_locks(&self) -> bool {
        self.locks
    }

    /// Reads all rows of a statement on `table`.
    pub(super) fn all<T>(
        &mut self,
        table: &'static str,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.rows_of(vec![Statement::query(sql, params)])?;
        self.read_all(table, &rows, read)
    }

    /// Reads all rows of one statement with each of these parameters, in one round trip.
    pub(super) fn each<T>(
        &mut self,
        table: &'static str,
        sql: &'static str,
        params: impl IntoIterator<Item = Vec<Value>>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let params = params.into_iter();
        let rows = self.rows_of(params.map(|row| Statement::query(sql, row)).collect())?;
        self.read_all(table, &rows, read)
    }

    /// Announces a statement that will be read.
    pub(super) fn soon(&mut self, sql: &'static str, params: Vec<Value>) {
        let statement = Statement::query(sql, params);
        if !self.soon.contains(&statement) && !self.is_ahead(&statement) {
            self.soon.push(statement);
        }
    }

    fn is_ahead(&self, statement: &Statement) -> bool {
        self.ahead.iter().any(|(known, _)| known == statement)
    }

    /// The rows of statements that change and lock nothing, one after the other, in one round trip at most.
    fn rows_of(&mut self, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
        let mut answers: Vec<Option<Vec<Row>>> = Vec::new();
        let mut missing = Vec::new();
        for statement in &statements {
            self.soon.retain(|other| other != statement);
            let known = self.ahead.iter().position(|(known, _)| known == statement);
            let known = known.map(|at| self.ahead.swap_remove(at).1);
            if known.is_none() {
                missing.push(statement.clone());
            }
            answers.push(known);
        }
        let fresh = if missing.is_empty() {
            Vec::new()
        } else {
            self.flush(missing)?
        };
        let mut fresh = fresh.into_iter();
        let mut rows = Vec::new();
        for (statement, known) in statements.into_iter().zip(answers) {
            let known = known.or_else(|| fresh.next().map(Reply::rows));
            let known = known.unwrap_or_default();
            self.remember(statement, &known);
            rows.extend(known);
        }
        Ok(rows)
    }

    /// The next attempt of the use case reads the same, so it is asked for with its first statement.
    fn remember(&mut self, statement: Statement, rows: &[Row]) {
        self.asked_bytes += size(rows);
        if self.asked_bytes <= AGAIN && self.asked.len() < MOST_AGAIN {
            self.asked.push(statement);
        }
    }

    /// The same for a statement that changes the rows that it returns.
    pub(super) fn change_all<T>(
        &mut self,
        table: &'static str,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.writes();
        let rows = self.ask(Statement::query(sql, params))?.rows();
        self.read_all(table, &rows, read)
    }

    fn read_all<T>(
        &self,
        table: &'static str,
        rows: &[Row],
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let cells = |row| Cells::new(row, &self.store.location, table, self.about.base);
        rows.iter().map(|row| read(&mut cells(row))).collect()
    }

    /// The same without unreadable rows, which [`tenure_core::store::Tx::take_damage`] reports. A row is named by its first cell.
    pub(super) fn all_readable<T>(
        &mut self,
        table: &'static str,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let (found, damage) = self.readable_and_damage(table, sql, params, read)?;
        self.damage.extend(damage);
        Ok(found)
    }

    /// The first `limit` readable rows, or all if there is none, of a statement. `params` makes its parameters for
    /// a limit.
    pub(super) fn first_readable<T>(
        &mut self,
        table: &'static str,
        sql: &'static str,
        limit: Option<i64>,
        params: impl Fn(Option<i64>) -> Vec<Value>,
        read: impl Fn(&mut Cells<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut skipped = 0;
        loop {
            let most = limit.map(|limit| limit + skipped);
            let (found, damage) = self.readable_and_damage(table, sql, params(most), &read)?;
            let count = i64::try_from(damage.len()).unwrap_or(i64::MAX);
            // Behind unreadable rows there may be others.
            if limit.is_none() || count == skipped {
                self.damage.extend(damage);
                return Ok(found);
            }
            skipped = count;
        }
    }

    /// The rows of a statement, and what is wrong with those that cannot be read.
    fn readable_and_damage<T>(
        &mut self,
        table: &'static str,
        sql: impl Into<Cow<'static, str>>,
        params: Vec<Value>,
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
        let mut rows = self.rows_of(vec![Statement::query(sql, params)])?;
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
        if !self.is_known {
            self.flush(Vec::new())?;
        }
        Ok(self.about.base)
    }

    fn ask(&mut self, statement: Statement) -> Result<Reply, StoreError> {
        let mut replies = self.flush(vec![statement])?;
        replies.pop().ok_or(StoreError::Conflict)
    }

    /// Sends what waits, these statements, and what was announced; returns what the server answered to these.
    fn flush(&mut self, statements: Vec<Statement>) -> Result<Vec<Reply>, StoreError> {
        if self.state == State::Over {
            return Err(StoreError::over(&self.store.location));
        }
        self.queue_keys();
        let wanted = statements.len();
        let soon = std::mem::take(&mut self.soon);
        let is_first = self.state == State::Queued;
        let mut sent = Vec::new();
        if is_first {
            sent.extend(self.store.begin_statements(self.mode, self.until));
        }
        sent.append(&mut self.queue);
        sent.extend(statements);
        sent.extend(soon.iter().cloned());
        let ends = !self.stays_open();
        if ends {
            sent.push(Statement::batch("ROLLBACK"));
        }
        // After an error it is not used any more.
        self.state = if ends { State::Over } else { State::Open };
        let mut replies = self.exchange(&sent, is_first)?;
        if is_first {
            let mut about = self.begun(&mut replies)?;
            if let Some(lost) = self.store.lost_history(&about) {
                self.store.roll_back();
                self.store.raise_base(&lost, self.until)?;
                replies = self.exchange(&sent, is_first)?;
                about = self.begun(&mut replies)?;
            }
            self.store.remember(&about);
            // What was read before, and may be written now, counts from another base.
            if self.is_known && self.about.base != about.base {
                return Err(StoreError::Conflict);
            }
            self.about = about;
            self.is_known = true;
            self.decide()?;
        }
        if ends {
            drop(replies.next_back());
        }
        let mut answers = Vec::new();
        for reply in replies {
            let reply = reply.map_err(|fault| self.fault(&fault))?;
            if self.locks {
                self.store.traffic.note_locked(&reply);
            }
            answers.push(reply);
        }
        if ends {
            self.state = State::Queued;
        }
        let ahead = answers.split_off(answers.len() - soon.len().min(answers.len()));
        let ahead = soon.into_iter().zip(ahead.into_iter().map(Reply::rows));
        // A decision about earlier commits wrote after these were read.
        if self.decided.is_empty() {
            self.ahead.extend(ahead);
        }
        Ok(answers.split_off(answers.len() - wanted.min(answers.len())))
    }

    /// Whether what comes next must be in the same transaction as what is sent now.
    fn stays_open(&self) -> bool {
        let may_decide = || !self.store.unconfirmed.is_empty();
        self.mode != Mode::Write || self.locks || self.has_written || may_decide()
    }

    /// A statement failed.
    fn fault(&mut self, fault: &Fault) -> StoreError {
        if fault.code == error::DEADLOCK {
            self.store.traffic.deadlocks += 1;
        }
        error::classify(&self.store.location, fault)
    }

    /// Queues the locks on keys that were asked for, in one statement: its rows are locked in order.
    fn queue_keys(&mut self) {
        let keys = std::mem::take(&mut self.unqueued_keys);
        if !keys.is_empty() {
            self.queue.extend(lock::on_keys(&keys));
        }
    }

    fn exchange(&mut self, sent: &[Statement], is_first: bool) -> Result<Replies, StoreError> {
        let wait = if is_first {
            self.store.wait_for_first(self.until, self.bounded)
        } else {
            Wait::until(self.until.min(Instant::now() + CALL))
        };
        match self.store.exchange(sent, wait, is_first) {
            Ok(replies) => {
                if is_first && !self.bounded {
                    // The time in a pooler's queue is not the use case's own.
                    self.until = Instant::now() + USE_CASE;
                }
                Ok(replies.into_iter())
            }
            Err(lost) => {
                self.state = State::Over;
                Err(self.lost(&lost))
            }
        }
    }

    /// Checks the answers to the begin.
    fn begun(
        &self,
        replies: &mut impl Iterator<Item = Result<Reply, Fault>>,
    ) -> Result<About, StoreError> {
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

    /// Ends it without a change.
    fn end(&mut self) {
        if self.state == State::Open {
            self.store.roll_back();
        }
        self.state = State::Over;
    }

    /// Locks a row, with the next statement.
    pub(super) fn lock_soon(&mut self, lock: &Lock) {
        self.locks = true;
        match lock {
            // A key's row that was only made to be locked need not stay.
            Lock::Key(key) => {
                if self.locked_keys.insert(key.clone()) {
                    self.unqueued_keys.push(key.clone());
                }
            }
            other => {
                if let Lock::Session(id) = other {
                    self.locked_sessions.insert(*id);
                }
                self.queue_keys();
                self.queue.extend(lock::statements(other));
            }
        }
    }

    pub(super) fn read_clock(&mut self) -> Result<Now, StoreError> {
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

    /// The rows that could not be read so far.
    pub(super) fn damaged(&mut self) -> Vec<String> {
        std::mem::take(&mut self.damage)
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
        self.store.again = std::mem::take(&mut self.asked);
    }
}

/// How many bytes rows have.
pub(super) fn size(rows: &[Row]) -> usize {
    rows.iter().map(Row::raw_size_bytes).sum()
}

/// A limit for SQL, where zero means all.
pub(super) fn limit_or_all(limit: usize) -> Option<i64> {
    match limit {
        0 => None,
        limit => i64::try_from(limit).ok(),
    }
}
