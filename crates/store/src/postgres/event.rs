//! The event log in rows; they are only appended, and removed from the start when they are old.
//!
//! An event gets its position at COMMIT, from one counter. So positions are in commit order, and a
//! reader that continues from a position misses nothing. Before COMMIT, an event has no position
//! and is not listed. *Crash*: an event commits with the change that it records. *Clock jump*: the
//! order is that of the positions, never that of the times. *Older version*: kinds are stored and
//! returned as text, known or not.

use tenure_core::event::{Event, EventFilter, NewEvent};
use tenure_core::id::{Cursor, Epoch, SessionId};
use tenure_core::store::{EventRows, StoreError};
use tenure_core::time::Timestamp;

use super::handle::{PostgresTx, limit_or_all};
use super::row::Cells;
use super::value::{Value, numbered, params};

/// The statement for a filter, with its parameters: forwards from `after`, or else backwards from
/// the end.
fn statement(filter: &EventFilter, after: Option<i64>) -> (String, Vec<Value>) {
    let direction = if after.is_some() { "ASC" } else { "DESC" };
    let limit = limit_or_all(filter.limit);
    let mut values: Vec<Value> = Vec::new();
    let mut ids = |who: Option<(&str, String)>| {
        let mut sql = "SELECT id FROM events WHERE id IS NOT NULL".to_owned();
        if let Some((column, session)) = who {
            sql.push_str(&format!(" AND {column} = ?"));
            values.push(session.into());
        }
        if let Some(key) = &filter.key {
            sql.push_str(" AND key = ?");
            values.push(key.as_str().into());
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
        format!("({sql})")
    };
    let chosen = match filter.session {
        // Each of the two conditions has an index in log order; their combination has none.
        Some(session) => {
            let who = session.to_string();
            let about = ids(Some(("session", who.clone())));
            format!("{about} UNION {}", ids(Some(("actor", who))))
        }
        None => ids(None),
    };
    values.push(limit.into());
    let sql = format!(
        "SELECT id, at, kind, session, actor, key, epoch, mechanism, evidence, reason FROM events \
         WHERE id IN ({chosen}) ORDER BY id {direction} LIMIT ?"
    );
    (numbered(&sql), values)
}

/// Those that another transaction removes are left out.
const LOCK_OLDEST: &str = "SELECT id, at FROM events WHERE id IS NOT NULL ORDER BY id LIMIT $1 \
     FOR UPDATE SKIP LOCKED";

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

impl EventRows for PostgresTx<'_> {
    fn count_events(&mut self, filter: &EventFilter) -> Result<usize, StoreError> {
        let all = EventFilter {
            limit: 0,
            ..filter.clone()
        };
        let after = filter.after.map(|Cursor(after)| after);
        let after = after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
        self.rows("events", statement(&all, after))
    }

    fn append_event(&mut self, event: &NewEvent, at: Timestamp) -> Result<(), StoreError> {
        let sql = "INSERT INTO events (at, kind, session, actor, key, epoch, mechanism, evidence, \
             reason) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let epoch = event.epoch.map(|epoch| self.count("epoch", epoch.0));
        let epoch = epoch.transpose()?;
        self.later(
            sql,
            params![
                at.0,
                event.kind.as_str(),
                event.session.map(|session| session.to_string()),
                event.actor.map(|actor| actor.to_string()),
                event.key.as_ref().map(|key| key.as_str()),
                epoch,
                event.mechanism,
                &event.evidence,
                &event.reason,
            ],
        );
        Ok(())
    }

    fn events(&mut self, filter: &EventFilter) -> Result<Vec<Event>, StoreError> {
        let after = filter.after.map(|cursor| cursor.0);
        // Nothing follows a position beyond the largest number.
        let after = after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
        let statement = statement(filter, after);
        let mut found = self.listed(filter.readable_only, "events", statement, read_event)?;
        if after.is_none() {
            found.reverse();
        }
        Ok(found)
    }

    fn oldest_event(&mut self) -> Result<Option<Cursor>, StoreError> {
        let sql = "SELECT id FROM events WHERE id IS NOT NULL ORDER BY id LIMIT 1";
        self.first("events", sql, Vec::new(), |cells| {
            Ok(Cursor(cells.number()?))
        })
    }

    fn forget_events(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        // One more, because the last of those that are read may be the newest.
        let most = limit_or_all(limit.saturating_add(1));
        let mut oldest = self.change_all("events", LOCK_OLDEST, params![most], |cells| {
            Ok((cells.number::<i64>()?, cells.time()?))
        })?;
        oldest.pop();
        let old = oldest.into_iter().take_while(|(_, at)| *at < before);
        let old: Vec<i64> = old.map(|(id, _)| id).collect();
        self.run(
            "DELETE FROM events WHERE id = ANY($1)",
            params![old.clone()],
        )?;
        Ok(old.len())
    }
}
