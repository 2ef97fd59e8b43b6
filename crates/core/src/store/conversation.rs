//! Conversations of agents and items, their history, and links between items.

use super::StoreError;
use crate::conversation::{Conversation, IdEnd, ItemState, PastId};
use crate::id::{AgentName, NativeId, WorkerRole};
use crate::key::Key;

/// Which conversations to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Only those of exactly this item.
    pub item: Option<Key>,
    pub agent: Option<AgentName>,
    pub role: Option<WorkerRole>,
    /// Also those that are closed.
    pub closed_too: bool,
    /// Only those after this item, agent and role.
    pub after: Option<(Key, AgentName, WorkerRole)>,
    /// Leave out rows that cannot be read; [`super::Tx::take_damage`] names them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many, in order of items, agents and roles; zero means all.
    pub limit: usize,
}

/// Rows of a transaction.
pub trait ConversationRows {
    /// The record of an agent in a role and exactly this item, whatever the item is linked to.
    fn conversation(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
    ) -> Result<Option<Conversation>, StoreError>;

    /// The record that has a native id, closed or not.
    fn conversation_with(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<Conversation>, StoreError>;

    /// Records of all agents and roles of exactly this item, in this order; those without a native id, too.
    fn conversations_of(&mut self, item: &Key) -> Result<Vec<Conversation>, StoreError>;

    /// Records that have a native id, in order of items, agents and roles.
    fn list_conversations(
        &mut self,
        filter: &ConversationFilter,
    ) -> Result<Vec<Conversation>, StoreError>;

    /// How many a filter fits, whatever its limit and where it begins.
    fn count_conversations(&mut self, filter: &ConversationFilter) -> Result<usize, StoreError>;

    /// Adds a record. A second one of an agent, role and item, or of a native id, is a conflict.
    fn insert_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError>;

    /// Replaces a record if its revision is still the one given, and raises the revision. A native id that
    /// another record has is a conflict.
    fn update_conversation(&mut self, conversation: &Conversation) -> Result<(), StoreError>;

    /// Every native id of a record, the oldest first.
    fn past_ids(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
    ) -> Result<Vec<PastId>, StoreError>;

    /// Adds a native id to a record's history. A second one without an end is a conflict.
    fn add_past_id(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
        id: &PastId,
    ) -> Result<(), StoreError>;

    /// Ends the native id of a record that has no end; none is a conflict.
    fn end_past_id(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        item: &Key,
        end: &IdEnd,
    ) -> Result<(), StoreError>;

    /// What is known of an item.
    fn item_state(&mut self, item: &Key) -> Result<Option<ItemState>, StoreError>;

    /// Keeps what is known of an item in place of what was known.
    fn set_item_state(&mut self, state: &ItemState) -> Result<(), StoreError>;

    /// The items that are linked to a root, in order.
    fn items_linked_to(&mut self, root: &Key) -> Result<Vec<ItemState>, StoreError>;
}
