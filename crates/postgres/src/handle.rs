//! One transaction of a server.
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

use std::collections::BTreeSet;
use std::time::Instant;

use tenure_core::id::{Epoch, SessionId};
use tenure_core::key::Key;
use tenure_core::store::{Lock, StoreError, TxMode};
use tenure_core::time::{Era, Now, Timestamp};
use tenure_store::cells::{Cells, ColumnSource, Content, RowOf};
use tenure_store::engine::{Engine, LockedRow, changed};
use tenure_store::params;
use tenure_store::value::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::clock;
use super::connection::{
    CALL, ConnectionLoss, Link, ServerError, Statement, StatementResult, Wait,
};
use super::dialect::{storable, translated};
use super::error;
use super::lock;
use super::migrations::{self, About};
use super::{PostgresStore, USE_CASE};

/// How much of what an attempt read is asked for again at once. A client that is stopped with an unread answer keeps its
/// locks past every time limit if the answer does not fit into the buffers of its socket.
const MAX_REPEATED_BYTES: usize = 48 * 1024;
/// How many statements are repeated at once.
const MAX_REPEATED: usize = 64;

/// A transaction.
pub(super) struct PostgresTx<'a> {
    store: &'a mut PostgresStore,
    mode: TxMode,
    /// The deadline of the use case.
    until: Instant,
    /// Whether the caller set that deadline.
    bounded: bool,
    /// Statements that were not sent yet.
    queue: Vec<Statement>,
    state: TxState,
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
    prefetches: Vec<Statement>,
    /// Answers that nobody asked for yet.
    prefetched: Vec<(Statement, Vec<Row>)>,
    /// What was read, for the next attempt.
    asked: Vec<Statement>,
    asked_bytes: usize,
    /// How old the clock's row was when it was read.
    clock_age: i64,
}

