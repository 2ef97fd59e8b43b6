//! What a backend must do: get, insert, compare and set, list, append, and report the time.
//!
//! No rule is implemented behind this trait. A transaction is for reading or for writing; dropping it without a
//! commit rolls it back. A write transaction must be serialised with every other writer of what it locked
//! ([`Lock`]) or changed. A backend with one writer at a time gets that for free; another one locks rows. Both
//! enforce unique constraints as a last line of defence, and report a lost race as [`StoreError::Conflict`],
//! after which the service runs the whole use case again.
//!
//! Text is compared and ordered by its bytes, above all keys, which are locked in that order.

mod claim;
mod conversation;
mod doubt;
mod event;
mod job;
mod keeper;
mod line;
mod lock;
mod metadata;
mod mirror;
mod mission;
mod native;
mod notice;
mod reply;
mod retention;
mod run;
mod session;
mod spend;
mod token;
mod transcript;
mod undecided;
mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::id::SessionId;
use crate::key::Key;
use crate::time::{Now, Timestamp};

pub use claim::{ClaimFilter, ClaimRows, LostHolds};
pub use conversation::{ConversationFilter, ConversationRows};
pub use doubt::DoubtRows;
pub use event::EventRows;
pub use job::{DeliveryFilter, DeliveryRows, JobFilter, JobRows, WaitingFilter};
pub use keeper::{KeeperRows, Untold, WatchedHold};
pub use line::{LineRows, NewWaiter};
pub use lock::Lock;
pub use metadata::MetadataRows;
pub use mirror::MirrorRows;
pub use mission::MissionRows;
pub use native::{LineageEntry, NativeRows};
pub use notice::NoticeRows;
pub use reply::ReplyRows;
pub use retention::{ClosedAt, RetentionRows};
pub use run::{CutOff, RunFilter, RunRows};
pub use session::{ProcessPlace, SessionFilter, SessionRows};
pub use spend::SpendRows;
pub use token::TokenRows;
pub use transcript::TranscriptRows;
pub use undecided::UndecidedRows;
pub use write::WriteRows;

/// Why a store operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process was faster; run the use case again.
    #[error("another process changed the same data first")]
    Conflict,
    /// It was in use for longer than tenure waits.
    #[error("timed out waiting for the store {store}, which another process is using")]
    Busy { store: String },
    /// The disk is full.
    #[error("the disk that holds the store {store} is full; nothing was changed")]
    Full { store: String },
    /// It cannot be opened, read or written.
    #[error("cannot use the store {store}: {why}")]
    Unavailable {
        store: String,
        /// The error.
        why: String,
    },
    /// It lets only another role change this.
    #[error("{whose}, and only that role can change it; nothing was changed")]
    NotOwner {
        /// What belongs to which role.
        whose: String,
    },
    /// The connection to it broke, and it is known that nothing was changed; run the use case again.
    #[error("cannot use the store {store}: {why}; nothing was changed")]
    Interrupted {
        store: String,
        /// How it broke.
        why: String,
    },
    /// It opens, but its content is not what was written.
    #[error("the store {store} is damaged: {why}; it was left unchanged")]
    Damaged {
        store: String,
        /// What is wrong.
        why: String,
    },
    /// Its newest changes were in a log that is lost.
    #[error(
        "the log {log} of the store {store} {how}; it held changes that are stored nowhere else; nothing was changed"
    )]
    LogLost {
        store: String,
        log: String,
        /// What happened to the log.
        how: String,
    },
    /// Its file is not the one that was opened.
    #[error(
        "the store {store} was removed or replaced while it was in use; changes made to the old one do not count"
    )]
    Replaced { store: String },
    /// It was sent a commit and did not answer, or the disk did not confirm one, so nobody knows whether it happened.
    #[error("the store {store} did not confirm the change; it may or may not have been made{}", named(request.as_deref()))]
    OutcomeUnknown {
        store: String,
        /// The name under which a store on a server remembers the change, if it was made.
        request: Option<String>,
    },
    /// Another store took its place.
    #[error("the store {store} was moved to {to}; nothing was changed")]
    Moved {
        store: String,
        /// The location of the other one, without its password.
        to: String,
    },
    /// A copy into it was not finished.
    #[error("the store {store} is an unfinished copy of {from}; nothing was changed")]
    Unfinished {
        store: String,
        /// The location of the store that is copied.
        from: String,
    },
    /// It was never created, or its schema is older than this version needs.
    #[error(
        "the store {store} is not ready for this version of tenure (schema {found}, needed {known}); it was left unchanged"
    )]
    Unmigrated {
        store: String,
        /// Its schema; zero if there is none.
        found: u32,
        /// The schema that this version needs.
        known: u32,
    },
    /// Others use it with an older version.
    #[error(
        "the store {store} was not migrated, because older versions use it ({clients}); nothing was changed"
    )]
    InUse {
        store: String,
        /// Which versions, and where.
        clients: String,
    },
    /// A newer tenure wrote it.
    #[error(
        "the store {store} needs tenure {needs} or later (schema {found}, this one supports {known}); it was left unchanged"
    )]
    TooNew {
        store: String,
        /// Its schema.
        found: u32,
        /// The newest schema that this version supports.
        known: u32,
        /// The version that can use it.
        needs: String,
    },
}

