//! What a backend must do: get, insert, compare and set, list, append, and say what time it is.
//!
//! No rule lives behind this trait. A transaction is begun for reading or for writing; dropping it
//! without a commit undoes it. A write transaction must be serial with every other writer of what it
//! locked ([`Lock`]) or changed: a backend with one writer at a time has that for nothing, another locks
//! rows. Both keep unique constraints as the last word, and report a lost race as
//! [`StoreError::Conflict`], upon which the service runs the whole use case again.
//!
//! Text is compared and ordered by its bytes, keys above all: they are locked in that order.

mod claim;
mod doubt;
mod event;
mod line;
mod lock;
mod metadata;
mod mirror;
mod mission;
mod native;
mod notice;
mod session;
mod transcript;
mod write;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::id::SessionId;
use crate::key::Key;
use crate::time::{Now, Timestamp};

pub use claim::{ClaimFilter, ClaimRows, Lost};
pub use doubt::DoubtRows;
pub use event::EventRows;
pub use line::{LineRows, NewWaiter};
pub use lock::Lock;
pub use metadata::MetadataRows;
pub use mirror::MirrorRows;
pub use mission::MissionRows;
pub use native::{LineageEntry, NativeRows};
pub use notice::NoticeRows;
pub use session::{ProcessPlace, SessionFilter, SessionRows};
pub use transcript::TranscriptRows;
pub use write::WriteRows;

/// Why a store did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else was faster; run the use case again.
    #[error("another process changed the same data first")]
    Conflict,
    /// It was in use for longer than we wait.
    #[error("timed out waiting for the store {store}, which another process is using")]
    Busy { store: String },
    /// There is no room.
    #[error("the disk that holds the store {store} is full; nothing was changed")]
    Full { store: String },
    /// It cannot be opened, read or written.
    #[error("cannot use the store {store}: {why}")]
    Unavailable {
        store: String,
        /// What stands in the way.
        why: String,
    },
    /// It opens, but what it holds is not what was written.
    #[error("the store {store} is damaged: {why}; it was left unchanged")]
    Damaged {
        store: String,
        /// What is wrong.
        why: String,
    },
    /// Its newest changes were in a log that is gone.
    #[error(
        "the log {log} of the store {store} {how}; it held changes that are stored nowhere else; nothing was changed"
    )]
    LogLost {
        store: String,
        log: String,
        /// What became of it.
        how: String,
    },
    /// Its file is not the one that was opened.
    #[error(
        "the store {store} was removed or replaced while it was in use; changes made to the old one do not count"
    )]
    Replaced { store: String },
    /// A newer tenure wrote it.
    #[error(
        "the store {store} was written by a newer tenure (schema {found}, this one supports {known}); it was left unchanged"
    )]
    TooNew {
        store: String,
        /// Its schema.
        found: u32,
        /// Ours.
        known: u32,
        /// The version that can use it.
        needs: String,
    },
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Reading one consistent state.
    Read,
    /// Changing state; the commit survives a power cut.
    Write,
    /// Changing nothing but heartbeats, which mean nothing after a power cut.
    Beat,
}

/// A backend.
pub trait Store {
    /// Begins a transaction. What cannot be had by `until` is answered as busy, there and in the
    /// transaction; without it a backend waits as long as is usual for it.
    fn begin_until(
        &mut self,
        mode: Mode,
        until: Option<Instant>,
    ) -> Result<Box<dyn Tx + '_>, StoreError>;

    /// The same without a limit of the caller's.
    fn begin(&mut self, mode: Mode) -> Result<Box<dyn Tx + '_>, StoreError> {
        self.begin_until(mode, None)
    }

    /// Whether a write transaction keeps only those out who lock what it locked. Where it keeps every other
    /// writer out, nothing needs to be locked by name.
    fn locks_rows(&self) -> bool;

    /// A number that changes whenever somebody else committed since it was last asked for.
    fn changes(&mut self) -> Result<u64, StoreError>;

    /// How to wait for a commit of somebody else's: for any, or for one that may matter to who waits for
    /// these (a grant, the end of a hold, a turn, a waiter that left, the end of a session).
    fn watch(&mut self, about: Option<&[Topic]>) -> StoreWatch;

    /// Whether several machines use it.
    fn is_shared(&self) -> bool;

    /// Where it is, for people: a path, or a URL without its password.
    fn location(&self) -> String;
}

/// How to wait for a change of a store. Each is a hint only: [`Store::changes`] has the last word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreWatch {
    /// By its files: those of this directory change a moment before each commit can be seen.
    Files {
        dir: PathBuf,
        /// Of these one is written to right after each commit that may matter. None where every commit
        /// was asked for, or commits cannot be told apart.
        only: Option<Vec<PathBuf>>,
    },
    /// By asking again and again.
    Poll { every: Duration },
}

/// What a waiter waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    /// That a key becomes free, or its line moves.
    Key(Key),
    /// That a session ends.
    Session(SessionId),
}

/// One transaction.
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
{
    /// Makes everything of this transaction last, or nothing.
    fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// Locks something against other writers until the transaction ends; what is locked already stays so.
    /// Callers lock in ascending order, and before they ask for the time.
    fn lock(&mut self, lock: &Lock) -> Result<(), StoreError>;

    /// What time it is for the store: asked for after the last lock, since waiting for one takes time.
    fn now(&mut self) -> Result<Now, StoreError>;

    /// Takes what was left out of lists because it could not be read: which row, and what is wrong with it.
    fn take_damage(&mut self) -> Vec<String>;

    /// What happened to the store itself last, if anything did: it was moved, copied or rolled back.
    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError>;
}
