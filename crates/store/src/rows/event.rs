//! The event log in rows; they are only appended, and removed from the start when they are old.
//!
//! An event's position grows in commit order and is never reused; where several transactions write at once, it gets one
//! at COMMIT, and is not listed before. So a reader that continues from a position misses nothing. *Crash*: an event
//! commits with the change that it records. *Clock jump*: the order is that of the positions, never that of the times.
//! *Older version*: kinds are stored and returned as text, known or not.

use tenure_core::event::{Event, EventFilter, NewEvent};
use tenure_core::id::{Cursor, Epoch, SessionId};
use tenure_core::store::{EventRows, StoreError};
use tenure_core::time::Timestamp;

use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{Value, limit_or_all, params};

columns! { $
    /// What is written of an event; its position is not.
    EventRow of "events" by select_events {
        at, kind, session, actor, key, epoch, mechanism, evidence, reason,
    }
}

const COLUMNS: &str = select_events!(columns "");
const APPEND: &str = concat!(
    "INSERT INTO events (",
    select_events!(columns ""),
    ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
);
const FIRST: &str =
    "SELECT id FROM events /* may scan: one row */ WHERE id IS NOT NULL ORDER BY id LIMIT 1";
const OLDEST: &str = "SELECT id, at FROM events /* may scan: up to the limit */ \
     WHERE id IS NOT NULL ORDER BY id LIMIT ?1";
const FORGET: &str = "DELETE FROM events WHERE id IN (SELECT value FROM json_each(?1))";

/// The statement for a filter, with its parameters: forwards from `after`, or else backwards from the end.
fn statement(filter: &EventFilter, after: Option<i64>) -> (String, Vec<Value<'_>>) {
    let (chosen, mut values) = positions(filter, after, filter.limit);
    let direction = direction(after);
    values.push(limit_or_all(filter.limit));
    let sql = format!(
        "SELECT id, {COLUMNS} FROM events WHERE id IN ({chosen}) ORDER BY id {direction} LIMIT ?"
    );
    (sql, values)
}

fn direction(after: Option<i64>) -> &'static str {
    if after.is_some() { "ASC" } else { "DESC" }
}

/// The positions that a filter fits, from the indexes alone unless it names a time as well; with a session up to twice
/// the limit, in no order.
fn positions(filter: &EventFilter, after: Option<i64>, limit: usize) -> (String, Vec<Value<'_>>) {
    let direction = direction(after);
    let mut values: Vec<Value<'_>> = Vec::new();
    let mut ids = |source: &str, name: &str, who: Option<(&str, String)>| {
        let mut sql = format!("SELECT id FROM events {source} WHERE id IS NOT NULL");
        if let Some((column, session)) = who {
            sql.push_str(&format!(" AND {column} = ?"));
            values.push(session.into());
        }
        if let Some(key) = &filter.key {
            sql.push_str(" AND key = ?");
            values.push(key.as_str().into());
        }
        if let Some(kind) = filter.kind {
            sql.push_str(" AND kind = ?");
            values.push(kind.as_str().into());
        }
        if let Some(after) = after {
            sql.push_str(" AND id > ?");
            values.push(after.into());
        }
        if let Some(since) = filter.since {
            sql.push_str(" AND at >= ?");
            values.push(since.0.into());
        }
        sql.push_str(&format!(" ORDER BY id {direction} LIMIT ?"));
        values.push(limit_or_all(limit));
        format!("SELECT id FROM ({sql}) {name}")
    };
    let chosen = match (filter.session, &filter.key, filter.since) {
        // Each of the two has an index that ends in log order; together they have none.
        (Some(session), _, _) => {
            let session = session.to_string();
            let about = ids(
                "INDEXED BY events_session",
                "about",
                Some(("session", session.clone())),
            );
            let by_it = ids("INDEXED BY events_actor", "by_it", Some(("actor", session)));
            format!("{about} UNION {by_it}")
        }
        (None, Some(_), _) => ids("INDEXED BY events_key", "about", None),
        (None, None, Some(_)) if after.is_none() => ids("INDEXED BY events_at", "lately", None),
        (None, None, _) => ids(
            "NOT INDEXED /* may scan: in log order up to the limit */",
            "logged",
            None,
        ),
    };
    (chosen, values)
}

