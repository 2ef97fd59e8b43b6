//! Requests about conversations, and the first steps of every use case.

use tenure_core::conversation::{Author, Home, ItemState};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{AgentName, NativeId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::session::Session;

use crate::caller::{self, ActFor, Caller, Purpose};
use crate::context::{Ctx, Stop};

/// Sets the native id of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetRequest {
    pub agent: AgentName,
    pub role: WorkerRole,
    pub item: Key,
    pub native_id: NativeId,
    /// Where the agent keeps it.
    pub home: Home,
    /// Only if this is the record's current revision; 0 if there must be no record yet.
    pub revision: Option<u64>,
}

/// A native id to set for the conversation of an agent in a role and a root.
#[derive(Debug, Clone)]
pub(super) struct NewNative<'a> {
    pub agent: &'a AgentName,
    pub role: &'a WorkerRole,
    /// The item whose conversation it is; never a linked item.
    pub root: &'a Key,
    pub native_id: &'a NativeId,
    pub home: &'a Home,
    pub author: Author,
    /// The session that sets it, and may itself be in it.
    pub writer: Option<&'a Session>,
}

/// Who changes a conversation: a session, or a script outside any session.
pub(super) fn writer(ctx: &mut Ctx<'_>, act_for: &ActFor) -> Result<Option<Caller>, Stop> {
    match act_for.session {
        Some(_) => caller::require(ctx, act_for, Purpose::Act).map(Some),
        None => caller::identify(ctx),
    }
}

pub(super) fn author(by: Option<&Caller>) -> Author {
    Author {
        session: by.map(|caller| caller.session.id),
        run: None,
    }
}

/// A root and the items linked to it.
pub(super) fn items(ctx: &mut Ctx<'_>, root: &Key) -> Result<Vec<ItemState>, Stop> {
    let mut all = vec![state_of(ctx, root)?];
    all.extend(ctx.tx.items_linked_to(root)?);
    Ok(all)
}

/// The stored state of an item.
pub(super) fn state_of(ctx: &mut Ctx<'_>, item: &Key) -> Result<ItemState, Stop> {
    let known = ctx.tx.item_state(item)?;
    Ok(known.unwrap_or_else(|| ItemState::plain(item.clone())))
}

/// The item whose conversations an item continues: its root, or itself.
pub fn root_of(ctx: &mut Ctx<'_>, item: &Key) -> Result<Key, Stop> {
    Ok(state_of(ctx, item)?.root().clone())
}

/// Logs a change to the conversations of an item.
pub(super) fn log(
    ctx: &mut Ctx<'_>,
    by: Option<&Caller>,
    kind: EventKind,
    item: &Key,
    evidence: String,
) -> Result<(), Stop> {
    let session = by.map(|caller| caller.session.id);
    ctx.log(&NewEvent {
        actor: by
            .and_then(|caller| caller.actor)
            .filter(|actor| Some(*actor) != session),
        reason: by.and_then(Caller::reason_text),
        key: Some(item.clone()),
        ..ctx.event(kind, session, "conversation", evidence)
    })
}
