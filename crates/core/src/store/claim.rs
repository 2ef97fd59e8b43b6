//! Claim keys, their holds and the path space.

use super::StoreError;
use crate::claim::{ClaimRecord, Hold, HoldEnd};
use crate::id::{Epoch, SessionId, SessionToken};
use crate::key::Key;
use crate::repository::Home;
use crate::time::Timestamp;
use crate::timeline::{TimelineFilter, TimelineHold};

/// Which claims to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimFilter {
    /// Include those that are free.
    pub free_too: bool,
    /// Only those that this session holds.
    pub session: Option<SessionId>,
    /// Only keys that begin with this.
    pub prefix: Option<String>,
    /// Only what is held with exactly this home.
    pub home: Option<Home>,
    /// Skip unreadable rows; [`super::Tx::take_damage`] reports them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many, ordered by key; zero means all.
    pub limit: usize,
}

/// Which of a session's lost holds to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostHolds<'a> {
    /// Those that ended at this time or later.
    Since(Timestamp),
    /// Those whose key begins with this.
    Below(&'a str),
}

pub trait ClaimRows {
    /// The rows of these keys, without those that were never granted.
    fn claims(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError>;

    /// The row of one key.
    fn claim(&mut self, key: &Key) -> Result<Option<ClaimRecord>, StoreError> {
        Ok(self.claims(std::slice::from_ref(key))?.pop())
    }

    /// The rows of these keys for a grant, with the epochs that the next grants follow even if a key was never
    /// granted; locked as by [`super::Lock::Key`].
    fn lock_claims(&mut self, keys: &[Key]) -> Result<Vec<ClaimRecord>, StoreError>;

    /// The same for one key.
    fn lock_claim(&mut self, key: &Key) -> Result<ClaimRecord, StoreError> {
        let row = self.lock_claims(std::slice::from_ref(key))?.pop();
        row.ok_or(StoreError::Conflict)
    }

    /// How many keys match a filter, whatever its limit.
    fn count_claims(&mut self, filter: &ClaimFilter) -> Result<usize, StoreError>;

    /// Keys with their newest holds, in order.
    fn list_claims(&mut self, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, StoreError>;

    /// Adds a grant and sets its key's epoch, which must still be `before`.
    fn insert_hold(&mut self, hold: &Hold, before: Epoch) -> Result<(), StoreError>;

    /// Ends an open hold; ending one that is not open is a conflict.
    fn end_hold(&mut self, key: &Key, epoch: Epoch, end: HoldEnd) -> Result<(), StoreError>;

    /// Ends all open holds of a session; returns them, ordered by key.
    fn end_holds_of(
        &mut self,
        session: SessionId,
        end: HoldEnd,
    ) -> Result<Vec<(Key, Epoch)>, StoreError>;

    /// Moves a session's open holds to this life.
    fn carry_holds(&mut self, to: SessionToken) -> Result<(), StoreError>;

    /// A session's newest hold of a key.
    fn newest_hold_of(&mut self, session: SessionId, key: &Key)
    -> Result<Option<Hold>, StoreError>;

    /// A session's newest holds of all these keys.
    fn newest_holds_among(
        &mut self,
        session: SessionId,
        keys: &[Key],
    ) -> Result<Vec<Hold>, StoreError>;

    /// A session's open holds, ordered by key.
    fn open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError>;

    /// The open holds of all these sessions, ordered by key.
    fn open_holds_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Hold>, StoreError>;

    /// Holds of a session that ended without its act (by death, lease or a takeover) and after which it was not
    /// granted the key again, ordered by key. Released holds cost nothing here.
    fn lost_holds(
        &mut self,
        session: SessionId,
        which: LostHolds<'_>,
    ) -> Result<Vec<Hold>, StoreError>;

    /// The same for all these sessions, for holds that ended at this time or later, in one query.
    fn lost_holds_of(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<Hold>, StoreError>;

    /// When a session was last granted something.
    fn last_grant(&mut self, session: SessionId) -> Result<Option<Timestamp>, StoreError>;

    /// For every key that a session ever held, its newest hold, ordered by key.
    fn newest_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError>;

    /// A session's newest hold of a path in each repository in which it ever held it. Costs as much as it held paths in
    /// repositories, not as it held paths.
    fn newest_holds_of_path(
        &mut self,
        session: SessionId,
        glob: &str,
    ) -> Result<Vec<Hold>, StoreError>;

    /// The newest holds of all these sessions.
    fn newest_holds_of(&mut self, sessions: &[SessionId]) -> Result<Vec<Hold>, StoreError>;

    /// The same without open holds and without those that the session released, handed over or marked as done.
    fn ungiven_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError>;

    /// The timeline: first what is held, by key, then what ended, the latest end first. Unreadable rows are skipped;
    /// [`super::Tx::take_damage`] reports them.
    fn timeline(&mut self, filter: &TimelineFilter) -> Result<Vec<TimelineHold>, StoreError>;

    /// The homes of open holds, without duplicates.
    fn open_homes(&mut self) -> Result<Vec<Home>, StoreError>;
}
