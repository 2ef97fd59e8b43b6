//! The event log as a list.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::event::{Event, EventFilter, KEPT_FOR, has_missed};
use tenure_core::id::{Cursor, SessionId};
use tenure_core::store::Mode;
use tenure_core::time::Timestamp;

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::list::{Listed, unless_damaged};
use crate::session::view::NameView;
use crate::transact::{Reply, Service};

/// One entry of the log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EventView {
    /// Its position, for `--after`.
    pub cursor: u64,
    /// When it was recorded.
    pub at: Timestamp,
    pub kind: String,
    /// The session that changed.
    pub session: Option<NameView>,
    /// The session that acted, if it is another one.
    pub actor: Option<NameView>,
    /// The claim key.
    pub key: Option<String>,
    /// The epoch after the change.
    pub epoch: Option<u64>,
    /// How it happened.
    pub mechanism: String,
    pub evidence: String,
    /// The reason that the caller gave.
    pub reason: Option<String>,
}

impl EventView {
    /// Builds the view of an event with its sessions' names.
    pub fn new(event: Event, session: Option<NameView>, actor: Option<NameView>) -> Self {
        Self {
            cursor: event.cursor.0,
            at: event.at,
            kind: event.kind,
            session,
            actor,
            key: event.key,
            epoch: event.epoch.map(|epoch| epoch.0),
            mechanism: event.mechanism,
            evidence: event.evidence,
            reason: event.reason,
        }
    }
}

/// How many events one transaction removes.
const FORGOTTEN: usize = 500;

impl Service<'_> {
    /// The oldest event of the log, if events after a position were removed before they were read from there.
    pub fn missed_events(&mut self, after: Cursor) -> Reply<Option<Cursor>> {
        self.transact(Mode::Read, |ctx| missed(ctx, after))
    }

    /// Removes old events, some at a time; returns whether there may be more.
    pub fn forget_events(&mut self) -> Reply<bool> {
        self.transact(Mode::Read, |ctx| {
            let before = ctx.now.wall.minus(KEPT_FOR);
            let oldest = EventFilter {
                after: Some(Cursor(0)),
                limit: 1,
                ..EventFilter::default()
            };
            let is_old = |event: &Event| event.at < before;
            if !ctx.tx.events(&oldest)?.first().is_some_and(is_old) {
                return Ok(false);
            }
            ctx.write()?;
            Ok(ctx.tx.forget_events(before, FORGOTTEN)? == FORGOTTEN)
        })
    }

    /// The session whose log a name refers to.
    pub fn log_session(&mut self, name: &str) -> Reply<SessionId> {
        self.transact(Mode::Read, |ctx| Ok(caller::find(ctx, name)?.id))
    }

    pub fn log(&mut self, filter: &EventFilter, session: Option<&str>) -> Reply<Listed<EventView>> {
        self.transact(Mode::Read, |ctx| {
            caller::anybody(ctx)?;
            let filter = completed(ctx, filter, session)?;
            let items = log(ctx, &filter)?;
            Listed::of(items, filter.limit, || ctx.tx.count_events(&filter))
        })
    }
}

impl Service<'_> {
    /// How many events match a filter, whatever its limit.
    pub fn count_log(&mut self, filter: &EventFilter, session: Option<&str>) -> Reply<usize> {
        self.transact(Mode::Read, |ctx| {
            caller::anybody(ctx)?;
            let filter = completed(ctx, filter, session)?;
            Ok(ctx.tx.count_events(&filter)?)
        })
    }
}

/// A filter with the session that a name refers to, and the key as it is held.
fn completed(
    ctx: &mut Ctx<'_>,
    filter: &EventFilter,
    session: Option<&str>,
) -> Result<EventFilter, Stop> {
    let mut filter = filter.clone();
    if let Some(name) = session {
        filter.session = Some(caller::find(ctx, name)?.id);
    }
    if let Some(key) = &filter.key {
        filter.key = Some(ctx.held_key(key, None)?);
    }
    Ok(filter)
}

/// The oldest event, if a reader at this position may have missed some.
pub(crate) fn missed(ctx: &mut Ctx<'_>, after: Cursor) -> Result<Option<Cursor>, Stop> {
    let oldest = ctx.tx.oldest_event()?;
    Ok(oldest.filter(|oldest| has_missed(after, *oldest)))
}

fn log(ctx: &mut Ctx<'_>, filter: &EventFilter) -> Result<Vec<EventView>, Stop> {
    let filter = EventFilter {
        readable_only: true,
        ..filter.clone()
    };
    let events = ctx.tx.events(&filter)?;
    ctx.damage = ctx.tx.take_damage();
    let mut names: BTreeMap<SessionId, NameView> = BTreeMap::new();
    for id in events
        .iter()
        .flat_map(|event| [event.session, event.actor])
        .flatten()
    {
        if let Entry::Vacant(place) = names.entry(id) {
            let session = ctx.session(id);
            // An event of an unreadable session is shown without it.
            if let Some(session) = unless_damaged(ctx, &id.to_string(), session)? {
                let (id, handle) = (id.to_string(), session.handle.to_string());
                place.insert(NameView { id, handle });
            }
        }
    }
    let name = |id: Option<SessionId>| id.and_then(|id| names.get(&id).cloned());
    Ok(events
        .into_iter()
        .map(|event| {
            let (session, actor) = (name(event.session), name(event.actor));
            EventView::new(event, session, actor)
        })
        .collect())
}