/// The position that a filter begins after. Nothing follows one beyond the largest number.
fn after(filter: &EventFilter) -> Option<i64> {
    let after = filter.after.map(|Cursor(after)| after);
    after.map(|after| i64::try_from(after).unwrap_or(i64::MAX))
}

fn read(cells: &mut Cells<'_>) -> Result<Event, StoreError> {
    let cursor = Cursor(cells.number()?);
    let row = EventRow::read(cells);
    Ok(Event {
        cursor,
        at: row.at.time()?,
        kind: row.kind.text()?,
        session: row.session.maybe_parsed(SessionId::parse)?,
        actor: row.actor.maybe_parsed(SessionId::parse)?,
        key: row.key.maybe_text()?,
        epoch: row.epoch.maybe_number()?.map(Epoch),
        mechanism: row.mechanism.text()?,
        evidence: row.evidence.text()?,
        reason: row.reason.maybe_text()?,
    })
}

impl<E: Engine> EventRows for Rows<E> {
    fn append_event(&mut self, event: &NewEvent, at: Timestamp) -> Result<(), StoreError> {
        let epoch = event.epoch.map(|epoch| self.count("epoch", epoch.0));
        let row = EventRow {
            at: at.0.into(),
            kind: event.kind.as_str().into(),
            session: event.session.map(|session| session.to_string()).into(),
            actor: event.actor.map(|actor| actor.to_string()).into(),
            key: event.key.as_ref().map(|key| key.as_str()).into(),
            epoch: epoch.transpose()?.into(),
            mechanism: event.mechanism.into(),
            evidence: (&event.evidence).into(),
            reason: (&event.reason).into(),
        };
        self.engine.append_event(APPEND, &row.values())
    }

    fn count_events(&mut self, filter: &EventFilter) -> Result<usize, StoreError> {
        self.count_rows("events", positions(filter, after(filter), filter.count_to))
    }

    fn first_event(&mut self, filter: &EventFilter) -> Result<Option<Cursor>, StoreError> {
        let (chosen, mut values) = positions(filter, after(filter), filter.limit);
        let direction = direction(after(filter));
        values.push(limit_or_all(filter.limit));
        let sql = format!(
            "SELECT id FROM (SELECT id FROM ({chosen}) chosen ORDER BY id {direction} LIMIT ?) listed \
             ORDER BY id LIMIT 1"
        );
        self.first("events", &sql, &values, |cells| Ok(Cursor(cells.number()?)))
    }

    fn events(&mut self, filter: &EventFilter) -> Result<Vec<Event>, StoreError> {
        let after = after(filter);
        let statement = statement(filter, after);
        let mut found = self.listed(filter.readable_only, "events", statement, read)?;
        if after.is_none() {
            found.reverse();
        }
        Ok(found)
    }

    fn oldest_event(&mut self) -> Result<Option<Cursor>, StoreError> {
        self.first("events", FIRST, &[], |cells| Ok(Cursor(cells.number()?)))
    }

    fn forget_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        if let Some(removed) = self.engine.forget_events(before, most)? {
            return Ok(removed);
        }
        // One more, because the last of those that are read may be the newest.
        let most = limit_or_all(limit.saturating_add(1));
        let mut oldest = self.changed("events", OLDEST, &[most], |cells| {
            Ok((cells.number::<i64>()?, cells.time()?))
        })?;
        oldest.pop();
        let old = oldest.into_iter().take_while(|(_, at)| *at < before);
        let old: Vec<i64> = old.map(|(id, _)| id).collect();
        if old.is_empty() {
            return Ok(0);
        }
        self.run(FORGET, &params![old])
    }
}
