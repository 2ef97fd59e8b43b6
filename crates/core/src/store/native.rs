//! Conversations: who owns one, and who visits it.

use super::StoreError;
use crate::id::{AgentName, NativeId, SessionId};
use crate::time::Timestamp;

/// One conversation in a session's lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageEntry {
    /// The conversation.
    pub native_id: NativeId,
    /// Whether the session owns it, or only visits it.
    pub owned: bool,
    /// Since when.
    pub at: Timestamp,
}

/// Rows of a transaction.
pub trait NativeRows {
    /// The session that owns a conversation.
    fn native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<SessionId>, StoreError>;

    /// Makes a session the owner of a conversation in the place of `before`; another owner is a conflict.
    fn set_native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        before: Option<SessionId>,
        owner: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Sessions that visit a conversation which another owns.
    fn native_visitors(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Vec<SessionId>, StoreError>;

    /// Records a visit; visiting twice changes nothing.
    fn add_visit(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        visitor: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// The conversations that a session owns or visits, the oldest first.
    fn lineage(&mut self, session: SessionId) -> Result<Vec<LineageEntry>, StoreError>;
}
