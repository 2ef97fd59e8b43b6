//! The store for a team: a PostgreSQL database that several machines use.
//!
//! Transactions are READ COMMITTED, so a writer locks first, then reads the clock, then decides,
//! each in a separate statement, because a condition inside an UPDATE is evaluated before the wait
//! for the lock. Readers see one state (REPEATABLE READ READ ONLY). Unique indexes are the last
//! line of defence. The store is created and migrated only by `tenure store migrate`, never by
//! connecting.
//!
//! *Crash*: what was not committed never happened. *Broken connection*: before COMMIT was sent,
//! nothing was changed. After it, the store is asked over a new connection; if it does not answer
//! in time, the outcome is reported as unknown. *Clock jump*: see the clock. *Older version*: see
//! the migrations.

mod clock;
mod connection;
mod dialect;
mod error;
mod foreign;
mod handle;
mod history;
mod linked;
mod lock;
mod memory;
mod migrations;
mod older;
pub mod relay;
mod status;
mod tls;
mod transfer;

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use tenure_core::ignore::Ignore;
use tenure_core::store::{Store, StoreError, StoreWatch, Tx, TxMode, WaitTopic};

use connection::{
    CALL, CONNECT, ConnectionLoss, Link, PROBE, ServerError, Statement, StatementResult, Wait,
};
use handle::PostgresTx;
use memory::{LastEvent, StoreMemory, Unconfirmed};
use tenure_store::engine::Rows;
use tenure_store::params;
use tenure_store::server::Access;

pub use linked::Postgres;
pub use migrations::migrate;
pub use status::status;
pub use transfer::PostgresEnd;

/// How long a use case may take.
const USE_CASE: Duration = Duration::from_secs(5);
/// What is left of that for the caller to say what happened.
const ANSWER: Duration = Duration::from_millis(500);
/// How long the server lets a statement wait for a lock.
const LOCK_WAIT: Duration = Duration::from_millis(1500);
/// How long a statement may run.
const STATEMENT: Duration = Duration::from_millis(2000);
/// How long a transaction may be idle.
const IDLE: Duration = Duration::from_millis(2000);
/// The SQLSTATE of a ROLLBACK outside a transaction.
const NO_TRANSACTION: &str = "25P01";
/// How long a store that did not answer is not asked again by the same process: all that a command does about it
/// together takes no longer than one use case.
const SILENCE: Duration = Duration::from_millis(500);
/// How often a waiter checks for changes.
const POLL: Duration = Duration::from_millis(250);

/// A PostgreSQL database as a store.
pub struct PostgresStore {
    access: Access,
    location: String,
    link: Option<Link>,
    /// How long the caller waits, if there is a limit.
    limit: Option<Instant>,
    /// Until when it is not asked again, because it has just not answered.
    silent: Option<Instant>,
    /// Random, so that no two processes use the same name for a commit.
    process: [u8; 16],
    commits: u64,
    /// What this machine remembers about stores.
    memory: Option<StoreMemory>,
    seen: Vec<LastEvent>,
    unconfirmed: Vec<Unconfirmed>,
    /// How to tell a person about an incident of the store.
    tell: Option<fn(String)>,
    /// What the last transaction read before it was given up; the next one is likely to read it again.
    repeat: Vec<Statement>,
    traffic: Traffic,
}

/// What a store was asked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How often it waited for an answer of the server.
    pub round_trips: u64,
    /// The size in bytes of the largest answer to one statement of a transaction that locked something.
    pub largest_under_lock: usize,
    /// How often the server ended a transaction because two waited for each other.
    pub deadlocks: u64,
}

