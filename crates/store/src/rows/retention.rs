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

macro_rules! closed {
    ($also:literal) => {
        concat!(
            "SELECT closed_at, id FROM sessions WHERE closed_at < ?1 \
             AND (closed_at > ?2 OR closed_at = ?2 AND id > ?3) ",
            $also,
            "ORDER BY closed_at, id LIMIT ?4"
        )
    };
}
const CLOSED: &str = closed!("");
/// With a role per person, only that role removes a session, or the owner of the tables.
const OWN_CLOSED: &str = closed!(
    "AND (by_role IS NULL OR by_role = session_user OR pg_has_role(session_user, \
     (SELECT relowner FROM pg_class WHERE oid = 'sessions'::regclass), 'MEMBER')) "
);

/// A column that names sessions which something needs.
struct Needed {
    table: &'static str,
    column: &'static str,
    need: Need,
    /// Which rows of the table need them.
    rows: &'static str,
}

const fn needed(
    need: Need,
    table: &'static str,
    column: &'static str,
    rows: &'static str,
) -> Needed {
    Needed {
        table,
        column,
        need,
        rows,
    }
}

/// Where each need is found. A list that shows one of these rows looks up its session, so it must be there.
const NEEDS: &[Needed] = &[
    needed(
        Need::Claim,
        "holds",
        "session",
        "WHERE ended_at IS NULL AND",
    ),
    needed(Need::Wait, "waiters", "session", UNINDEXED),
    needed(
        Need::Done,
        "holds",
        "session",
        "WHERE ended_by = 'done' AND",
    ),
    needed(
        Need::Conversation,
        "natives",
        "owner",
        "JOIN conversations ON conversations.agent = natives.agent \
         AND conversations.native_id = natives.native_id WHERE",
    ),
    needed(Need::Conversation, "conversations", "set_by", UNINDEXED),
    needed(Need::Conversation, "past_ids", "set_by", UNINDEXED),
    needed(Need::Conversation, "past_ids", "ended_by", UNINDEXED),
    needed(Need::Conversation, "items", "linked_by", UNINDEXED),
    needed(Need::Mission, "participants", "session", "WHERE"),
    needed(Need::Run, "runs", "session", "WHERE"),
    needed(Need::Run, "runs", "stop_by", UNINDEXED),
    needed(Need::Job, "jobs", "by_session", UNINDEXED),
    needed(Need::Kin, "sessions", "parent_id", UNINDEXED),
    needed(Need::Kin, "sessions", "twin_of", UNINDEXED),
    needed(
        Need::Event,
        "events",
        "session",
        "WHERE (at >= ?2 OR id = (SELECT max(id) FROM events)) AND",
    ),
    needed(
        Need::Event,
        "events",
        "actor",
        "WHERE (at >= ?2 OR id = (SELECT max(id) FROM events)) AND",
    ),
    needed(
        Need::Notice,
        "notices",
        "sender",
        "/* may scan: like the others */ WHERE delivered_at IS NULL AND",
    ),
];
/// Every command would pay for an index, which is needed seldom, and then for many sessions at a time.
const UNINDEXED: &str = "/* may scan: it is read for many sessions at a time */ WHERE";

/// What goes with a session: the table, the column that names it, and what else must hold. The session comes last.
const OWN: &[(&str, &str, &str)] = &[
    ("lives", "session", ""),
    ("visits", "visitor", MAY_SCAN),
    ("natives", "owner", ""),
    ("holds", "session", ""),
    ("notices", "recipient", MAY_SCAN),
    ("metadata", "session", ""),
    ("doubts", "asker", ""),
    ("doubts", "holder", MAY_SCAN),
    ("transcripts", "session", ""),
    ("quarantine", "session", MAY_SCAN),
    ("writes", "session", ""),
    ("spend", "session", ""),
    ("pointers", "name", "scope = 'session' AND "),
    ("sessions", "id", ""),
];
const MAY_SCAN: &str = "/* may scan: like the needs */ ";

