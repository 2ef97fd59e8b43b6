//! Dead pointers: conversations whose files the agent has deleted.

use tenure_core::conversation::Conversation;
use tenure_core::conversation::fitness::Existence;
use tenure_core::event::{Event, EventFilter, EventKind, NewEvent};
use tenure_core::key::Key;
use tenure_core::store::{ConversationFilter, TxMode};

use super::look::{LookDepth, existence, look_at_all, shown};
use super::view::ConversationView;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::transact::{Reply, Service};

impl Service<'_> {
    /// Conversations of this host whose agents have deleted them.
    pub fn dead_pointers(&mut self) -> Reply<Vec<ConversationView>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            dead_pointers(ctx, 0)
        })
    }

    /// Finds conversations that their agents have deleted, and logs each once. The next run of the
    /// item starts a new conversation; until then, a file that comes back (from a backup, or with a
    /// mount) is resumed.
    pub fn sweep_conversations(&mut self) -> Reply<Vec<ConversationView>> {
        let mut news = Vec::new();
        let found = self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let dead = dead_records(ctx, 0)?;
            news.clear();
            for record in &dead {
                news.extend(unlogged(ctx, record)?);
            }
            views(ctx, &dead)
        })?;
        if !news.is_empty() {
            self.transact(TxMode::Write, |ctx| {
                for LostConversation { root, evidence } in &news {
                    let lost = EventKind::ConversationLost;
                    ctx.log(&NewEvent {
                        key: Some(root.clone()),
                        ..ctx.event(lost, None, "sweep", evidence.clone())
                    })?;
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// A deleted conversation that has not been logged yet.
struct LostConversation {
    root: Key,
    evidence: String,
}

fn unlogged(ctx: &mut Ctx<'_>, record: &Conversation) -> Result<Option<LostConversation>, Stop> {
    let Some(current) = record.open() else {
        return Ok(None);
    };
    let evidence = format!("{} no longer has {}", record.agent, current.native_id);
    let logged = ctx.tx.events(&EventFilter {
        key: Some(record.item.clone()),
        since: Some(current.at),
        readable_only: true,
        ..EventFilter::default()
    })?;
    let is_it = |event: &Event| {
        event.kind == EventKind::ConversationLost.as_str() && event.evidence == evidence
    };
    let is_new = !logged.iter().any(is_it);
    let root = record.item.clone();
    Ok(is_new.then_some(LostConversation { root, evidence }))
}

/// Deleted conversations among the first `limit` of all; zero means all.
pub fn dead_pointers(ctx: &mut Ctx<'_>, limit: usize) -> Result<Vec<ConversationView>, Stop> {
    let dead = dead_records(ctx, limit)?;
    views(ctx, &dead)
}

fn views(ctx: &mut Ctx<'_>, records: &[Conversation]) -> Result<Vec<ConversationView>, Stop> {
    let mut views = Vec::with_capacity(records.len());
    for record in records {
        views.push(shown(ctx, record, &record.item, LookDepth::Files(None))?);
    }
    Ok(views)
}

fn dead_records(ctx: &mut Ctx<'_>, limit: usize) -> Result<Vec<Conversation>, Stop> {
    let filter = ConversationFilter {
        readable_only: true,
        limit,
        ..ConversationFilter::default()
    };
    let records = ctx.tx.list_conversations(&filter)?;
    let damage = ctx.tx.take_damage();
    ctx.effects.damage.extend(damage);
    look_at_all(ctx, &records)?;
    let mut dead = Vec::new();
    for record in records {
        let is_dead = match record.open() {
            Some(current) => existence(ctx, &record.agent, current)? == Existence::Absent,
            None => false,
        };
        if is_dead {
            dead.push(record);
        }
    }
    Ok(dead)
}
