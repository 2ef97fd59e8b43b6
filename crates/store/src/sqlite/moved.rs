//! A database that is not where it was, or not what it was: a copy, a restored backup, lost changes.
//!
//! Looked at where the mark does not say that this very file was used in this boot, and before the first
//! write otherwise. Two things are compared: the file with the one that the store was last used in (kept
//! in `meta`, so that a database that was copied without its mark is found too), and the newest event with
//! the one that the mark knows to be stored. Where either differs, numbers that were granted may be unknown
//! here: every epoch is raised by 2^32 (a number of this store is then never one that was granted
//! before), keys that are unknown begin above that, the store gets a new id, and the log, `status` and the
//! next command for a person say so. Nothing is refused: a home that was moved to another disk is used at
//! once. The newest hold of a key is raised with it, so holders keep what they hold and resumed sessions
//! get it back; only whoever named its old epoch is told that it is lost.
//!
//! *Crash*: all of it is one transaction; the mark follows it and is otherwise written by the next opener.
//! *Clock jump*: no clock is compared. *Older version*: the rows of `meta` are additions; a version that does not
//! know the floor of new keys is kept out by `min_writer`.

use rusqlite::{Connection, OptionalExtension, params};
use tenure_core::event::EventKind;
use tenure_core::store::StoreError;
use tenure_core::time::{Now, Timestamp};

use super::connection::{classify, newest_event};
use super::mark::{FileId, Mark, MarkFile};

/// By how much epochs are raised: more than anybody ever grants of one key.
pub(super) const RAISE: i64 = 1 << 32;

const META: &str = "SELECT value FROM meta WHERE name = ?1";
const SET_META: &str = "INSERT INTO meta (name, value) VALUES (?1, ?2) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The file that the store was last used in.
const FILE: &str = "file";
/// The epoch of a key that was never granted.
pub(super) const FLOOR: &str = "epoch_floor";
/// What happened last, and when.
pub(super) const NEWS: &str = "news";
/// The same, until a person was told.
const UNSAID: &str = "unsaid";

/// A value of `meta`.
pub(super) fn meta(conn: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached(META)?
        .query_row([name], |row| row.get(0))
        .optional()
}

fn set_meta(conn: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(SET_META)?
        .execute([name, value])
        .map(|_| ())
}

/// Remembers which file a new database is.
pub(super) fn remember_file(conn: &Connection, file: FileId) -> rusqlite::Result<()> {
    set_meta(conn, FILE, &file.to_string())
}

/// What differs from what is remembered.
enum Differs {
    Nothing,
    /// Nothing was remembered yet.
    Unknown,
    File {
        was: FileId,
    },
    /// The newest changes.
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

/// Compares, and settles what differs; the mark is true afterwards.
///
/// The caller has no transaction open. `wait` keeps other settling processes out.
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
    // Kept until the mark is written: who waits for it then finds it settled.
    let mut lock = None;
    if !matches!(compare(conn, here, mark).map_err(sql)?, Differs::Nothing) {
        lock = Some(wait()?);
        let tx =
            rusqlite::Transaction::new_unchecked(conn, rusqlite::TransactionBehavior::Immediate)
                .map_err(sql)?;
        // Somebody else may have settled it while we waited, and noted so in the mark.
        let mark = marks.read();
        let found = compare(&tx, here, mark.as_ref()).map_err(sql)?;
        settle_in(&tx, store, now, here, &found).map_err(sql)?;
        tx.commit().map_err(sql)?;
    }
    let newest = newest_event(conn).map_err(sql)?;
    if marks.write(newest).is_err() {
        // The next opener looks again.
    }
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
    // Numbers that were given before are not given again, and the database then knows more than the mark: it
    // is settled, whatever becomes of the mark.
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
    conn.execute(
        "UPDATE holds SET epoch = epoch + ?1 \
         WHERE epoch = (SELECT epoch FROM claims WHERE claims.key = holds.key)",
        [RAISE],
    )?;
    conn.execute("UPDATE claims SET epoch = epoch + ?1", [RAISE])?;
    let floor = floor(conn)?.saturating_add(RAISE);
    set_meta(conn, FLOOR, &floor.to_string())
}

/// The epoch that keys without a row have.
pub(super) fn floor(conn: &Connection) -> rusqlite::Result<i64> {
    let kept = meta(conn, FLOOR)?;
    Ok(kept.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// What happened to the store last, if anything did.
pub(super) fn news(conn: &Connection) -> rusqlite::Result<Option<(Timestamp, String)>> {
    let kept = meta(conn, NEWS)?;
    Ok(kept.and_then(|text| {
        let (at, what) = text.split_once(' ')?;
        Some((Timestamp(at.parse().ok()?), what.to_owned()))
    }))
}

/// Takes what no person was told yet, for whoever tells it now.
pub(super) fn take_unsaid(conn: &Connection, store: &str) -> Result<Option<String>, StoreError> {
    let taken = || -> rusqlite::Result<Option<String>> {
        let said = meta(conn, UNSAID)?;
        let forget = "DELETE FROM meta WHERE name = ?1";
        if said.is_some() && conn.execute(forget, [UNSAID]).is_err() {
            // A disk that is full lets it be said twice.
        }
        Ok(said)
    };
    taken().map_err(|error| classify(store, Some(conn), &error))
}
