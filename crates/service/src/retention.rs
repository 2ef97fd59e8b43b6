//! Forgetting sessions that ended long ago and that nothing needs, some at a time.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::event::EventFilter;
use tenure_core::store::{ClosedAt, Lock, TxMode};
use tenure_core::time::Timestamp;

use crate::transact::{Reply, Service};

/// How many sessions one transaction looks at.
const BATCH: usize = 200;

/// What one step found.
#[derive(Debug, Clone, Default)]
pub struct Forgotten {
    /// How many sessions nothing needs; they are gone if that was asked for.
    pub sessions: usize,
    /// How many are needed, by what needs them.
    pub kept: BTreeMap<&'static str, usize>,
    /// Where the next step begins; none after the last.
    pub next: Option<ClosedAt>,
}

impl Service<'_> {
    /// Finds sessions that closed before a moment and that nothing needs, and removes them if asked to.
    pub fn forget_sessions(
        &mut self,
        before: Timestamp,
        after: Option<ClosedAt>,
        apply: bool,
    ) -> Reply<Forgotten> {
        self.transact(TxMode::Read, |ctx| {
            // Those that are still there name their sessions; what is about to go is not counted.
            let events = if apply { Timestamp(i64::MIN) } else { before };
            let closed = ctx.tx.closed_before(before, after, BATCH)?;
            let ids: Vec<_> = closed.iter().map(|(_, id)| *id).collect();
            let mut kept = BTreeMap::new();
            let mut needed = BTreeSet::new();
            for (session, need) in ctx.tx.needs_of(&ids, events)? {
                if needed.insert(session) {
                    *kept.entry(need.as_str()).or_insert(0) += 1;
                }
            }
            let free: Vec<_> = ids.into_iter().filter(|id| !needed.contains(id)).collect();
            if apply && !free.is_empty() {
                ctx.lock(free.iter().map(|id| Lock::Session(*id)))?;
                ctx.tx.remove_sessions(&free)?;
            }
            Ok(Forgotten {
                sessions: free.len(),
                kept,
                next: closed.last().copied().filter(|_| closed.len() == BATCH),
            })
        })
    }

    /// How many events were recorded before a moment.
    pub fn events_before(&mut self, before: Timestamp) -> Reply<usize> {
        self.transact(TxMode::Read, |ctx| {
            let all = ctx.tx.count_events(&EventFilter::default())?;
            let newer = ctx.tx.count_events(&EventFilter {
                since: Some(before),
                ..EventFilter::default()
            })?;
            // The newest event stays.
            Ok(all.saturating_sub(newer.max(1)))
        })
    }
}
