use std::collections::{BTreeMap, BTreeSet};

use tenure_core::claim::ClaimRecord;
use tenure_core::id::SessionId;
use tenure_core::session::Session;
use tenure_core::spelling;
use tenure_core::store::{ClaimFilter, StoreError, TxMode};

use super::grant::{held_by, shown};
use crate::caller::{self, ActFor, Purpose};
use crate::claim::view::ClaimView;
use crate::context::{Ctx, Stop};
use crate::list::{Listed, unless_damaged};
use crate::transact::{Reply, Service};

impl Service<'_> {
    pub fn claims(
        &mut self,
        act_for: Option<&ActFor>,
        filter: &ClaimFilter,
    ) -> Reply<Listed<ClaimView>> {
        self.transact(TxMode::Read, |ctx| {
            let mut filter = filter.clone();
            match act_for {
                Some(act_for) => {
                    filter.session = Some(caller::require(ctx, act_for, Purpose::Read)?.session.id);
                }
                None => {
                    caller::identify(ctx)?;
                }
            }
            let items = claims(ctx, &filter)?;
            Listed::of(items, filter.limit, || ctx.tx.count_claims(&filter))
        })
    }
}

pub(crate) fn claims(ctx: &mut Ctx<'_>, filter: &ClaimFilter) -> Result<Vec<ClaimView>, Stop> {
    let filter = &ClaimFilter {
        readable_only: true,
        ..filter.clone()
    };
    let records = listed(ctx, filter)?;
    let sessions = holders(ctx, &records)?;
    ctx.look_at_all(&sessions)?;
    ctx.record_deaths_of(&sessions)?;
    ask_what_others_do(ctx, &sessions)?;
    let holders: BTreeMap<SessionId, Session> = sessions
        .into_iter()
        .map(|session| (session.id, session))
        .collect();
    let damage = ctx.tx.take_damage();
    ctx.effects.damage.extend(damage);
    let mut views = Vec::with_capacity(records.len());
    for record in &records {
        let holder = record.current().and_then(|hold| holders.get(&hold.session));
        let view = match holder {
            Some(holder) => held_by(ctx, record, holder),
            // It is free, or its holder could not be read.
            None => shown(ctx, record),
        };
        views.extend(unless_damaged(ctx, record.key.as_str(), view)?);
    }
    Ok(views)
}

/// The sessions that hold these keys, read together. An unreadable one is left out: it is reported with the key that it
/// holds.
fn holders(ctx: &mut Ctx<'_>, records: &[ClaimRecord]) -> Result<Vec<Session>, Stop> {
    let held = records.iter().filter_map(ClaimRecord::current);
    sessions_of(ctx, held.map(|hold| hold.session).collect())
}

/// These sessions, without unreadable ones.
pub(super) fn sessions_of(
    ctx: &mut Ctx<'_>,
    ids: BTreeSet<SessionId>,
) -> Result<Vec<Session>, Stop> {
    let ids: Vec<SessionId> = ids.into_iter().collect();
    match ctx.tx.sessions(&ids) {
        Err(StoreError::Damaged { .. }) => {}
        read => return Ok(read?),
    }
    let mut found = Vec::new();
    for id in ids {
        match ctx.tx.session(id) {
            Err(StoreError::Damaged { .. }) => {}
            read => found.extend(read?),
        }
    }
    Ok(found)
}

/// Asks all agents at once what they do, except the caller's.
fn ask_what_others_do(ctx: &mut Ctx<'_>, sessions: &[Session]) -> Result<(), Stop> {
    let is_other = |session: &&Session| ctx.own != Some(session.id);
    let others: Vec<Session> = sessions.iter().filter(is_other).cloned().collect();
    ctx.ask_what_they_do(&others)
}

/// The keys that a filter selects; paths are found under every name of their repository.
fn listed(ctx: &mut Ctx<'_>, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, Stop> {
    let filter = &ClaimFilter {
        prefix: filter.prefix.as_deref().map(spelling::beginning),
        ..filter.clone()
    };
    let mut records = ctx.tx.list_claims(filter)?;
    let mut beside = match &filter.prefix {
        Some(prefix) => ctx.others_with_prefix(prefix)?,
        None => Vec::new(),
    };
    if let Some(session) = filter.session {
        beside.retain(|record| record.current().is_some_and(|hold| hold.session == session));
    }
    records.append(&mut beside);
    records.sort_by(|one, other| one.key.cmp(&other.key));
    records.dedup_by(|one, other| one.key == other.key);
    if filter.limit > 0 {
        records.truncate(filter.limit);
    }
    Ok(records)
}
