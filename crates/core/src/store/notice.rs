//! Notices for sessions.

use super::StoreError;
use crate::id::{SessionId, SessionToken};
use crate::key::Key;
use crate::notice::{Notice, NoticeId, Pending};
use crate::time::Timestamp;

pub trait NoticeRows {
    /// Stores a notice until it is delivered.
    fn add_notice(&mut self, notice: &Notice) -> Result<(), StoreError>;

    /// Whether a session has pending notices.
    fn has_notices(&mut self, session: SessionId) -> Result<bool, StoreError>;

    /// The pending notices of a session: losses first, then oldest first; at most `limit`.
    fn pending_notices(&mut self, session: SessionId, limit: usize) -> Result<Pending, StoreError>;

    /// Those of these keys whose loss is a pending notice of a session.
    fn losses_told(&mut self, session: SessionId, keys: &[Key]) -> Result<Vec<Key>, StoreError>;

    /// Marks these notices of a session as delivered; they are never returned again.
    fn mark_delivered(
        &mut self,
        session: SessionId,
        told: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Records that these pending notices of a session were taken to start a turn.
    fn take_to_wake(
        &mut self,
        session: SessionId,
        taken: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Records that hooks reach the model of this session in this life.
    fn note_model_channel(&mut self, session: SessionToken) -> Result<(), StoreError>;

    /// Whether hooks reach the model of this session in this life.
    fn has_model_channel(&mut self, session: SessionToken) -> Result<bool, StoreError>;
}