impl Traffic {
    fn note_locked(&mut self, reply: &StatementResult) {
        if let StatementResult::Rows(rows) = reply {
            self.largest_under_lock = self.largest_under_lock.max(handle::size(rows));
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects to the store. `process` is random and makes the names of this process's commits
    /// unique. Anything that is not finished by `limit` is reported as busy.
    pub fn open(
        access: Access,
        process: [u8; 16],
        limit: Option<Instant>,
    ) -> Result<Self, StoreError> {
        let mut store = Self {
            location: access.url.location(),
            access,
            link: None,
            limit,
            silent: None,
            process,
            commits: 0,
            memory: None,
            seen: Vec::new(),
            unconfirmed: Vec::new(),
            tell: None,
            repeat: Vec::new(),
            traffic: Traffic::default(),
        };
        let until = limit.unwrap_or_else(|| Instant::now() + CONNECT);
        store.connect(until)?;
        Ok(store)
    }

    /// The same with what the state directory `dir` remembers. News of the store are told to a person once.
    #[must_use]
    pub fn remembering(mut self, dir: &Path, tell: Option<fn(String)>) -> Self {
        let memory = StoreMemory::of(dir);
        self.seen = memory.seen();
        self.unconfirmed = memory.unconfirmed();
        self.memory = Some(memory);
        self.tell = tell;
        self
    }

    /// What it was asked so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn connect(&mut self, until: Instant) -> Result<(), StoreError> {
        self.link = None;
        let link = Link::open(&self.access, until).map_err(|lost| {
            let is_busy =
                lost == ConnectionLoss::Late && self.limit.is_some_and(|at| Instant::now() >= at);
            if is_busy {
                let store = self.location.clone();
                return StoreError::Busy { store };
            }
            error::lost(&self.location, &lost, true)
        })?;
        self.link = Some(link);
        Ok(())
    }

    /// Sends statements. A connection that broke while it was idle is replaced, if no statement of
    /// the transaction was sent on it.
    fn exchange(
        &mut self,
        statements: &[Statement],
        wait: Wait,
        is_first: bool,
    ) -> Result<Vec<Result<StatementResult, ServerError>>, ConnectionLoss> {
        self.traffic.round_trips += 1;
        let used = self.link.take();
        let is_used = used.is_some();
        let answered = match used.filter(|link| !link.is_closed()) {
            Some(link) => {
                let answered = link.exchange(statements, wait);
                if answered.is_ok() {
                    self.link = Some(link);
                }
                answered
            }
            None => Err(ConnectionLoss::Broken {
                code: None,
                why: std::io::ErrorKind::NotConnected.to_string(),
            }),
        };
        if matches!(answered, Err(ConnectionLoss::Late)) {
            self.silent = Some(Instant::now() + SILENCE);
        }
        match answered {
            Err(ConnectionLoss::Broken { .. })
                if is_first && is_used && !have_commit(statements) =>
            {
                let link = Link::open(&self.access, wait.end())?;
                let answered = link.exchange(statements, wait)?;
                self.link = Some(link);
                Ok(answered)
            }
            other => other,
        }
    }

    /// Ends a transaction without waiting for the server.
    fn roll_back(&mut self) {
        if let Some(link) = &self.link {
            link.send_only("ROLLBACK");
        }
    }

    /// The name of the next commit.
    fn next_request(&mut self) -> String {
        self.commits += 1;
        let process: String = self
            .process
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{process}-{}", self.commits)
    }

    /// Finds the outcome of a commit whose answer did not arrive.
    ///
    /// Inserting its row again waits until the transaction has ended, and shows how: if the row can
    /// be inserted, it was rolled back; if the row exists, it was committed.
    fn doubt_of_commit(
        &mut self,
        request: &str,
        lost: &ConnectionLoss,
        until: Instant,
    ) -> Result<(), StoreError> {
        // The caller's limit bounds the call; knowing what happened is worth a little more.
        let now = Instant::now();
        let until = (until - ANSWER).clamp(now + PROBE, now + USE_CASE);
        let ask = [
            Statement::batch(self.begin_text(TxMode::Write, until)),
            Statement::execute(
                "INSERT INTO commits (id, at) VALUES ($1, 0) ON CONFLICT DO NOTHING",
                params![request.to_owned()].to_vec(),
            ),
            Statement::batch("ROLLBACK"),
        ];
        let mut wait = Duration::from_millis(50);
        while Instant::now() < until {
            let answer = Link::open(&self.access, until).and_then(|link| {
                link.exchange(&ask, Wait::until(until))
                    .map(|answer| (link, answer))
            });
            if let Ok((link, answer)) = answer {
                self.link = Some(link);
                match answer.into_iter().nth(1) {
                    Some(Ok(StatementResult::Changed(0))) => return Ok(()),
                    Some(Ok(_)) => return Err(error::lost(&self.location, lost, false)),
                    // It has not ended yet.
                    Some(Err(_)) | None => {}
                }
            }
            self.pause(wait, until);
            wait = (wait * 2).min(Duration::from_millis(500));
        }
        Err(self.unknown(request))
    }

    fn unknown(&self, request: &str) -> StoreError {
        StoreError::OutcomeUnknown {
            store: self.location.clone(),
            request: Some(request.to_owned()),
        }
    }

    fn pause(&self, wait: Duration, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        connection::sleep(wait.min(left));
    }

    /// Forgets what the server warned about so far, such as its locale when the connection was made: only a warning
    /// about a commit says something about that commit.
    fn forget_warnings(&self) {
        if let Some(link) = &self.link {
            link.take_warnings();
        }
    }

    /// A commit that the server warned about is on its disk alone.
    fn check_replication(&mut self, request: Option<&str>) -> Result<(), StoreError> {
        let warnings = self.link.as_ref().map(Link::take_warnings);
        // A ROLLBACK of a transaction that the server has already ended is harmless.
        let is_about_commit = |code: &String| code != NO_TRANSACTION;
        if warnings.unwrap_or_default().iter().any(is_about_commit) {
            return Err(self.unknown(request.unwrap_or_default()));
        }
        Ok(())
    }

    /// Begins a transaction and reads what is known about the store.
    fn begin_statements(&self, mode: TxMode, until: Instant) -> [Statement; 2] {
        let about = migrations::about(mode, &self.access.url.schema);
        [
            Statement::batch(self.begin_text(mode, until)),
            Statement::query(about, self.remembered()),
        ]
    }

    /// How long the first exchange of a transaction may take.
    fn wait_for_first(&self, until: Instant, bounded: bool) -> Wait {
        if bounded {
            Wait::until(until.min(Instant::now() + CALL))
        } else {
            Wait::for_turn()
        }
    }

    /// Begins a transaction and sets its limits, for this transaction only.
    fn begin_text(&self, mode: TxMode, until: Instant) -> String {
        // The server gives up before we do, and the connection can be used again.
        let left = until.saturating_duration_since(Instant::now()) * 4 / 5;
        // Zero would mean no limit.
        let millis = |limit: Duration| limit.min(left).as_millis().max(1);
        let kind = match mode {
            TxMode::Read => "ISOLATION LEVEL REPEATABLE READ READ ONLY",
            TxMode::Write | TxMode::Beat => "ISOLATION LEVEL READ COMMITTED",
        };
        format!(
            "BEGIN {kind}; SET LOCAL search_path = {}; SET LOCAL lock_timeout = {}; \
             SET LOCAL statement_timeout = {}; SET LOCAL idle_in_transaction_session_timeout = {}",
            self.access.url.schema,
            millis(LOCK_WAIT),
            millis(STATEMENT),
            IDLE.as_millis(),
        )
    }
}

fn have_commit(statements: &[Statement]) -> bool {
    statements.iter().any(Statement::is_commit)
}

impl Store for PostgresStore {
    fn begin_until(
        &mut self,
        mode: TxMode,
        until: Option<Instant>,
    ) -> Result<Box<dyn Tx + '_>, StoreError> {
        let asked = until.into_iter().chain(self.limit).min();
        let usual = Instant::now() + USE_CASE;
        let limit = asked.map_or(usual, |at| at.min(usual));
        if self.silent.is_some_and(|until| Instant::now() < until) {
            return Err(error::lost(&self.location, &ConnectionLoss::Late, false));
        }
        if self.link.as_ref().is_none_or(Link::is_closed) {
            self.connect(limit)?;
        }
        let bounded = asked.is_some();
        let tx = PostgresTx::queued(self, mode, limit, bounded);
        Ok(Box::new(Rows::new(tx)))
    }

