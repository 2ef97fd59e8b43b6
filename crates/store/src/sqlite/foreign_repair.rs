//! The one repair in a database of another program: a session id of OpenClaw's goes back to its owner.
//!
//! Nothing of ours is ever added there. A repair is one transaction with foreign keys on, after a copy of the database.
//! *Crash*: the other program sees all of it or nothing.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};

use super::foreign::{PATIENCE, said};

/// A session id of OpenClaw's that two keys name, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct TwoKeys<'a> {
    pub id: &'a str,
    pub owner: &'a str,
    pub intruder: &'a str,
}

/// Copies a database, which other programs may write meanwhile.
pub fn copy(path: &Path, to: &Path) -> Result<(), String> {
    let copied = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection.execute("VACUUM INTO ?1", [to.to_string_lossy()])
    };
    copied().map(drop).map_err(|error| said(&error))
}

/// Gives a session id of OpenClaw's back to its owner: its window too, and the intruder's key goes back to its own
/// session, or away if it has none. Returns whether the rows were as an intrusion leaves them; if not, nothing changed.
pub fn give_back(path: &Path, two: TwoKeys<'_>) -> Result<bool, String> {
    give_back_in(path, two).map_err(|error| said(&error))
}

fn give_back_in(path: &Path, two: TwoKeys<'_>) -> rusqlite::Result<bool> {
    let TwoKeys {
        id,
        owner,
        intruder,
    } = two;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let texts = |query: &str| -> rusqlite::Result<Vec<String>> {
        let mut statement = change.prepare(query)?;
        let rows = statement.query_map([id], |row| row.get(0))?;
        rows.collect()
    };
    let mut keys = texts("SELECT session_key FROM session_nodes WHERE current_session_id = ?1")?;
    keys.sort();
    let mut expected = [owner.to_owned(), intruder.to_owned()];
    expected.sort();
    let windows = texts("SELECT session_key FROM session_windows WHERE session_id = ?1")?;
    let is_one_of_them = |key: &String| key == owner || key == intruder;
    if keys != expected || windows.len() != 1 || !windows.iter().all(is_one_of_them) {
        return Ok(false);
    }
    // First: what a node has goes with it.
    change.execute(
        "UPDATE session_windows SET session_key = ?2, previous_session_id = NULL \
         WHERE session_id = ?1 AND session_key <> ?2",
        [id, owner],
    )?;
    let own: Option<String> = change
        .query_row(
            "SELECT session_id FROM session_windows WHERE session_key = ?1 \
             ORDER BY updated_at DESC, session_id LIMIT 1",
            [intruder],
            |row| row.get(0),
        )
        .optional()?;
    match own {
        Some(own) => point_to(&change, intruder, &own)?,
        None => {
            let delete = "DELETE FROM session_nodes WHERE session_key = ?1";
            change.execute(delete, [intruder])?;
        }
    }
    change.commit()?;
    Ok(true)
}

/// Points a key to a session of its own. OpenClaw's triggers mark a row that changes as not valid, and its gateway then
/// refuses to reset any key until somebody runs its doctor; so a valid row stays marked as valid.
fn point_to(change: &Transaction<'_>, key: &str, own: &str) -> rusqlite::Result<()> {
    let marked = "SELECT 1 FROM pragma_table_info('session_nodes') WHERE name = 'entry_valid'";
    let has_mark = change.prepare(marked)?.exists([])?;
    let valid = "SELECT 1 FROM session_nodes WHERE session_key = ?1 AND entry_valid = 1";
    let was_valid = has_mark && change.prepare(valid)?.exists([key])?;
    change.execute(
        "UPDATE session_nodes SET current_session_id = ?2, \
         entry_json = json_set(entry_json, '$.sessionId', ?2) WHERE session_key = ?1",
        [key, own],
    )?;
    if was_valid {
        let mark = "UPDATE session_nodes SET entry_valid = 1 WHERE session_key = ?1";
        change.execute(mark, [key])?;
    }
    Ok(())
}

/// Runs something while no other program has this database locked; none if one has.
pub fn if_unlocked<T>(path: &Path, run: impl FnOnce() -> T) -> Option<T> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).ok()?;
    connection.busy_timeout(Duration::ZERO).ok()?;
    connection.execute_batch("BEGIN EXCLUSIVE").ok()?;
    Some(run())
}
