//! Keepers and the sessions that they watch. Only a store that several machines use has any.

use super::StoreError;
use crate::id::{Epoch, KeeperId, SessionId, SessionToken};
use crate::keeper::{Keeper, KeeperPlace};
use crate::key::Key;
use crate::session::Session;
use crate::time::{Deadline, Timestamp};

/// A hold that a keeper answers for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedHold {
    pub session: SessionToken,
    pub key: Key,
    pub epoch: Epoch,
}

/// A takeover that a keeper may not know of yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold {
    pub key: Key,
    /// The epoch that was taken.
    pub epoch: Epoch,
    pub keeper: KeeperId,
    /// When, on the store's clock.
    pub at: Deadline,
}

pub trait KeeperRows {
    /// Records a renewal; the first one makes the row. The caller has locked it.
    fn renew_keeper(&mut self, keeper: &Keeper) -> Result<(), StoreError>;

    /// Removes a keeper that ends by itself, and what it watches. Its sessions live by their own leases.
    fn remove_keeper(&mut self, id: &KeeperId) -> Result<(), StoreError>;

    /// All keepers, the one that renewed last first.
    fn keepers(&mut self) -> Result<Vec<Keeper>, StoreError>;

    /// Records that a keeper watches these sessions in these lives, in place of any other keeper.
    fn watch_sessions(
        &mut self,
        keeper: &KeeperId,
        sessions: &[SessionToken],
    ) -> Result<(), StoreError>;

    /// Who watches these sessions, and in which life. Unwatched ones are left out.
    fn watchers_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionToken, Keeper)>, StoreError>;

    /// Records that a key was taken from a session that a keeper watches. The keeper may permit writes to it until it
    /// has learnt of that.
    fn add_untold(&mut self, untold: &Untold) -> Result<(), StoreError>;

    /// The keepers that may still permit writes to these keys, which were taken from their sessions.
    fn untold(&mut self, keys: &[Key]) -> Result<Vec<(Untold, Keeper)>, StoreError>;

    /// Forgets the takeovers before this that a keeper has learnt of.
    fn forget_untold(&mut self, keeper: &KeeperId, before: &Deadline) -> Result<(), StoreError>;

    /// The open sessions whose processes are at a place, in any boot of it.
    fn open_sessions_at(&mut self, place: &KeeperPlace) -> Result<Vec<Session>, StoreError>;

    /// The open holds of the sessions that a keeper watches.
    fn watched_holds(&mut self, keeper: &KeeperId) -> Result<Vec<WatchedHold>, StoreError>;

    /// Forgets up to `most` keepers that were last seen before this, unless an open session is watched by them.
    fn forget_keepers(&mut self, before: Timestamp, most: usize) -> Result<usize, StoreError>;
}
