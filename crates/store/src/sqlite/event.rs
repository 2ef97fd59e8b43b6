//! The event log in rows; they are only appended, and removed from the start when they are old.
//!
//! An event's position is SQLite's row number, which grows and is never reused. *Crash*: an event commits with
//! the change that it records. *Clock jump*: the order is that of the positions, never that of the times.
//! *Older version*: kinds are stored and returned as text, known or not.

use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};
use tenure_core::event::{Event, EventFilter, NewEvent};
use tenure_core::id::{Cursor, Epoch, SessionId};
use tenure_core::store::{EventRows, StoreError};
use tenure_core::time::Timestamp;

use super::handle::{SqliteTx, limit_or_all};
use super::row::Cells;

/// The statement for a filter, with its parameters: upwards from `after`, else downwards from the end.
pub(super) fn statement(filter: &EventFilter, after: Option<i64>) -> (String, Vec<Value>) {
    let direction = if after.is_some() { "ASC" } else { "DESC" };
    let limit = limit_or_all(filter.limit);
    let mut values: Vec<Value> = Vec::new();
    let mut ids = |source: &str, who: Option<(&str, String)>| {
        let mut sql = format!("SELECT id FROM events {source} WHERE TRUE");
        if let Some((column, session)) = who {
            sql.push_str(&format!(" AND {column} = ?"));
            values.push(session.into());
        }
        if let Some(key) = &filter.key {
            sql.push_str(" AND key = ?");
            values.push(key.as_str().to_owned().into());
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
        values.push(limit.into());
        format!("SELECT id FROM ({sql})")
    };
    let chosen = match (filter.session, &filter.key, filter.since) {
        // Each of the two has an index that ends in log order; together they have none.
        (Some(session), _, _) => {
            let who = session.to_string();
            let about = ids("INDEXED BY events_session", Some(("session", who.clone())));
            let by = ids("INDEXED BY events_actor", Some(("actor", who)));
            format!("{about} UNION {by}")
        }
        (None, Some(_), _) => ids("INDEXED BY events_key", None),
        (None, None, Some(_)) if after.is_none() => ids("INDEXED BY events_at", None),
        (None, None, _) => ids("NOT INDEXED", None),
    };
    values.push(limit.into());
    let sql = format!(
        "SELECT id, at, kind, session, actor, key, epoch, mechanism, evidence, reason FROM events \
         WHERE id IN ({chosen}) ORDER BY id {direction} LIMIT ?"
    );
    (sql, values)
}

pub(super) const OLDEST: &str = "SELECT id, at FROM events ORDER BY id LIMIT ?1";

fn read_event(cells: &mut Cells<'_>) -> Result<Event, StoreError> {
    Ok(Event {
        cursor: Cursor(cells.number()?),
        at: cells.time()?,
        kind: cells.text()?,
        session: cells.maybe_parsed(SessionId::parse)?,
        actor: cells.maybe_parsed(SessionId::parse)?,
        key: cells.maybe_text()?,
        epoch: cells.maybe_number()?.map(Epoch),
        mechanism: cells.text()?,
        evidence: cells.text()?,
        reason: cells.maybe_text()?,
    })
}

impl EventRows for SqliteTx<'_> {
    fn count_events(&mut self, filter: &EventFilter) -> Result<usize, StoreError> {
        let all = EventFilter {
            limit: 0,
            ..filter.clone()
        };
        let after = filter.after.map(|Cursor(after)| after);
        let after = after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
        let (sql, values) = statement(&all, after);
        self.rows("events", &sql, params_from_iter(values))
    }

    fn append_event(&mut self, event: &NewEvent, at: Timestamp) -> Result<(), StoreError> {
        let sql = "INSERT INTO events (at, kind, session, actor, key, epoch, mechanism, evidence, \
             reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let epoch = event.epoch.map(|epoch| self.count("epoch", epoch.0));
        self.run(
            sql,
            params![
                at.0,
                event.kind.as_str(),
                event.session.map(|session| session.to_string()),
                event.actor.map(|actor| actor.to_string()),
                event.key.as_ref().map(|key| key.as_str()),
                epoch.transpose()?,
                event.mechanism,
                event.evidence,
                event.reason,
            ],
        )?;
        self.appended(self.last_row().unsigned_abs());
        Ok(())
    }

    fn events(&mut self, filter: &EventFilter) -> Result<Vec<Event>, StoreError> {
        let after = filter.after.map(|cursor| cursor.0);
        // Nothing follows a position beyond the largest number.
        let after = after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
        let (sql, values) = statement(filter, after);
        let values = params_from_iter(values);
        let mut found = if filter.readable_only {
            self.all_readable("events", &sql, values, read_event)?
        } else {
            self.all("events", &sql, values, read_event)?
        };
        if after.is_none() {
            found.reverse();
        }
        Ok(found)
    }

    fn oldest_event(&mut self) -> Result<Option<Cursor>, StoreError> {
        self.first("events", OLDEST, [1], |cells| Ok(Cursor(cells.number()?)))
    }

    fn forget_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        // One more, because the last of those that are read may be the newest.
        let most = limit_or_all(limit.saturating_add(1));
        let mut oldest = self.all("events", OLDEST, [most], |cells| {
            Ok((cells.number::<i64>()?, cells.time()?))
        })?;
        oldest.pop();
        let old = oldest.iter().take_while(|(_, at)| *at < before);
        let Some((last, _)) = old.last() else {
            return Ok(0);
        };
        self.run("DELETE FROM events WHERE id <= ?1", [last])
    }
}