/// The same in a store that several machines use.
const OWN_SHARED: &[(&str, &str, &str)] = &[("watched", "session", "")];

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
        let sql = if E::SHARED { OWN_CLOSED } else { CLOSED };
        self.all("sessions", sql, &values, |cells| {
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
        for Needed {
            table,
            column,
            need,
            rows,
        } in NEEDS
        {
            let sql = format!(
                "SELECT DISTINCT {column} FROM {table} {rows} {column} IN (SELECT value FROM json_each(?1))"
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
        let shared = if E::SHARED { OWN_SHARED } else { &[] };
        for (table, column, also) in shared.iter().chain(OWN) {
            let sql = format!(
                "DELETE FROM {table} WHERE {also}{column} IN (SELECT value FROM json_each(?1))"
            );
            removed = self.run(&sql, &ids)?;
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;

    /// Columns that name a session, or part of a name, although it may be gone. Nobody looks it up.
    const MAY_BE_GONE: &[(&str, &str)] = &[
        // Shown as it was written, with the handle.
        ("holds", "taken_from"),
        // The next write of the file replaces it.
        ("mirror_failures", "session"),
        // How a hold ended, and a session; not who did it.
        ("holds", "ended_by"),
        ("sessions", "closed_by"),
        ("sessions", "title_by"),
        // What started a run.
        ("runs", "started_by"),
        // Runs.
        ("conversations", "set_by_run"),
        ("past_ids", "set_by_run"),
        ("past_ids", "ended_by_run"),
        // A machine and a user.
        ("tokens", "owner"),
        // Roles of a database.
        ("events", "by_role"),
        ("events", "by_address"),
        ("keepers", "by_role"),
        ("sessions", "by_role"),
    ];

    /// The columns of a schema whose names or references say that they may name a session.
    fn by_name(schema: &str) -> Vec<(String, String)> {
        const NAMES: &[&str] = &[
            "owner",
            "visitor",
            "asker",
            "holder",
            "recipient",
            "sender",
            "actor",
            "parent_id",
            "twin_of",
            "session",
        ];
        let (mut table, mut found) = ("", Vec::new());
        for line in schema.lines() {
            let line = line.split("--").next().unwrap_or_default();
            let words: Vec<&str> = line
                .split([' ', '(', ','])
                .filter(|w| !w.is_empty())
                .collect();
            let (column, kind) = match words[..] {
                ["CREATE", "TABLE", name, ..] => {
                    table = name;
                    continue;
                }
                ["ALTER", "TABLE", name, "ADD", "COLUMN", column, kind, ..] => {
                    table = name;
                    (column, kind)
                }
                [column, kind, ..] => (column, kind),
                _ => continue,
            };
            let is_text = ["TEXT", "text"].contains(&kind);
            let is_named = NAMES.contains(&column)
                || column
                    .split('_')
                    .any(|part| part == "session" || part == "by")
                || line.contains("REFERENCES sessions");
            if is_text && is_named {
                found.push((table.to_owned(), column.to_owned()));
            }
        }
        found
    }

    /// The columns in which the golden database, where each has a value, has the id of a session.
    fn by_value() -> Vec<(String, String)> {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schema-1.db");
        // Opening it makes files beside it.
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("golden.db");
        fs_err::copy(golden, &copy).unwrap();
        let conn = Connection::open(copy).unwrap();
        let columns = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
        let mut statement = conn.prepare(columns).unwrap();
        let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        let columns: Vec<(String, String)> = columns.unwrap().map(Result::unwrap).collect();
        let has_id = |(table, column): &(String, String)| -> bool {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM {table} a JOIN sessions s ON instr(a.{column}, s.id) > 0)"
            );
            conn.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        columns.into_iter().filter(has_id).collect()
    }

    /// A column that names a session must say what becomes of it when the session is removed: something needs the session
    /// (NEEDS), it goes with it (OWN), or nobody looks it up.
    #[test]
    fn every_column_that_names_a_session_says_what_becomes_of_it() {
        let own = |(table, column, _): &(&'static str, &'static str, _)| (*table, *column);
        let listed: BTreeSet<(&str, &str)> = NEEDS
            .iter()
            .map(|one| (one.table, one.column))
            .chain(OWN.iter().chain(OWN_SHARED).map(own))
            .chain(MAY_BE_GONE.iter().copied())
            .collect();
        let own_of_server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../postgres/src/own.sql");
        let own_of_server = fs_err::read_to_string(own_of_server).unwrap();
        let schemas = [
            crate::SCHEMA,
            include_str!("../sqlite/own.sql"),
            &own_of_server,
        ];
        let mut named: BTreeSet<(String, String)> = by_value().into_iter().collect();
        assert!(named.len() > 20, "{named:?}");
        named.extend(schemas.into_iter().flat_map(by_name));
        let missing: Vec<_> = named
            .iter()
            .filter(|(table, column)| !listed.contains(&(table.as_str(), column.as_str())))
            .collect();
        assert!(
            missing.is_empty(),
            "{missing:?}: list them in NEEDS, OWN or MAY_BE_GONE of rows/retention.rs"
        );
    }

    #[test]
    fn a_new_column_is_found_by_its_name_and_by_what_it_refers_to() {
        let schema = "CREATE TABLE new (\n    friend TEXT REFERENCES sessions (id),\n    seen_by TEXT, -- a session\n    \
             by_session TEXT NOT NULL,\n    size INTEGER\n) STRICT;";
        let names: Vec<String> = by_name(schema).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["friend", "seen_by", "by_session"]);
    }
}
