//! The timeline of claims: who held which item from when to when.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::id::SessionId;
use tenure_core::key::Key;
use tenure_core::session::Session;
use tenure_core::store::TxMode;
use tenure_core::time::Timestamp;
use tenure_core::timeline::{
    HoldPhase, TimelineCursor, TimelineFilter, TimelineHold, passed_to, why_ended,
};

use super::list::sessions_of;
use crate::caller;
use crate::claim::view::{HoldView, TimelineView};
use crate::context::{Ctx, Stop};
use crate::list::{page, page_size};
use crate::session::view::NameView;
use crate::transact::{Reply, Service};

/// Which part of the timeline is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineRequest {
    /// Only what was held at this time or later.
    pub since: Option<Timestamp>,
    pub key: Option<Key>,
    /// Only what this session held: its handle, id, or a unique part of either.
    pub session: Option<String>,
    /// Go on where an earlier page ended.
    pub after: Option<TimelineCursor>,
    /// At most this many; zero for as many as one page has.
    pub limit: usize,
}

impl Service<'_> {
    /// One page of the timeline: first what is held, then what ended, the latest end first.
    pub fn timeline(&mut self, request: &TimelineRequest) -> Reply<TimelineView> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let mut filter = TimelineFilter {
                since: request.since,
                key: None,
                session: None,
                after: request.after.clone(),
                limit: 0,
            };
            if let Some(name) = &request.session {
                filter.session = Some(caller::find(ctx, name)?.id);
            }
            if let Some(key) = &request.key {
                filter.key = Some(ctx.held_key(key, None)?);
            }
            timeline(ctx, &filter, page_size(request.limit))
        })
    }
}

fn timeline(ctx: &mut Ctx<'_>, filter: &TimelineFilter, size: usize) -> Result<TimelineView, Stop> {
    let (found, is_full) = page(ctx, size, |ctx, limit| {
        let filter = TimelineFilter {
            limit,
            ..filter.clone()
        };
        Ok(ctx.tx.timeline(&filter)?)
    })?;
    let sessions = look_at_holders(ctx, &found)?;
    let last = found.last().filter(|_| is_full);
    let next = last.map(|last| TimelineCursor::of(&last.hold).to_string());
    let mut holds = Vec::with_capacity(found.len());
    for held in &found {
        // The hold of an unreadable session is reported with the session.
        if let Some(holder) = sessions.get(&held.hold.session) {
            holds.push(view(ctx, held, holder, &sessions)?);
        }
    }
    Ok(TimelineView {
        now: ctx.now.wall,
        since: filter.since,
        holds,
        next,
    })
}

/// The sessions of these holds. Deaths of those that still hold something are recorded first.
fn look_at_holders(
    ctx: &mut Ctx<'_>,
    found: &[TimelineHold],
) -> Result<BTreeMap<SessionId, Session>, Stop> {
    let mut ids: BTreeSet<SessionId> = found.iter().map(|held| held.hold.session).collect();
    ids.extend(found.iter().filter_map(passed_to));
    let sessions = sessions_of(ctx, ids)?;
    let held: BTreeSet<SessionId> = found
        .iter()
        .filter(|held| held.hold.ended.is_none())
        .map(|held| held.hold.session)
        .collect();
    let holders: Vec<Session> = sessions
        .iter()
        .filter(|session| held.contains(&session.id))
        .cloned()
        .collect();
    ctx.look_at_all(&holders)?;
    ctx.record_deaths_of(&holders)?;
    let damage = ctx.tx.take_damage();
    ctx.effects.damage.extend(damage);
    Ok(sessions
        .into_iter()
        .map(|session| (session.id, session))
        .collect())
}

fn view(
    ctx: &mut Ctx<'_>,
    held: &TimelineHold,
    holder: &Session,
    sessions: &BTreeMap<SessionId, Session>,
) -> Result<HoldView, Stop> {
    let hold = &held.hold;
    let phase = match hold.ended {
        Some(end) => HoldPhase::Ended(end),
        None => {
            let standing = ctx.standing(holder)?;
            HoldPhase::of(hold, holder, &standing, &ctx.now)
        }
    };
    let end = match phase {
        HoldPhase::Ended(end) => Some(end),
        HoldPhase::Held | HoldPhase::Suspect { .. } => None,
    };
    let (suspect_since, free_at) = match phase {
        HoldPhase::Suspect { since, left } => (Some(since), Some(ctx.now.wall.plus(left))),
        HoldPhase::Held | HoldPhase::Ended(_) => (None, None),
    };
    let to = passed_to(held).and_then(|id| sessions.get(&id));
    Ok(HoldView {
        key: hold.key.to_string(),
        epoch: hold.epoch.0,
        session: name(holder),
        means: hold.means.as_str(),
        note: hold.note.clone(),
        from: hold.granted_at,
        to: end.map(|end| end.at),
        ended_by: end.map(|end| end.by.as_str()),
        ended_why: why_ended(held, holder),
        passed_to: to.map(name),
        suspect_since,
        free_at,
    })
}

fn name(session: &Session) -> NameView {
    NameView {
        id: session.id.to_string(),
        handle: session.handle.to_string(),
    }
}
