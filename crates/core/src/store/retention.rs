//! Sessions that ended long ago.

use super::StoreError;
use crate::id::SessionId;
use crate::retention::Need;
use crate::time::Timestamp;

/// A place in the list of closed sessions.
pub type ClosedAt = (Timestamp, SessionId);

pub trait RetentionRows {
    /// Sessions that closed before a moment, behind a place in their list; the one that closed first comes first.
    fn closed_before(
        &mut self,
        before: Timestamp,
        after: Option<ClosedAt>,
        limit: usize,
    ) -> Result<Vec<ClosedAt>, StoreError>;

    /// What needs these sessions, once events from before a moment are gone; one that nothing needs is not named.
    fn needs_of(
        &mut self,
        sessions: &[SessionId],
        before: Timestamp,
    ) -> Result<Vec<(SessionId, Need)>, StoreError>;

    /// Removes closed sessions that nothing needs, with their lives, ids, holds, notices and files. The epochs of the keys
    /// that they held stay.
    fn remove_sessions(&mut self, sessions: &[SessionId]) -> Result<usize, StoreError>;
}
