//! A database that is not where it was, or not what it was: a copy, a restored backup, lost changes.
//!
//! Checked when a database is opened, unless the mark shows that this file was used in this boot; then before
//! the first write. Two things are compared: the file with the one in which the store was last used (stored in
//! `meta`, so that a database that was copied without its mark is found too), and the newest event with the one
//! in the mark. If either differs, granted numbers may be unknown here. Then the base, which is added to every
//! epoch, is raised by 2^32 (so a number of this store was never granted before), the store gets a new id,
//! and the log, `status` and the next command for a person report it. Nothing is refused: a home directory that
//! was moved to another disk works at once. Holders keep what they hold and resumed sessions get it back; only a
//! caller that names its old epoch is told that it is lost.
//!
//! *Crash*: all of it is one transaction; the mark follows it and is otherwise written by the next opener.
//! *Clock jump*: no clock is compared. *Older version*: see the migrations.

use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::event::EventKind;
use tenure_core::ignore::Ignore;
use tenure_core::store::StoreError;
use tenure_core::time::{Now, Timestamp};

use super::connection::{classify, newest_event};
use super::mark::{FileId, Mark, MarkFile};

/// The store that took this one's place.
pub(super) const MOVED_TO: &str = "moved_to";
/// The store that this one is an unfinished copy of.
pub(super) const COPIED_FROM: &str = "copied_from";

/// How much epochs are raised: more than anyone ever grants of one key.
pub(super) const RAISE: i64 = crate::copy::RAISE;

const META: &str = "SELECT value FROM meta WHERE name = ?1";
const SET_META: &str = "INSERT INTO meta (name, value) VALUES (?1, ?2) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The file in which the store was last used.
const FILE: &str = "file";
/// What is added to every epoch.
pub(super) const BASE: &str = "base";
/// The last place in line that was given.
pub(super) const TICKETS: &str = "tickets";
/// The last incident, and its time.
pub(super) const NEWS: &str = "news";
/// The same, until a person has seen it.
const UNSAID: &str = "unsaid";

/// A value of `meta`.
pub(super) fn meta(conn: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached(META)?
        .query_row([name], |row| row.get(0))
        .optional()
}

pub(super) fn set_meta(conn: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(SET_META)?
        .execute([name, value])
        .map(|_| ())
}

/// Remembers which file a new database is.
pub(super) fn remember_file(conn: &Connection, file: FileId) -> rusqlite::Result<()> {
    set_meta(conn, FILE, &file.to_string())
}

/// A difference from what is remembered.
enum Differs {
    Nothing,
    /// Nothing was remembered yet.
    Unknown,
    File {
        was: FileId,
    },
    /// The newest changes are lost.
    Events {
        stored: u64,
        newest: u64,
    },
}

fn compare(conn: &Connection, here: FileId, mark: Option<&Mark>) -> rusqlite::Result<Differs> {
    let newest = newest_event(conn)?;
    if let Some(mark) = mark.filter(|mark| mark.event > newest) {
        let stored = mark.event;
        return Ok(Differs::Events { stored, newest });
    }
    let was = meta(conn, FILE)?;
    Ok(match was.as_deref().and_then(FileId::parse) {
        Some(was) if was.same_as(&here) => Differs::Nothing,
        Some(was) => Differs::File { was },
        None => Differs::Unknown,
    })
}

/// Compares, and settles the differences; the mark is correct afterwards.
///
/// The caller has no transaction open. `wait` excludes other settling processes.
pub(super) fn settle<L>(
    conn: &Connection,
    store: &str,
    now: &Now,
    marks: &MarkFile,
    mark: Option<&Mark>,
    wait: impl FnOnce() -> Result<L, StoreError>,
) -> Result<(), StoreError> {
    let sql = |error: rusqlite::Error| classify(store, Some(conn), &error);
    let here = marks.file();
    // Held until the mark is written, so that a waiter finds it settled.
    let mut lock = None;
    if !matches!(compare(conn, here, mark).map_err(sql)?, Differs::Nothing) {
        lock = Some(wait()?);
        let tx =
            rusqlite::Transaction::new_unchecked(conn, rusqlite::TransactionBehavior::Immediate)
                .map_err(sql)?;
        // Another process may have settled it during the wait, and updated the mark.
        let mark = marks.read().ok().flatten();
        let found = compare(&tx, here, mark.as_ref()).map_err(sql)?;
        settle_in(&tx, store, now, here, &found).map_err(sql)?;
        tx.commit().map_err(sql)?;
    }
    let newest = newest_event(conn).map_err(sql)?;
    marks.write(newest).ignore("the next opener checks again");
    drop(lock);
    Ok(())
}

