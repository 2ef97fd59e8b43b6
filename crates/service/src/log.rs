//! What happened, as a list.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tenure_core::event::EventFilter;
use tenure_core::id::SessionId;
use tenure_core::store::Mode;

use crate::caller;
use crate::context::{Ctx, Stop};
use crate::list::{Listed, unless_damaged};
use crate::transact::{Reply, Service};
use crate::view::{EventView, NameView};

impl Service<'_> {
    pub fn log(&mut self, filter: &EventFilter, session: Option<&str>) -> Reply<Listed<EventView>> {
        self.transact(Mode::Read, |ctx| {
            caller::anybody(ctx)?;
            let mut filter = filter.clone();
            if let Some(name) = session {
                filter.session = Some(caller::find(ctx, name)?.id);
            }
            if let Some(key) = &filter.key {
                filter.key = Some(ctx.held_key(key, None)?);
            }
            let items = log(ctx, &filter)?;
            Listed::of(items, filter.limit, || ctx.tx.count_events(&filter))
        })
    }
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
            // An event of a session that cannot be read is shown without it.
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
