//! Conversations that point to nothing: the agent has deleted what they name.

use tenure_core::conversation::Conversation;
use tenure_core::conversation::fitness::Existence;
use tenure_core::store::{ConversationFilter, Mode};

use super::look::{Look, existence, kept, shown};
use super::view::ConversationView;
use crate::caller;
use crate::context::{Ctx, Stop};
use crate::evidence::Want;
use crate::transact::{Reply, Service};

impl Service<'_> {
    /// Conversations of this host that their agents have deleted.
    pub fn dead_pointers(&mut self) -> Reply<Vec<ConversationView>> {
        self.transact(Mode::Read, |ctx| {
            caller::anybody(ctx)?;
            dead_pointers(ctx, 0)
        })
    }
}

/// The same among the first `limit` of all; zero means all.
pub fn dead_pointers(ctx: &mut Ctx<'_>, limit: usize) -> Result<Vec<ConversationView>, Stop> {
    let filter = ConversationFilter {
        readable_only: true,
        limit,
        ..ConversationFilter::default()
    };
    let records = ctx.tx.list_conversations(&filter)?;
    let damage = ctx.tx.take_damage();
    ctx.damage.extend(damage);
    look_at_all(ctx, &records)?;
    let mut dead = Vec::new();
    for record in &records {
        if let Some(current) = record.open()
            && existence(ctx, &record.agent, current)? == Existence::Absent
        {
            dead.push(shown(ctx, record, &record.item, Look::Files(None))?);
        }
    }
    Ok(dead)
}

/// Makes sure that all of them were looked for, in one go.
fn look_at_all(ctx: &Ctx<'_>, records: &[Conversation]) -> Result<(), Stop> {
    let here = &ctx.observer.host;
    let open = records.iter().filter_map(|record| {
        let current = record.open().filter(|current| current.home.host == *here)?;
        Some(kept(&record.agent, current))
    });
    let unseen: Vec<_> = open
        .filter(|kept| ctx.evidence.has_witness() && ctx.evidence.existence(kept).is_none())
        .collect();
    if unseen.is_empty() {
        Ok(())
    } else {
        Err(Stop::Look(Want::Conversations(unseen)))
    }
}
