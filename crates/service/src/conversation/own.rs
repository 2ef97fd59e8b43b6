//! Which item has a native id, for agents that address their conversations by a key of their own.
//!
//! Such an agent names a key and an id with every event. The first key of an id owns it: its item's conversation has the
//! id from then on. An event that names the id with another key is contaminated. Nothing of it is recorded but the fact,
//! on both sides. *Crash*: the owner is recorded after its session; until then the next event records it.

use serde::{Deserialize, Serialize};
use tenure_core::conversation::{Author, Home};
use tenure_core::event::{EventKind, NewEvent};
use tenure_core::id::{AgentName, NativeId, SessionId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::store::{ConversationFilter, Lock, TxMode};

use super::change::put;
use super::contamination::{is_over, take_from_closed};
use super::record::record;
use super::request::{NewNative, root_of};
use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};

/// The item that an agent names with its conversation's id, and whose agent it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    pub item: Key,
    /// The user, by number.
    pub user: String,
}

impl Service<'_> {
    /// Every native id of an agent and the item that owns it.
    pub fn owners(&mut self, agent: &AgentName) -> Reply<Vec<(NativeId, Key)>> {
        self.transact(TxMode::Read, |ctx| {
            let filter = ConversationFilter {
                agent: Some(agent.clone()),
                role: Some(WorkerRole::default()),
                readable_only: true,
                ..ConversationFilter::default()
            };
            let records = ctx.tx.list_conversations(&filter)?;
            let owned = records.into_iter().filter_map(|record| {
                let id = record.open()?.native_id.clone();
                Some((id, record.item))
            });
            Ok(owned.collect())
        })
    }

    /// Logs that a native id was given back to its owner, on both sides.
    pub fn log_repair(&mut self, owner: &Key, intruder: &Key, evidence: &str) -> Reply<()> {
        self.transact(TxMode::Write, |ctx| {
            for key in [owner, intruder] {
                ctx.log(&NewEvent {
                    key: Some(key.clone()),
                    ..ctx.event(
                        EventKind::Contamination,
                        None,
                        "verify",
                        evidence.to_owned(),
                    )
                })?;
            }
            Ok(())
        })
    }

    /// The item that owns a native id, if it is another than the one that an event names with it; logged.
    pub(crate) fn foreign_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        item: &Key,
    ) -> Reply<Option<Key>> {
        self.transact(TxMode::Read, |ctx| {
            let Some(owner) = other_owner(ctx, agent, native_id, item)? else {
                return Ok(None);
            };
            ctx.write()?;
            let evidence =
                format!("{agent}: {item} came with {native_id}, the conversation of {owner}");
            let session = ctx.tx.native_owner(agent, native_id)?;
            for key in [item, &owner] {
                let session = session.filter(|_| *key == owner);
                ctx.log(&NewEvent {
                    key: Some(key.clone()),
                    ..ctx.event(EventKind::Contamination, session, "hook", evidence.clone())
                })?;
            }
            Ok(Some(owner))
        })
    }

    /// Makes a native id that no other item has the one of an item's conversation.
    pub(crate) fn own_native(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        address: &Address,
        dir: &str,
        session: SessionId,
    ) -> Reply<()> {
        self.transact(TxMode::Read, |ctx| {
            own(ctx, agent, native_id, address, dir, session)
        })
    }
}

/// The other item whose conversation has a native id.
fn other_owner(
    ctx: &mut Ctx<'_>,
    agent: &AgentName,
    native_id: &NativeId,
    item: &Key,
) -> Result<Option<Key>, Stop> {
    let root = root_of(ctx, item)?;
    let found = ctx.tx.conversation_with(agent, native_id)?;
    let found = found.filter(|other| other.item != root && !is_over(ctx, other));
    Ok(found.map(|other| other.item))
}

fn own(
    ctx: &mut Ctx<'_>,
    agent: &AgentName,
    native_id: &NativeId,
    address: &Address,
    dir: &str,
    session: SessionId,
) -> Result<(), Stop> {
    let role = WorkerRole::default();
    let root = root_of(ctx, &address.item)?;
    let before = record(ctx, agent, &role, &root)?;
    if before
        .open()
        .is_some_and(|current| current.native_id == *native_id)
    {
        return Ok(());
    }
    ctx.lock([
        Lock::Conversation(address.item.clone()),
        Lock::Conversation(root.clone()),
        Lock::Native(agent.clone(), native_id.clone()),
    ])?;
    if other_owner(ctx, agent, native_id, &root)?.is_some() {
        return Ok(());
    }
    let home = Home {
        host: ctx.observer.host.clone(),
        user: address.user.clone(),
        agent_home: None,
        dir: dir.to_owned(),
        repo_host: None,
    };
    let new = NewNative {
        agent,
        role: &role,
        root: &root,
        native_id,
        home: &home,
        author: Author {
            session: Some(session),
            run: None,
        },
        writer: None,
    };
    take_from_closed(ctx, &new)?;
    let after = put(ctx, &new, before)?;
    let evidence = format!(
        "{agent}: {native_id} in {dir} (revision {})",
        after.revision
    );
    ctx.log(&NewEvent {
        key: Some(after.item),
        ..ctx.event(EventKind::ConversationSet, Some(session), "hook", evidence)
    })
}