type Replies = std::vec::IntoIter<Result<StatementResult, ServerError>>;

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TxState {
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
        mode: TxMode,
        until: Instant,
        bounded: bool,
    ) -> Self {
        let prefetches = std::mem::take(&mut store.repeat);
        Self {
            store,
            mode,
            until,
            bounded,
            queue: Vec::new(),
            state: TxState::Queued,
            about: About::default(),
            is_known: false,
            grants: Vec::new(),
            decided: Vec::new(),
            locks: false,
            locked_keys: BTreeSet::new(),
            unqueued_keys: Vec::new(),
            locked_sessions: BTreeSet::new(),
            has_written: false,
            prefetches,
            prefetched: Vec::new(),
            asked: Vec::new(),
            asked_bytes: 0,
            clock_age: 0,
        }
    }

    /// What was read ahead is not what is there after a write.
    fn writes(&mut self) {
        self.has_written = true;
        self.prefetched.clear();
    }

    /// Queues a write whose result is not needed.
    pub(super) fn push(&mut self, write: Statement) {
        self.writes();
        self.queue.push(write);
    }

    fn is_prefetched(&self, statement: &Statement) -> bool {
        self.prefetched.iter().any(|(known, _)| known == statement)
    }

    /// The rows of statements that change and lock nothing, one after the other, in one round trip at most.
    fn rows_of(&mut self, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
        let mut answers: Vec<Option<Vec<Row>>> = Vec::new();
        let mut missing = Vec::new();
        for statement in &statements {
            self.prefetches.retain(|other| other != statement);
            let known = self
                .prefetched
                .iter()
                .position(|(known, _)| known == statement);
            let known = known.map(|at| self.prefetched.swap_remove(at).1);
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
            let known = known.or_else(|| fresh.next().map(StatementResult::rows));
            let known = known.unwrap_or_default();
            self.remember(statement, &known);
            rows.extend(known);
        }
        Ok(rows)
    }

    /// The next attempt of the use case reads the same, so it is asked for with its first statement.
    fn remember(&mut self, statement: Statement, rows: &[Row]) {
        self.asked_bytes += size(rows);
        if self.asked_bytes <= MAX_REPEATED_BYTES && self.asked.len() < MAX_REPEATED {
            self.asked.push(statement);
        }
    }

    fn read_rows(
        &self,
        table: &'static str,
        rows: &[Row],
        mut read: impl FnMut(&mut Cells<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for row in rows {
            let row = AnswerRow(row);
            let row = RowOf::new(&row, &self.store.location, table, self.about.base);
            read(&mut Cells::new(row))?;
        }
        Ok(())
    }

    fn ask(&mut self, statement: Statement) -> Result<StatementResult, StoreError> {
        let mut replies = self.flush(vec![statement])?;
        replies.pop().ok_or(StoreError::Conflict)
    }

    /// Sends what waits, these statements, and what was announced; returns what the server answered to these.
    fn flush(&mut self, statements: Vec<Statement>) -> Result<Vec<StatementResult>, StoreError> {
        if self.state == TxState::Over {
            return Err(StoreError::over(&self.store.location));
        }
        self.queue_keys();
        let wanted = statements.len();
        let prefetches = std::mem::take(&mut self.prefetches);
        let is_first = self.state == TxState::Queued;
        let mut sent = Vec::new();
        if is_first {
            sent.extend(self.store.begin_statements(self.mode, self.until));
        }
        sent.append(&mut self.queue);
        sent.extend(statements);
        sent.extend(prefetches.iter().cloned());
        let ends = !self.stays_open();
        if ends {
            sent.push(Statement::batch("ROLLBACK"));
        }
        // After an error it is not used any more.
        self.state = if ends { TxState::Over } else { TxState::Open };
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
            self.state = TxState::Queued;
        }
        let fetched = answers.split_off(answers.len() - prefetches.len().min(answers.len()));
        let fetched = prefetches
            .into_iter()
            .zip(fetched.into_iter().map(StatementResult::rows));
        // A decision about earlier commits wrote after these were read.
        if self.decided.is_empty() {
            self.prefetched.extend(fetched);
        }
        Ok(answers.split_off(answers.len() - wanted.min(answers.len())))
    }

    /// Whether what comes next must be in the same transaction as what is sent now.
    fn stays_open(&self) -> bool {
        let may_decide = || !self.store.unconfirmed.is_empty();
        self.mode != TxMode::Write || self.locks || self.has_written || may_decide()
    }

    /// A statement failed.
    fn fault(&mut self, fault: &ServerError) -> StoreError {
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
                self.state = TxState::Over;
                Err(self.lost(&lost))
            }
        }
    }

    /// Checks the answers to the begin.
    fn begun(
        &self,
        replies: &mut impl Iterator<Item = Result<StatementResult, ServerError>>,
    ) -> Result<About, StoreError> {
        let store = &self.store.location;
        let classified = |fault: ServerError| error::classify(store, &fault);
        if let Some(begin) = replies.next() {
            begin.map_err(classified)?;
        }
        let about = match replies.next() {
            Some(Ok(about)) => about.rows(),
            Some(Err(fault)) => return Err(migrations::first_fault(store, &fault)),
            None => Vec::new(),
        };
        migrations::check(store, about.first())
    }

    /// The connection ended before a commit was sent.
    fn lost(&mut self, lost: &ConnectionLoss) -> StoreError {
        let is_over = self.bounded && Instant::now() >= self.until;
        // A server that answers others is busy with locks; a link that is stalled is not worth another attempt.
        let is_locked = || self.locks && Link::is_accepted(&self.store.access);
        if *lost == ConnectionLoss::Late && (is_over || is_locked()) {
            self.store.silent = None;
            return StoreError::Busy {
                store: self.store.location.clone(),
            };
        }
        error::lost(&self.store.location, lost, false)
    }

    /// Ends it without a change.
    fn end(&mut self) {
        if self.state == TxState::Open {
            self.store.roll_back();
        }
        self.state = TxState::Over;
    }

    /// Locks a row, with the next statement.
    pub(super) fn queue_lock(&mut self, lock: &Lock) {
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
        let statement = Statement::query(clock::NOW, params![clock::JUMP].to_vec());
        let rows = self.ask(statement)?.rows();
        let mut found = None;
        self.read_rows("clock", &rows, |cells| {
            found = Some((cells.number()?, cells.number()?, cells.number()?));
            Ok(())
        })?;
        let Some((wall, steady, age)) = found else {
            return Err(StoreError::Damaged {
                store: self.store.location.clone(),
                why: "table clock is empty".to_owned(),
            });
        };
        self.clock_age = age;
        Ok(clock::now(wall, steady))
    }
}

