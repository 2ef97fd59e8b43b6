use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tenure_core::claim::ClaimRecord;
use tenure_core::id::SessionId;
use tenure_core::session::Session;
use tenure_core::spelling;
use tenure_core::store::{ClaimFilter, Mode, StoreError};

use super::grant::shown;
use crate::caller::{self, ActFor};
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
        self.transact(Mode::Read, |ctx| {
            let mut filter = filter.clone();
            match act_for {
                Some(act_for) => filter.session = Some(caller::for_read(ctx, act_for)?.session.id),
                None => {
                    caller::anybody(ctx)?;
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
    let mut holders: BTreeMap<SessionId, Session> = BTreeMap::new();
    for hold in records.iter().filter_map(ClaimRecord::current) {
        if let Entry::Vacant(place) = holders.entry(hold.session) {
            // An unreadable session is reported below, with the key that it holds.
            match ctx.session(hold.session) {
                Ok(session) => drop(place.insert(session)),
                Err(Stop::Store(StoreError::Damaged { .. })) => {}
                Err(other) => return Err(other),
            }
        }
    }
    let sessions: Vec<Session> = holders.into_values().collect();
    ctx.look_at_all(&sessions)?;
    ctx.record_deaths_of(&sessions)?;
    let damage = ctx.tx.take_damage();
    ctx.damage.extend(damage);
    let mut views = Vec::with_capacity(records.len());
    for record in &records {
        let view = shown(ctx, record);
        views.extend(unless_damaged(ctx, record.key.as_str(), view)?);
    }
    Ok(views)
}

/// The keys that a filter selects; paths are found under every name of their repository.
fn listed(ctx: &mut Ctx<'_>, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, Stop> {
    let filter = &ClaimFilter {
        prefix: filter.prefix.as_deref().map(spelling::beginning),
        ..filter.clone()
    };
    let mut records = ctx.tx.list_claims(filter)?;
    let mut beside = match &filter.prefix {
        Some(prefix) => ctx.others_with_prefix(prefix, filter.free_too)?,
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
