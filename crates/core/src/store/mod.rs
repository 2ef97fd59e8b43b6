//! What a backend must do: get, insert, compare and set, list, append, and say what time it is.
//!
//! No rule lives behind this trait. A transaction is begun for reading or for writing; dropping it
//! without a commit undoes it. A write transaction must be serial with every other writer of the rows
//! that it locked or changed: SQLite has one writer at a time, PostgreSQL locks the row in
//! [`ClaimRows::lock_claim`] and [`SessionRows::lock_session`]. Both keep unique constraints as the last word, and report
//! a lost race as [`StoreError::Conflict`], upon which the service runs the whole use case again.
//!
//! Callers lock several claim keys in ascending order only, so that two of them never wait for each other.

mod claim;
mod doubt;
mod event;
mod line;
mod metadata;
mod mirror;
mod mission;
mod native;
mod notice;
mod session;
mod transcript;
mod write;

use std::path::PathBuf;

use crate::id::SessionId;
use crate::key::Key;
use crate::time::{Now, Timestamp};

pub use claim::{ClaimFilter, ClaimRows, Lost};
pub use doubt::DoubtRows;
pub use event::EventRows;
pub use line::{LineRows, NewWaiter};
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
    #[error("another change came first")]
    Conflict,
    /// It was in use for longer than we wait.
    #[error("the store {store} is in use by another process and did not become free")]
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
    #[error("the store {store} is damaged: {why}; it was left as it is")]
    Damaged {
        store: String,
        /// What is wrong.
        why: String,
    },
    /// Its newest changes were in a log that is gone.
    #[error(
        "the log {log} of the store {store} {how}, and changes were in it that are nowhere else; nothing was changed"
    )]
    LogLost {
        store: String,
        log: String,
        /// What became of it.
        how: String,
    },
    /// Its file is not the one that was opened.
    #[error(
        "the store {store} was removed or replaced while it was in use; what is done in the old one does not count"
    )]
    Replaced { store: String },
    /// A newer tenure wrote it.
    #[error(
        "the store {store} was written by a newer tenure (schema {found}, this one knows {known}); it was left as it is"
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
    /// Begins a transaction.
    fn begin(&mut self, mode: Mode) -> Result<Box<dyn Tx + '_>, StoreError>;

    /// A number that changes whenever somebody else committed since it was last asked for.
    fn changes(&mut self) -> Result<u64, StoreError>;

    /// Files of which one is written to right after each commit that may matter to who waits for these: a
    /// grant, the end of a hold, a turn, a waiter that left, the end of a session. None where commits
    /// cannot be told apart: then each is worth a look.
    fn bells(&mut self, about: &[Topic]) -> Option<Vec<PathBuf>>;

    /// Whether several machines use it.
    fn is_shared(&self) -> bool;

    /// Where it is, for people: a path, or a URL without its password.
    fn location(&self) -> String;
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

    /// What time it is for the store.
    fn now(&mut self) -> Result<Now, StoreError>;

    /// Takes what was left out of lists because it could not be read: which row, and what is wrong with it.
    fn take_damage(&mut self) -> Vec<String>;

    /// What happened to the store itself last, if anything did: it was moved, copied or rolled back.
    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError>;
}