/// A request in brackets.
fn named(request: Option<&str>) -> String {
    request.map_or_else(String::new, |request| format!(" (request {request})"))
}

impl StoreError {
    /// For a transaction that an earlier error ended: nothing can be done in it any more.
    pub fn over(store: &str) -> Self {
        Self::Unavailable {
            store: store.to_owned(),
            why: "the transaction is over after an earlier error".to_owned(),
        }
    }

    /// For a file system on which SQLite cannot have its log.
    pub fn without_shared_memory(store: &str) -> Self {
        Self::Unavailable {
            store: store.to_owned(),
            why: "its file system cannot share memory between processes, which the log needs"
                .to_owned(),
        }
    }
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TxMode {
    /// Read one consistent state.
    Read,
    /// Change state; the commit survives a power failure.
    Write,
    /// Change only heartbeats, which mean nothing after a power failure.
    Beat,
}

pub trait Store {
    /// Begins a transaction. Whatever is not available by `until` is reported as busy, here and within the
    /// transaction; without `until` a backend waits for its usual time.
    fn begin_until(
        &mut self,
        mode: TxMode,
        until: Option<Instant>,
    ) -> Result<Box<dyn Tx + '_>, StoreError>;

    /// The same without a deadline from the caller.
    fn begin(&mut self, mode: TxMode) -> Result<Box<dyn Tx + '_>, StoreError> {
        self.begin_until(mode, None)
    }

    /// What must have happened in the store before these rows are locked in a new transaction; usually nothing.
    fn before_locks(
        &mut self,
        _locks: &BTreeSet<Lock>,
        _until: Option<Instant>,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether a write transaction excludes only writers that lock the same. If it excludes every other writer,
    /// nothing needs to be locked by name.
    fn locks_rows(&self) -> bool;

    /// A number that changes whenever another process has committed since the last call.
    fn changes(&mut self) -> Result<u64, StoreError>;

    /// How to wait for a commit of another process: any but heartbeats and traces of written files, or one that may
    /// matter for these topics (a grant, the end of a hold, a turn, a waiter that left, the end of a session).
    fn watch(&mut self, about: Option<&[WaitTopic]>) -> StoreWatch;

    /// Whether several machines use it.
    fn is_shared(&self) -> bool;

    /// Its location for people: a path, or a URL without its password.
    fn location(&self) -> String;

    /// For a process that stays and writes often: moves the upkeep of the store from its commits to this call.
    fn checkpoint(&mut self, _: Checkpoint) {
        // A server looks after its store itself.
    }
}

/// How much upkeep of its store a process has time for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkpoint {
    /// Between two writes.
    Small,
    /// There is nothing to write.
    Full,
    /// The process ends.
    Final,
}

/// How to wait for a change of a store. Each is only a hint: [`Store::changes`] decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreWatch {
    /// By its files: the files in this directory change just before each commit becomes visible.
    Files {
        dir: PathBuf,
        /// One of these is written to right after each relevant commit. None if all commits matter, or if they
        /// cannot be distinguished.
        only: Option<Vec<PathBuf>>,
    },
    /// By polling.
    Poll { every: Duration },
}

/// What a waiter waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitTopic {
    /// A key becomes free, or its line moves.
    Key(Key),
    /// A session ends.
    Session(SessionId),
}

/// What a use case is about to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch<'a> {
    /// [`SessionRows::sessions_at_any`] and [`SessionRows::lives_at_any`].
    SessionsAt(&'a [ProcessPlace<'a>]),
    /// [`NoticeRows::has_notices`] and [`DoubtRows::has_doubts`].
    News(SessionId),
    /// [`ClaimRows::claims`].
    Claims(&'a [Key]),
    /// [`ClaimRows::newest_holds_among`].
    NewestHolds(SessionId, &'a [Key]),
}

pub trait Tx:
    SessionRows
    + NativeRows
    + ClaimRows
    + LineRows
    + NoticeRows
    + EventRows
    + MetadataRows
    + TranscriptRows
    + WriteRows
    + DoubtRows
    + MissionRows
    + MirrorRows
    + ConversationRows
    + RunRows
    + JobRows
    + DeliveryRows
    + ReplyRows
    + UndecidedRows
    + KeeperRows
    + TokenRows
    + SpendRows
    + RetentionRows
{
    /// Makes all changes of this transaction durable, or none.
    fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// Locks something against other writers until the transaction ends; locking it again has no effect.
    /// Callers lock in ascending order, before they read the time.
    fn lock(&mut self, lock: &Lock) -> Result<(), StoreError>;

    /// Announces what is read next, so that a store far away answers all of it in one round trip. It changes no
    /// answer.
    fn prefetch(&mut self, _soon: Prefetch<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    /// The store's time; read after the last lock, since waiting for a lock takes time.
    fn now(&mut self) -> Result<Now, StoreError>;

    /// Takes the report of unreadable rows that were skipped in lists: which row, and what is wrong with it.
    fn take_damage(&mut self) -> Vec<String>;

    /// The last incident of the store itself, if there was one: it was moved, copied or rolled back.
    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError>;
}
