//! What sessions are to be told.

use super::StoreError;
use crate::id::{SessionId, SessionToken};
use crate::notice::{Notice, NoticeId, Pending};
use crate::time::Timestamp;

/// Rows of a transaction.
pub trait NoticeRows {
    /// Keeps a notice until it is delivered.
    fn add_notice(&mut self, notice: &Notice) -> Result<(), StoreError>;

    /// Whether anything waits to be told to a session.
    fn has_notices(&mut self, session: SessionId) -> Result<bool, StoreError>;

    /// What waits to be told to a session: losses first, then the oldest first; at most `limit`.
    fn pending_notices(&mut self, session: SessionId, limit: usize) -> Result<Pending, StoreError>;

    /// Keeps that these notices of a session were told; they are never returned again.
    fn mark_delivered(
        &mut self,
        session: SessionId,
        told: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Keeps that hooks speak to the model of this session in this life.
    fn note_model_channel(&mut self, session: SessionToken) -> Result<(), StoreError>;

    /// Whether hooks speak to the model of this session in this life.
    fn has_model_channel(&mut self, session: SessionToken) -> Result<bool, StoreError>;
}
