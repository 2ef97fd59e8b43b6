//! Removing sessions that ended long ago, with all their rows.
//!
//! *Crash*: each batch is a transaction. *Clock jump*: a clock that is set far ahead removes ended sessions early; nothing
//! that lives or is needed. *Older version*: it finds sessions gone, as if they had never been.

use tenure_core::id::SessionId;
use tenure_core::retention::Need;
use tenure_core::store::{ClosedAt, RetentionRows, StoreError};
use tenure_core::time::Timestamp;

use super::session::id_list;
use crate::engine::{Engine, Rows};
use crate::value::params;

const CLOSED: &str = "SELECT closed_at, id FROM sessions WHERE closed_at < ?1 \
     AND (closed_at > ?2 OR closed_at = ?2 AND id > ?3) ORDER BY closed_at, id LIMIT ?4";

/// Where each need is found: the column that names the session, the need, and the rows.
const NEEDS: &[(&str, Need, &str)] = &[
    (
        "session",
        Need::Claim,
        "holds WHERE ended_at IS NULL AND session",
    ),
    (
        "session",
        Need::Done,
        "holds WHERE ended_by = 'done' AND session",
    ),
    (
        "owner",
        Need::Conversation,
        "natives JOIN conversations ON conversations.agent = natives.agent \
         AND conversations.native_id = natives.native_id WHERE owner",
    ),
    ("set_by", Need::Conversation, "conversations WHERE set_by"),
    ("set_by", Need::Conversation, "past_ids WHERE set_by"),
    ("session", Need::Mission, "participants WHERE session"),
    ("session", Need::Run, "runs WHERE session"),
    ("by_session", Need::Job, "jobs WHERE by_session"),
    ("parent_id", Need::Kin, "sessions WHERE parent_id"),
    ("twin_of", Need::Kin, "sessions WHERE twin_of"),
    (
        "session",
        Need::Event,
        "events WHERE (at >= ?2 OR id = (SELECT max(id) FROM events)) AND session",
    ),
    (
        "actor",
        Need::Event,
        "events WHERE (at >= ?2 OR id = (SELECT max(id) FROM events)) AND actor",
    ),
    (
        "sender",
        Need::Notice,
        "notices WHERE delivered_at IS NULL AND sender",
    ),
];

/// What belongs to a session alone, with the column that names it; the session itself comes last.
const OWN: &[(&str, &str)] = &[
    ("lives", "session"),
    ("visits", "visitor"),
    ("natives", "owner"),
    ("holds", "session"),
    ("notices", "recipient"),
    ("metadata", "session"),
    ("doubts", "asker"),
    ("transcripts", "session"),
    ("quarantine", "session"),
    ("writes", "session"),
    ("sessions", "id"),
];

impl<E: Engine> RetentionRows for Rows<E> {
    fn closed_before(
        &mut self,
        before: Timestamp,
        after: Option<ClosedAt>,
        limit: usize,
    ) -> Result<Vec<ClosedAt>, StoreError> {
        let (at, id) = match after {
            Some((at, id)) => (at.0, id.to_string()),
            None => (i64::MIN, String::new()),
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values = params![before.0, at, id, limit];
        self.all("sessions", CLOSED, &values, |cells| {
            let at = cells.time()?;
            let id = cells.cell().parsed(SessionId::parse)?;
            Ok((at, id))
        })
    }

    fn needs_of(
        &mut self,
        sessions: &[SessionId],
        before: Timestamp,
    ) -> Result<Vec<(SessionId, Need)>, StoreError> {
        let values = params![id_list(sessions), before.0];
        let mut found = Vec::new();
        for (column, need, rows) in NEEDS {
            let sql = format!(
                "SELECT DISTINCT {column} FROM {rows} IN (SELECT value FROM json_each(?1))"
            );
            // Only those of events name the moment.
            let values = if *need == Need::Event {
                &values[..]
            } else {
                &values[..1]
            };
            let named = self.all("sessions", &sql, values, |cells| {
                cells.cell().parsed(SessionId::parse)
            })?;
            found.extend(named.into_iter().map(|session| (session, *need)));
        }
        Ok(found)
    }

    fn remove_sessions(&mut self, sessions: &[SessionId]) -> Result<usize, StoreError> {
        let ids = params![id_list(sessions)];
        let mut removed = 0;
        for (table, column) in OWN {
            let sql =
                format!("DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?1))");
            removed = self.run(&sql, &ids)?;
        }
        Ok(removed)
    }
}
