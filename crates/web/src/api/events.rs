//! The log as a list.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use tenure_core::event::{EventFilter, EventKind};
use tenure_core::id::Cursor;
use tenure_core::key::Key;
use tenure_core::time::{Span, Timestamp};
use tenure_host::clock;
use tenure_service::view::EventView;

use super::answer::{Refusal, RouteAnswer, RouteResult};
use super::request::{ApiCall, PageQuery, Parts, Request, Spec};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Only events after this cursor.
    after: Option<u64>,
    /// Only events of this item.
    key: Option<String>,
    /// Only events of this session.
    session: Option<String>,
    /// Only events of this kind.
    kind: Option<String>,
    /// Only events since then: a duration (2h) or a time.
    since: Option<String>,
    limit: Option<usize>,
}

/// The path of the list and of the stream.
pub const PATH: &str = "/api/v1/events";

impl Request for Events {
    const SPEC: Spec = Spec::get(
        PATH,
        "Read the log, oldest first; without after and since, the newest. With Accept: text/event-stream, follow \
         sessions and log as server-sent events",
    );

    fn parts(shapes: &mut SchemaGenerator) -> Parts {
        vec![
            ("events", shapes.subschema_for::<Vec<EventView>>()),
            ("more", shapes.subschema_for::<usize>()),
            ("more_is_least", shapes.subschema_for::<bool>()),
            ("cursor", shapes.subschema_for::<u64>()),
            ("oldest", shapes.subschema_for::<Option<u64>>()),
        ]
    }

    fn run(self, call: &mut ApiCall<'_>) -> RouteResult {
        let page = PageQuery::of(self.limit, None)?;
        if let Some(after) = self.after {
            let newest = call.context.service().newest_event()?.value;
            if after > newest.0 {
                return Err(Refusal::BadCursor.into());
            }
        }
        let filter = EventFilter {
            key: self.key.as_deref().map(Key::parse).transpose()?,
            kind: self.kind.as_deref().map(EventKind::parse).transpose()?,
            after: self.after.map(Cursor),
            since: self.since.as_deref().map(since).transpose()?,
            limit: page.limit,
            ..EventFilter::default()
        };
        let mut service = call.context.service();
        let start = service.log_start(&filter, self.session.as_deref())?.value;
        let first = EventFilter {
            limit: page.limit,
            ..start.filter.clone()
        };
        let mut answer = service.log_page(&first)?;
        let mut events = std::mem::take(&mut answer.value.items);
        // One transaction reads less than the largest page.
        while let (Some(next), true) = (answer.value.next, events.len() < page.limit) {
            let rest = EventFilter {
                after: Some(next),
                limit: page.limit - events.len(),
                ..first.clone()
            };
            answer = service.log_page(&rest)?;
            events.append(&mut answer.value.items);
        }
        let cursor = events.last().map(|event| event.cursor);
        let cursor = cursor.or(self.after).unwrap_or_default();
        Ok(RouteAnswer::new("events", &events)
            .with("more", &start.more)
            .with("more_is_least", &start.more_is_least)
            .with("cursor", &cursor)
            .with("oldest", &start.oldest.map(|oldest| oldest.0))
            .told(&answer))
    }
}

/// A duration until now, or a time.
pub fn since(text: &str) -> Result<Timestamp, Refusal> {
    if let Ok(Span(span)) = text.parse::<Span>() {
        return Ok(clock::wall().minus(span));
    }
    text.parse().map_err(|_| {
        let why = format!("since {text:?} is neither a duration nor a time");
        Refusal::BadValue(why)
    })
}
