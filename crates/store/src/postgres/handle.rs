//! One transaction, and the few ways in which the other files run statements in it.
//!
//! Nothing is sent before something has to be known: the begin, the locks and the clock wait in a queue and go out
//! with the first statement that has an answer, in one round trip. What is only written (events, notices) waits in the
//! same queue, and the last writes go out together with COMMIT.
//!
//! Dropping it without a commit rolls it back. After an error of a statement every later call fails: the server
//! refuses them until the transaction ends.
//!
//! *Crash, broken connection*: before COMMIT was sent nothing was changed. After it, the transaction's row in
//! `commits` says what happened: [`PostgresStore::doubt_of_commit`]. *Clock jump*: see the clock. *Older version*: the first
//! statement brings the schema's number.

use std::borrow::Cow;
use std::time::Instant;

use tenure_core::id::{Epoch, SessionId};
use tenure_core::notice::Notice;
use tenure_core::store::{Lock, Mode, StoreError, Tx};
use tenure_core::time::{Now, Timestamp};
use tokio_postgres::Row;

use super::PostgresStore;
use super::clock;
use super::connection::{CALL, Fault, Lost, Reply, Statement};
use super::error;
use super::lock;
use super::memory::Unconfirmed;
use super::migrations::{self, About};
use super::notice;
use super::row::Cells;
use super::value::{Value, params};

const REMEMBER: &str = "INSERT INTO commits (id, at) \
     VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";
/// Nobody asks about a commit of yesterday; a few at a time, and none that another removes.
const FORGET: &str = "DELETE FROM commits WHERE id IN (SELECT id FROM commits \
     WHERE at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 86400000 \
     ORDER BY at LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// Adds what became of commits in doubt, once and for all: a commit whose row is added here can no longer happen, and a
/// row that is there was committed. Waits for one that is still going on.
const DECIDE: &str = "INSERT INTO commits (id, at) \
     SELECT id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM unnest($1) asked (id) ORDER BY id \
     ON CONFLICT DO NOTHING RETURNING id";

/// A transaction.
pub(super) struct PostgresTx<'a> {
    store: &'a mut PostgresStore,
    mode: Mode,
    /// When the use case must be done.
    until: Instant,
    /// Whether the caller set that limit.
    bounded: bool,
    /// What was not sent yet.
    queue: Vec<Statement>,
    state: State,
    /// What the first answer brought.
    about: About,
    /// The grants of this transaction.
    grants: Vec<(SessionId, String, Epoch)>,
    /// The commits of earlier commands that this transaction decided about.
    decided: Vec<String>,
    /// Whether it waits for locks of others, so that a late answer means that the store is busy.
    locks: bool,
    has_written: bool,
    /// How old the clock's row was when it was read.
    clock_age: i64,
    damage: Vec<String>,
}