/// A statement of the rows, as PostgreSQL reads it.
fn query(sql: &str, params: &[Value<'_>]) -> Statement {
    Statement::query(translated(sql), params.iter().map(storable).collect())
}

pub(crate) fn execute(sql: &str, params: &[Value<'_>]) -> Statement {
    Statement::execute(translated(sql), params.iter().map(storable).collect())
}

impl Engine for PostgresTx<'_> {
    const SHARED: bool = true;

    fn location(&self) -> &str {
        &self.store.location
    }

    fn query(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnMut(&mut Cells<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let rows = self.rows_of(vec![query(sql, params)])?;
        self.read_rows(table, &rows, read)
    }

    fn query_each<const N: usize>(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[[Value<'_>; N]],
        read: impl FnMut(&mut Cells<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let statements = params.iter().map(|row| query(sql, row)).collect();
        let rows = self.rows_of(statements)?;
        self.read_rows(table, &rows, read)
    }

    fn change(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Value<'_>],
        read: impl FnMut(&mut Cells<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.writes();
        let rows = self.ask(query(sql, params))?.rows();
        self.read_rows(table, &rows, read)
    }

    fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<usize, StoreError> {
        self.writes();
        let changed = self.ask(execute(sql, params))?.changed();
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn execute_later(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        self.push(execute(sql, params));
        Ok(())
    }

    /// Queues a change of a row that this transaction locked. If it changes nothing, the server ends the transaction
    /// with an error that means a conflict.
    fn change_row(
        &mut self,
        row: LockedRow<'_>,
        sql: &str,
        params: &[Value<'_>],
    ) -> Result<(), StoreError> {
        if !self.has_locked(row) {
            return changed(self.execute(sql, params)?);
        }
        let sql = format!("WITH changed AS ({sql} RETURNING 1) SELECT 1 / count(*) FROM changed");
        self.push(query(&sql, params));
        Ok(())
    }

    fn has_locked(&self, row: LockedRow<'_>) -> bool {
        match row {
            LockedRow::Key(key) => self.locked_keys.contains(key),
            LockedRow::Session(id) => self.locked_sessions.contains(&id),
        }
    }

    fn has_locks(&self) -> bool {
        self.locks
    }

    fn prefetch(&mut self, sql: &str, params: &[Value<'_>]) {
        let statement = query(sql, params);
        if !self.prefetches.contains(&statement) && !self.is_prefetched(&statement) {
            self.prefetches.push(statement);
        }
    }

    fn append_event(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        self.execute_later(sql, params)
    }

    fn forget_events(
        &mut self,
        before: Timestamp,
        limit: i64,
    ) -> Result<Option<usize>, StoreError> {
        let mut removed = 0;
        let sql = "SELECT forget_events(?1, ?2)";
        self.change("events", sql, &params![before.0, limit], |cells| {
            removed = cells.number::<i64>()?;
            Ok(())
        })?;
        Ok(Some(usize::try_from(removed).unwrap_or(0)))
    }

    fn base(&mut self) -> Result<i64, StoreError> {
        if !self.is_known {
            self.flush(Vec::new())?;
        }
        Ok(self.about.base)
    }

    fn next_ticket(&mut self) -> Result<i64, StoreError> {
        let mut ticket = None;
        self.change("tickets", "SELECT nextval('tickets')", &[], |cells| {
            ticket = Some(cells.number()?);
            Ok(())
        })?;
        ticket.ok_or(StoreError::Conflict)
    }

    fn lock_key(&mut self, key: &Key) -> Result<(), StoreError> {
        if !self.locked_keys.contains(key) {
            self.writes();
            self.ask(Statement::execute(lock::MAKE_KEY, lock::named(key)))?;
            self.ask(Statement::query(lock::LOCK_KEY, lock::named(key)))?;
        }
        Ok(())
    }

    fn granted(&mut self, session: SessionId, key: &Key, epoch: Epoch) {
        self.grants.push((session, key.to_string(), epoch));
    }

    fn era() -> Era {
        clock::era()
    }

    fn lock(&mut self, lock: &Lock) -> Result<(), StoreError> {
        self.queue_lock(lock);
        Ok(())
    }

    fn now(&mut self) -> Result<Now, StoreError> {
        self.read_clock()
    }

    fn news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError> {
        let sql = "SELECT news_at, news FROM store WHERE news IS NOT NULL";
        let mut news = None;
        Engine::query(self, "store", sql, &[], |cells| {
            news = Some((cells.time()?, cells.text()?));
            Ok(())
        })?;
        Ok(news)
    }

    fn commit(mut self) -> Result<(), StoreError> {
        self.commit_all()
    }
}

/// A row of an answer.
struct AnswerRow<'a>(&'a Row);

impl ColumnSource for AnswerRow<'_> {
    fn content(&self, index: usize) -> Result<Content<'_>, String> {
        let kind = self
            .0
            .columns()
            .get(index)
            .map(tokio_postgres::Column::type_);
        let text = |error: tokio_postgres::Error| error.to_string();
        let content = match kind {
            Some(&Type::INT8) => self
                .0
                .try_get::<_, Option<i64>>(index)
                .map_err(text)?
                .map(Content::Number),
            Some(&Type::FLOAT8) => self
                .0
                .try_get::<_, Option<f64>>(index)
                .map_err(text)?
                .map(Content::Real),
            Some(&Type::BYTEA) => self
                .0
                .try_get::<_, Option<&[u8]>>(index)
                .map_err(text)?
                .map(Content::Bytes),
            _ => self
                .0
                .try_get::<_, Option<&str>>(index)
                .map_err(text)?
                .map(|text| Content::Text(text.as_bytes())),
        };
        Ok(content.unwrap_or(Content::Nothing))
    }

    fn column(&self, index: usize) -> String {
        let column = self.0.columns().get(index);
        column
            .map(|column| column.name().to_owned())
            .unwrap_or_default()
    }
}

impl Drop for PostgresTx<'_> {
    fn drop(&mut self) {
        self.end();
        self.store.repeat = std::mem::take(&mut self.asked);
    }
}

/// How many bytes rows have.
pub(super) fn size(rows: &[Row]) -> usize {
    rows.iter().map(Row::raw_size_bytes).sum()
}