fn settle_in(
    conn: &Connection,
    store: &str,
    now: &Now,
    here: FileId,
    found: &Differs,
) -> rusqlite::Result<()> {
    let (kind, mechanism, what) = match found {
        Differs::Nothing => return Ok(()),
        Differs::Unknown => return remember_file(conn, here),
        Differs::File { was } => (
            EventKind::StoreMoved,
            "file",
            format!(
                "the database {store} is not the file that was used last (inode.birth was {was}, is now \
                 {here}); it was copied, moved or restored; if the other file is still in use, both grant \
                 the same keys"
            ),
        ),
        Differs::Events { stored, newest } => (
            EventKind::StoreRolledBack,
            "mark",
            format!(
                "the store {store} lost its newest changes: it had event {stored}, and the newest is now \
                 {newest}; claims and releases since then are unknown"
            ),
        ),
    };
    raise_epochs(conn)?;
    conn.execute(
        "UPDATE meta SET value = lower(hex(randomblob(16))) WHERE name = 'store_id'",
        [],
    )?;
    remember_file(conn, here)?;
    let news = format!(
        "{what}; every epoch was raised by {RAISE} to keep old ones from being granted again"
    );
    // Used numbers are not used again, and the database is then ahead of the mark: it is settled, whatever
    // happens to the mark.
    let number = match found {
        Differs::Events { stored, .. } => {
            i64::try_from(*stored).ok().and_then(|n| n.checked_add(1))
        }
        _ => None,
    };
    conn.execute(
        "INSERT INTO events (id, at, kind, mechanism, evidence) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![number, now.wall.0, kind.as_str(), mechanism, news],
    )?;
    set_meta(conn, NEWS, &format!("{} {news}", now.wall.0))?;
    set_meta(conn, UNSAID, &news)
}

fn raise_epochs(conn: &Connection) -> rusqlite::Result<()> {
    let base = base(conn)?.saturating_add(RAISE);
    set_meta(conn, BASE, &base.to_string())
}

/// What is added to every epoch.
pub(super) fn base(conn: &Connection) -> rusqlite::Result<i64> {
    number(conn, BASE)
}

/// A number in `meta`; zero if it is not there.
pub(super) fn number(conn: &Connection, name: &str) -> rusqlite::Result<i64> {
    let kept = meta(conn, name)?;
    Ok(kept.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// The next place in line; the caller has begun a write transaction.
pub(super) fn next_ticket(conn: &Connection) -> rusqlite::Result<i64> {
    let ticket = number(conn, TICKETS)?.saturating_add(1);
    set_meta(conn, TICKETS, &ticket.to_string())?;
    Ok(ticket)
}

/// The last incident of the store, if there was one.
pub(super) fn news(conn: &Connection) -> rusqlite::Result<Option<(Timestamp, String)>> {
    let kept = meta(conn, NEWS)?;
    Ok(kept.and_then(|text| {
        let (at, what) = text.split_once(' ')?;
        Some((Timestamp(at.parse().ok()?), what.to_owned()))
    }))
}

/// Takes the news that no person has seen yet, for a caller that shows it now.
pub(super) fn take_unsaid(conn: &Connection, store: &str) -> Result<Option<String>, StoreError> {
    let taken = || -> rusqlite::Result<Option<String>> {
        let said = meta(conn, UNSAID)?;
        let forget = "DELETE FROM meta WHERE name = ?1";
        if said.is_some() {
            conn.execute(forget, [UNSAID])
                .ignore("on a full disk it is shown twice");
        }
        Ok(said)
    };
    taken().map_err(|error| classify(store, Some(conn), &error))
}
