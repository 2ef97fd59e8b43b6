//! Conversations: who owns one, and who visits it.

use super::StoreError;
use crate::id::{AgentName, NativeId, SessionId};
use crate::time::Timestamp;

/// One conversation in a session's lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageEntry {
    pub native_id: NativeId,
    /// Whether the session owns it, or only visits it.
    pub owned: bool,
    pub at: Timestamp,
}

pub trait NativeRows {
    /// The session that owns a conversation.
    fn native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<SessionId>, StoreError>;

    /// Makes a session the owner of a conversation if the owner is still `before`; another owner is a conflict.
    fn set_native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        before: Option<SessionId>,
        owner: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Sessions that visit a conversation owned by another.
    fn native_visitors(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Vec<SessionId>, StoreError>;

    /// Records a visit; a second visit changes nothing.
    fn add_visit(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        visitor: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// The sessions that own or visit these conversations of an agent, each with its conversation; owners come last.
    fn in_conversations(
        &mut self,
        agent: &AgentName,
        natives: &[NativeId],
    ) -> Result<Vec<(NativeId, SessionId)>, StoreError>;

    /// The conversations that a session owns or visits, oldest first.
    fn lineage(&mut self, session: SessionId) -> Result<Vec<LineageEntry>, StoreError>;

    /// The same for all these sessions.
    fn lineages(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionId, LineageEntry)>, StoreError>;
}