    fn locks_rows(&self) -> bool {
        true
    }

    fn changes(&mut self) -> Result<u64, StoreError> {
        let until = Instant::now() + CALL;
        if self.link.as_ref().is_none_or(Link::is_closed) {
            self.connect(until)?;
        }
        let schema = &self.access.url.schema;
        // One statement: each by itself would be a transaction of its own.
        let asked = format!(
            "SELECT number, age FROM {schema}.counter, ({}) AS clock (age)",
            clock::age_in(schema)
        );
        let replies = self
            .exchange(
                &[Statement::query(asked, Vec::new())],
                self.wait_for_first(until, self.limit.is_some()),
                true,
            )
            .map_err(|lost| error::lost(&self.location, &lost, false))?;
        let mut numbers = [None; 2];
        for reply in replies {
            let rows = reply.map_err(|fault| error::classify(&self.location, &fault))?;
            if let Some(row) = rows.rows().pop() {
                numbers = [0, 1].map(|at| row.try_get::<_, i64>(at).ok());
            }
        }
        // Waiters update the clock too: otherwise the time would stand still while every process
        // waits.
        if numbers[1].is_some_and(clock::is_old) {
            let moved = clock::move_in(&self.access.url.schema);
            let moved = Statement::execute(moved, params![clock::JUMP, clock::AGE].to_vec());
            self.exchange(&[moved], Wait::until(until), true)
                .ignore("the next check tries again");
        }
        match numbers[0] {
            Some(number) => Ok(number.cast_unsigned()),
            _ => Err(StoreError::Damaged {
                store: self.location.clone(),
                why: "table counter is empty".to_owned(),
            }),
        }
    }

    fn watch(&mut self, _: Option<&[WaitTopic]>) -> StoreWatch {
        StoreWatch::Poll { every: POLL }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn location(&self) -> String {
        self.location.clone()
    }
}