type Replies = std::vec::IntoIter<Result<Reply, Fault>>;

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
            about: About::default(),
            grants: Vec::new(),
            decided: Vec::new(),
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

    /// Runs a statement that adds one row; a row that is in its way is a conflict, and the transaction goes on. The
    /// statement ends with its values.
    pub(super) fn insert(&mut self, sql: &str, params: Vec<Value>) -> Result<(), StoreError> {
        let sql = format!("{sql} ON CONFLICT DO NOTHING");
        changed(self.run(sql, params)?)
    }

    /// Runs a statement that changes a row if it is still as it was seen; else that is a conflict.
    pub(super) fn compare_and_set(
        &mut self,
        sql: &'static str,
        params: Vec<Value>,
    ) -> Result<(), StoreError> {
        changed(self.run(sql, params)?)
    }

    /// Queues a write whose result nobody needs.
    pub(super) fn later(&mut self, sql: &'static str, params: Vec<Value>) {
        self.push(Statement::execute(sql, params));
    }

    pub(super) fn push(&mut self, write: Statement) {
        self.has_written = true;
        self.queue.push(write);
    }

    /// Notes a grant, in case its commit is not confirmed.
    pub(super) fn granted(&mut self, session: SessionId, key: &str, epoch: Epoch) {
        self.grants.push((session, key.to_owned(), epoch));
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
        let cells = |row| Cells::new(row, &self.store.location, table, self.about.base);
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

    /// All rows, or all readable ones, as a filter asks.
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

    /// A count that a column can store.
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
        Ok(self.about.base)
    }

    fn ask(&mut self, statement: Statement) -> Result<Reply, StoreError> {
        let mut replies = self.flush(vec![statement])?;
        replies.pop().ok_or(StoreError::Conflict)
    }

    /// Sends what waits and these statements; returns what the server answered to these.
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
            self.about = about;
            self.decide()?;
        }
        let mut answers = Vec::new();
        for reply in replies {
            answers.push(reply.map_err(|fault| error::classify(&self.store.location, &fault))?);
        }
        Ok(answers.split_off(answers.len() - wanted.min(answers.len())))
    }

    fn exchange(&mut self, sent: &[Statement], is_first: bool) -> Result<Replies, StoreError> {
        let until = self.until.min(Instant::now() + CALL);
        match self.store.exchange(sent, until, is_first) {
            Ok(replies) => Ok(replies.into_iter()),
            Err(lost) => {
                self.state = State::Over;
                Err(self.lost(&lost))
            }
        }
    }

    /// Finds out what became of commits that were never confirmed, and tells the sessions what they were granted.
    fn decide(&mut self) -> Result<(), StoreError> {
        let mine = |one: &&Unconfirmed| one.store == self.about.id;
        let asked: Vec<Unconfirmed> = self
            .store
            .unconfirmed
            .iter()
            .filter(mine)
            .cloned()
            .collect();
        if asked.is_empty() || self.mode != Mode::Write {
            return Ok(());
        }
        let mut requests: Vec<String> = asked.iter().map(|one| one.request.clone()).collect();
        requests.dedup();
        let ask = Statement::query(DECIDE, vec![Value::Texts(requests.clone())]);
        let rows = self.ask(ask)?.rows();
        let not_made = |request: &str| {
            let mut ids = rows
                .iter()
                .filter_map(|row| row.try_get::<_, String>(0).ok());
            ids.any(|id| id == request)
        };
        let at = self.now()?.wall;
        for one in asked.iter().filter(|one| !not_made(&one.request)) {
            let told = Notice::of_late_grant(one.session, &one.key, one.epoch, at);
            let epoch = self.count("epoch", one.epoch.0)?;
            self.push(notice::insert(&told, Some(epoch)));
        }
        self.has_written = true;
        self.decided = requests;
        Ok(())
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
        // Whether the store can be used at all is known before anything is committed.
        self.base()?;
        if clock::is_old(self.clock_age) {
            let limits = params![clock::JUMP, clock::AGE];
            self.queue.push(Statement::execute(FORGET, Vec::new()));
            self.queue.push(Statement::execute(clock::MOVE, limits));
        }
        // A heartbeat that is lost is followed by another.
        let request = (self.mode == Mode::Write).then(|| self.store.next_request());
        if let Some(request) = &request {
            let row = params![request.as_str()];
            self.queue.push(Statement::execute(REMEMBER, row));
        }
        self.queue.push(Statement::batch("COMMIT"));
        // Events get their positions in COMMIT.
        let newest = request.as_ref().map(|_| self.store.newest_event());
        let is_asked = newest.is_some();
        self.queue.extend(newest);
        let sent = std::mem::take(&mut self.queue);
        self.state = State::Over;
        let until = self.until.min(Instant::now() + CALL);
        let done = match self.store.exchange(&sent, until, false) {
            Ok(mut replies) => {
                let newest = if is_asked { replies.pop() } else { None };
                self.committed(replies, newest, request.as_deref())
            }
            Err(lost) => match &request {
                Some(request) => self.store.doubt_of_commit(request, &lost, self.until),
                None => Err(self.lost(&lost)),
            },
        };
        match &done {
            Ok(()) => self.store.settled(&self.decided),
            Err(StoreError::OutcomeUnknown { request, .. }) => {
                let grants = std::mem::take(&mut self.grants);
                self.store.doubt(&self.about.id, request, grants);
            }
            Err(_) => {}
        }
        done
    }

    fn committed(
        &mut self,
        replies: Vec<Result<Reply, Fault>>,
        newest: Option<Result<Reply, Fault>>,
        request: Option<&str>,
    ) -> Result<(), StoreError> {
        for reply in replies {
            if let Err(fault) = reply {
                // COMMIT ended the failed transaction without a change.
                return Err(error::classify(&self.store.location, &fault));
            }
        }
        if let Some(Ok(newest)) = newest
            && let Some(row) = newest.rows().first()
            && let (Ok(cursor), Ok(uid)) = (row.try_get(0), row.try_get(1))
        {
            self.about.newest = Some((cursor, uid));
            self.store.remember(&self.about);
        }
        self.store.check_replication(request)
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
        // A key's row that was only made to be locked need not stay.
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
