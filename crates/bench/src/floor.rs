//! The least that a hook can be: it notes in SQLite that a session was heard of.
//!
//! Its schema is its own, so nothing that tenure's schema costs is in it. It opens its file as [`bare`](crate::bare)
//! does, commits in the same order and keeps the log short by the same rule.

use std::path::Path;

use rusqlite::{Connection, params};
use tenure_host::clock;

use crate::Failed;
use crate::bare::{connect, keep_log_short};
use crate::seeded::{DAY_PAGES, SMALL, cut_log_of, log_pages};

const SCHEMA: &str = "CREATE TABLE sessions (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, \
     boot TEXT NOT NULL, agent TEXT NOT NULL, seen_at INTEGER NOT NULL, lease_at INTEGER NOT NULL); \
     CREATE INDEX sessions_process ON sessions (pid, boot)";

/// Makes the store of as many sessions as a small store of tenure has.
pub fn make(file: &Path) -> Result<(), Failed> {
    let mut conn = Connection::open(file)?;
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    conn.execute_batch(SCHEMA)?;
    let adding = conn.transaction()?;
    for pid in 0..SMALL {
        let row = params![pid, boot(), "claude", 0, 0];
        let sql = "INSERT INTO sessions (pid, boot, agent, seen_at, lease_at) VALUES (?1, ?2, ?3, ?4, ?5)";
        adding.execute(sql, row)?;
    }
    Ok(adding.commit()?)
}

/// Makes its log as long as that of a working day.
pub fn fill_log(file: &Path) -> Result<(), Failed> {
    cut_log_of(file)?;
    while log_pages(file) < DAY_PAGES {
        beat(file)?;
    }
    Ok(())
}

/// Notes that one of the sessions was heard of.
pub fn beat(file: &Path) -> Result<(), Failed> {
    let conn = connect(file)?;
    conn.execute_batch("PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE")?;
    let sql = "SELECT id, seen_at FROM sessions WHERE pid = ?1 AND boot = ?2";
    let find = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (id, _) = conn.query_row(sql, params![SMALL / 2, boot()], find)?;
    let now = clock::wall().0;
    let sql = "UPDATE sessions SET seen_at = ?2, lease_at = ?3 WHERE id = ?1";
    conn.execute(sql, params![id, now, now + 600_000])?;
    conn.execute_batch("COMMIT")?;
    keep_log_short(&conn, file)
}

fn boot() -> &'static str {
    "6f6d0d2e-1111-4222-8333-444455556666"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_shares_no_object_with_tenure() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("floor.db");
        make(&file).unwrap();
        fill_log(&file).unwrap();
        let conn = Connection::open(&file).unwrap();
        let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM sqlite_schema"), 2);
        assert_eq!(count("SELECT count(*) FROM sessions"), SMALL);
        assert_eq!(count("SELECT count(*) FROM sessions WHERE seen_at > 0"), 1);
        assert!(log_pages(&file) >= DAY_PAGES);
    }
}
