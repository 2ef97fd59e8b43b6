//! The event log as a list.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::event::{Event, EventFilter, KEPT_FOR, has_missed};
use tenure_core::id::{Cursor, SessionId};
use tenure_core::store::TxMode;
use tenure_core::time::Timestamp;

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::list::{Listed, MAX_COUNTED, Page, counted, page, page_size, unless_damaged};
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
    /// Removes old events, some at a time; returns whether there may be more.
    pub fn forget_events(&mut self) -> Reply<bool> {
        self.forget_events_before(None)
    }

    /// The same of events from before a moment, or of those that are kept no longer.
    pub fn forget_events_before(&mut self, moment: Option<Timestamp>) -> Reply<bool> {
        self.transact(TxMode::Read, |ctx| {
            let before = moment.unwrap_or_else(|| ctx.now.wall.minus(KEPT_FOR));
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

    /// Some of the log, in one transaction.
    pub fn log(&mut self, filter: &EventFilter, session: Option<&str>) -> Reply<Listed<EventView>> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let filter = EventFilter {
                readable_only: true,
                ..named(ctx, filter, session)?
            };
            let events = ctx.tx.events(&filter)?;
            ctx.effects.damage = ctx.tx.take_damage();
            let items = views(ctx, events)?;
            Listed::counted_to(items, filter.limit, |count_to| {
                ctx.tx.count_events(&EventFilter { count_to, ..filter })
            })
        })
    }

    /// Where a reader of the log begins, for [`Self::log_page`].
    pub fn log_start(&mut self, filter: &EventFilter, session: Option<&str>) -> Reply<LogStart> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let filter = named(ctx, filter, session)?;
            start(ctx, filter)
        })
    }

    /// The next events from a position on: at most as many as the filter wants, and not too many for one transaction.
    pub fn log_page(&mut self, filter: &EventFilter) -> Reply<Page<EventView, Cursor>> {
        self.transact(TxMode::Read, |ctx| {
            let size = page_size(filter.limit);
            let (events, is_full) = page(ctx, size, |ctx, limit| {
                let filter = EventFilter {
                    limit,
                    readable_only: true,
                    after: filter.after.or(Some(Cursor(0))),
                    ..filter.clone()
                };
                Ok(ctx.tx.events(&filter)?)
            })?;
            let last = events.last().map(|event| event.cursor);
            Ok(Page {
                items: views(ctx, events)?,
                next: last.filter(|_| is_full),
            })
        })
    }
}

/// Where a reader of the log begins.
#[derive(Debug, Clone)]
pub struct LogStart {
    /// What to read, forwards from `after`.
    pub filter: EventFilter,
    /// How many older events fit the filter and are beyond its limit.
    pub more: usize,
    /// Whether there may be more than that.
    pub more_is_least: bool,
    /// The oldest event of the log, if events after the reader's position were removed.
    pub oldest: Option<Cursor>,
}

/// The filter for a session by its name, and for a key by the name under which it is stored.
fn named(
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

fn start(ctx: &mut Ctx<'_>, mut filter: EventFilter) -> Result<LogStart, Stop> {
    let oldest = match filter.after {
        Some(after) => missed(ctx, after)?,
        None => None,
    };
    let mut missing = 0;
    if filter.limit > 0 {
        filter.count_to = filter.limit + MAX_COUNTED + 1;
        missing = (ctx.tx.count_events(&filter)?).saturating_sub(filter.limit);
    }
    // All of the log is read from its start; what a time or a number chooses from the first of them. If nothing fits
    // yet, whatever fits later is news.
    if filter.after.is_none() && (filter.limit > 0 || filter.since.is_some()) {
        let first = ctx.tx.first_event(&filter)?;
        let before = first.map_or(0, |Cursor(first)| first.saturating_sub(1));
        filter.after = Some(Cursor(before));
    }
    let (more, more_is_least) = counted(missing);
    Ok(LogStart {
        filter,
        more,
        more_is_least,
        oldest,
    })
}

impl Service<'_> {
    /// How many events match a filter, whatever its limit.
    pub fn count_log(&mut self, filter: &EventFilter, session: Option<&str>) -> Reply<usize> {
        self.transact(TxMode::Read, |ctx| {
            caller::identify(ctx)?;
            let filter = named(ctx, filter, session)?;
            Ok(ctx.tx.count_events(&filter)?)
        })
    }
}

/// The oldest event, if a reader at this position may have missed some.
pub(crate) fn missed(ctx: &mut Ctx<'_>, after: Cursor) -> Result<Option<Cursor>, Stop> {
    let oldest = ctx.tx.oldest_event()?;
    Ok(oldest.filter(|oldest| has_missed(after, *oldest)))
}

fn views(ctx: &mut Ctx<'_>, events: Vec<Event>) -> Result<Vec<EventView>, Stop> {
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
