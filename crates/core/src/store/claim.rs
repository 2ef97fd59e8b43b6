//! Claim keys, their holds and the path space.

use super::StoreError;
use crate::claim::{ClaimRecord, Hold, HoldEnd};
use crate::id::{Epoch, SessionId, SessionToken};
use crate::key::Key;
use crate::repository::Home;
use crate::time::Timestamp;

/// Which claims to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimFilter {
    /// Also those that nobody holds.
    pub free_too: bool,
    /// Only those that this session holds.
    pub session: Option<SessionId>,
    /// Only keys that begin with this.
    pub prefix: Option<String>,
    /// Only what is held with exactly this home.
    pub home: Option<Home>,
    /// Leave out rows that cannot be read; [`super::Tx::take_damage`] names them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many, in order of their keys; zero means all.
    pub limit: usize,
}

/// Which of a session's lost holds to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost<'a> {
    /// Those that ended at this time or later.
    Since(Timestamp),
    /// Those whose key begins with this.
    Below(&'a str),
}

/// Rows of a transaction.
pub trait ClaimRows {
    /// A key's row, if the key was ever granted.
    fn claim(&mut self, key: &Key) -> Result<Option<ClaimRecord>, StoreError>;

    /// A key's row as a grant needs it, with the epoch that the next one follows even where the key was
    /// never granted; locked as by [`super::Lock::Key`].
    fn lock_claim(&mut self, key: &Key) -> Result<ClaimRecord, StoreError>;

    /// How many keys a filter fits, whatever its limit.
    fn count_claims(&mut self, filter: &ClaimFilter) -> Result<usize, StoreError>;

    /// Keys with their newest holds, in order.
    fn list_claims(&mut self, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, StoreError>;

    /// Adds a grant and sets its key's epoch, which must still be `before`.
    fn insert_hold(&mut self, hold: &Hold, before: Epoch) -> Result<(), StoreError>;

    /// Ends an open hold; ending one that is not open is a conflict.
    fn end_hold(&mut self, key: &Key, epoch: Epoch, end: HoldEnd) -> Result<(), StoreError>;

    /// Ends all open holds of a session; tells which, in order of their keys.
    fn end_holds_of(
        &mut self,
        session: SessionId,
        end: HoldEnd,
    ) -> Result<Vec<(Key, Epoch)>, StoreError>;

    /// Lets a session hold in this life what it holds.
    fn carry_holds(&mut self, to: SessionToken) -> Result<(), StoreError>;

    /// A session's newest hold of a key.
    fn newest_hold_of(&mut self, session: SessionId, key: &Key)
    -> Result<Option<Hold>, StoreError>;

    /// A session's open holds, in order of their keys.
    fn open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError>;

    /// Holds of a session that ended without its act (by death, lease or a takeover) and after which it was
    /// not granted the key again, in order of their keys. What was given back costs nothing here.
    fn lost_holds(&mut self, session: SessionId, which: Lost<'_>) -> Result<Vec<Hold>, StoreError>;

    /// Those of [`ClaimRows::lost_holds`] of all these sessions that ended at this time or later, in one look.
    fn lost_holds_of(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<Hold>, StoreError>;

    /// When a session was granted something last.
    fn last_grant(&mut self, session: SessionId) -> Result<Option<Timestamp>, StoreError>;

    /// For every key that a session ever held, its newest hold of it, in order of the keys.
    fn newest_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError>;

    /// The homes of open holds, each once.
    fn open_homes(&mut self) -> Result<Vec<Home>, StoreError>;

    /// Keys that were stored under another spelling, and whose canonical one begins with this.
    fn spellings(&mut self, canonical: &str) -> Result<Vec<Key>, StoreError>;
}
