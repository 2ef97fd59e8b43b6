//! Backups: a copy of a database in one file, and a database that takes the place of a damaged one.
//!
//! A backup is one SQLite file without a log. It is made by SQLite's online backup in one step, so it is the state of one
//! moment, and nobody waits for it. A restored one is read from a private copy: the backup itself is never changed.
//!
//! *Crash*: a backup appears under its name when it is complete. *Clock jump*: no clock is read. *Older version*: a backup
//! is migrated in the private copy; one that is too new is refused.

use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use tenure_core::ignore::Ignore;
use tenure_core::store::StoreError;
use tenure_core::time::Now;

use super::connection::{classify, open_alone};
use super::creation::{self, InitLock};
use super::files::{beside, io_error};
use super::header::{self, APPLICATION_ID};
use super::log::Log;
use super::mark::MarkFile;
use super::migrations::{self, Fit, MIGRATIONS};
use super::moved::{BASE, RAISE, meta, set_meta};
use super::transfer::SqliteEnd;
use crate::copy::{self, Copied, CopyEndpoint, CopySource, check_in_use};

type Clock = Box<dyn Fn() -> Now>;

/// What belongs to a database under its name.
const FILES: [&str; 4] = ["", "-wal", "-shm", ".mark"];

fn damaged(store: &str, why: impl Into<String>) -> StoreError {
    let (store, why) = (store.to_owned(), why.into());
    StoreError::Damaged { store, why }
}

/// Copies every page of one database into another one, as one state.
fn pages(from: &Connection, to: &mut Connection, store: &str) -> Result<(), StoreError> {
    let copied = Backup::new(from, to).and_then(|backup| backup.step(-1));
    match copied {
        Ok(StepResult::Done) => Ok(()),
        Ok(_) => Err(StoreError::Busy {
            store: store.to_owned(),
        }),
        Err(error) => Err(classify(store, None, &error)),
    }
}

/// Writes a backup of the store in the file `from` to the new file `to`; returns how many rows it has.
pub fn back_up(from: &Path, clock: Clock, to: &Path) -> Result<u64, StoreError> {
    let mut end = SqliteEnd::open(from, clock)?;
    let location = end.location();
    check_in_use(&end.snapshot()?, location.clone())?;
    let name = to.display().to_string();
    fs_err::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(to)
        .map_err(|error| io_error(&name, &error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn =
        Connection::open_with_flags(to, flags).map_err(|error| classify(&name, None, &error))?;
    pages(end.conn(), &mut conn, &name)?;
    check(&conn, &location, "quick_check")?;
    let rows = count(&conn).map_err(|error| classify(&name, None, &error))?;
    creation::finish(conn, "DELETE", &name)?;
    sync(to, &name)?;
    Ok(rows)
}

/// The same of any store, by its rows.
pub fn back_up_rows(from: &mut dyn CopySource, clock: Clock, to: &Path) -> Result<u64, StoreError> {
    let name = to.display().to_string();
    let standing = from.snapshot()?;
    check_in_use(&standing, from.location())?;
    let mut end = SqliteEnd::alone(creation::begin(to, &name)?, name.clone(), clock);
    end.lock()?;
    let rows = copy::write_all(from, &mut end)?;
    let sequences = from.sequences()?;
    let rest = || -> rusqlite::Result<()> {
        set_meta(end.conn(), BASE, &standing.base.to_string())?;
        end.number_on(&sequences)?;
        end.conn().execute_batch("COMMIT")
    };
    rest().map_err(|error| classify(&name, Some(end.conn()), &error))?;
    creation::finish(end.into_conn(), "DELETE", &name)?;
    sync(to, &name)?;
    Ok(rows)
}

fn sync(file: &Path, name: &str) -> Result<(), StoreError> {
    fs_err::File::open(file)
        .and_then(|file| file.sync_all())
        .map_err(|error| io_error(name, &error))
}

/// How many rows its tables have.
fn count(conn: &Connection) -> rusqlite::Result<u64> {
    let mut listed = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'sqlite_sequence')")?;
    let names = listed.query_map([], |row| row.get::<_, String>(0))?;
    let mut rows = 0;
    for name in names {
        let sql = format!("SELECT count(*) FROM {}", name?);
        rows += conn
            .query_row(&sql, [], |row| row.get::<_, i64>(0))?
            .unsigned_abs();
    }
    Ok(rows)
}

/// Runs one of SQLite's checks of a whole database.
fn check(conn: &Connection, store: &str, which: &str) -> Result<(), StoreError> {
    let found = conn.query_row(&format!("PRAGMA {which}(1)"), [], |row| {
        row.get::<_, String>(0)
    });
    match found {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => Err(damaged(
            store,
            format!("{which}: {}", found.replace('\n', " ")),
        )),
        Err(error) => Err(classify(store, None, &error)),
    }
}

/// What is wrong with the content of a database, at most twenty things.
pub fn faults(file: &Path, clock: Clock) -> Result<Vec<String>, StoreError> {
    let end = SqliteEnd::open(file, clock)?;
    let checked = || -> rusqlite::Result<Vec<String>> {
        let conn = end.conn();
        let mut found: Vec<String> = conn
            .prepare("PRAGMA integrity_check(20)")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        found.retain(|one| one != "ok");
        let mut orphans = conn.prepare(
            "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2",
        )?;
        let mut rows = orphans.query([])?;
        while let Some(row) = rows.next()? {
            let (table, parent, count): (String, String, i64) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            found.push(format!(
                "{count} rows of {table} name a row of {parent} that is not there"
            ));
        }
        Ok(found)
    };
    checked().map_err(|error| classify(&end.location(), None, &error))
}

/// How many bytes the log of a database has.
pub fn log_bytes(file: &Path) -> u64 {
    Log::of(file).bytes()
}

/// Opens a backup and checks all of it. What is returned is a private copy.
pub fn open(file: &Path, clock: Clock) -> Result<SqliteEnd, StoreError> {
    let name = file.display().to_string();
    let failed = |error: rusqlite::Error| classify(&name, None, &error);
    let found = match fs_err::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(damaged(&name, "it does not exist"));
        }
        found => found.map_err(|error| io_error(&name, &error))?,
    };
    if !found.is_file() {
        return Err(damaged(&name, "it is not a regular file"));
    }
    if Log::of(file).bytes() > 0 {
        return Err(StoreError::Unavailable {
            store: name,
            why: "it is no backup: it has a log beside it, so another program may be writing it"
                .to_owned(),
        });
    }
    let path = fs_err::canonicalize(file).map_err(|error| io_error(&name, &error))?;
    let from = open_alone(&path).map_err(failed)?;
    // A file that is removed as soon as it is open.
    let mut conn = Connection::open("").map_err(failed)?;
    pages(&from, &mut conn, &name)?;
    drop(from);
    let id: i32 = conn
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(failed)?;
    if id != APPLICATION_ID {
        return Err(damaged(&name, "another program wrote it"));
    }
    check(&conn, &name, "integrity_check")?;
    super::connection::configure(&conn, &name)?;
    if migrations::fit(&conn, &name, MIGRATIONS)? == Fit::Behind {
        migrations::migrate(&conn, &name, MIGRATIONS)?;
    }
    Ok(SqliteEnd::alone(conn, name, clock))
}

/// Whether a file is a database, as far as its content tells: what cannot be used for another reason is an error.
pub fn is_whole(file: &Path, clock: Clock) -> Result<bool, StoreError> {
    let checked = SqliteEnd::open(file, clock)
        .and_then(|end| check(end.conn(), &end.location(), "quick_check"));
    match checked {
        Ok(()) => Ok(true),
        Err(StoreError::Damaged { .. } | StoreError::LogLost { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Puts a new database in the place of a damaged one, whose files keep their content under the name `aside`.
///
/// *Crash*: the damaged one stays, or the new one is there; the same call again does the rest.
pub fn replace(
    file: &Path,
    aside: &Path,
    clock: Clock,
    fill: &mut dyn FnMut(&mut dyn CopyEndpoint) -> Result<Copied, StoreError>,
) -> Result<Copied, StoreError> {
    let store = file.display().to_string();
    let io = |error: std::io::Error| io_error(&store, &error);
    let _lock = InitLock::acquire(file, &store, None)?;
    let new = beside(file, ".new");
    creation::remove_leftovers(&new).map_err(io)?;
    let conn = creation::begin(&new, &store)?;
    start_above(&conn, file).map_err(|error| classify(&store, Some(&conn), &error))?;
    let mut end = SqliteEnd::alone(conn, store.clone(), clock);
    let done = fill(&mut end)?;
    creation::finish(end.into_conn(), "WAL", &store)?;
    header::check_file(&new, &store)?;
    for suffix in FILES {
        let (from, to) = (beside(file, suffix), beside(aside, suffix));
        if fs_err::symlink_metadata(&from).is_ok() {
            fs_err::hard_link(&from, &to)
                .or_else(|_| fs_err::copy(&from, &to).map(|_| ()))
                .map_err(io)?;
        }
    }
    // The next database must not find the log of this one. Until it is there, the missing log keeps everybody out.
    match fs_err::remove_file(beside(file, "-wal")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
        _ => creation::put_in_place(&new, file).map_err(io)?,
    }
    Ok(done)
}

/// Removes a copy of a store, made by [`back_up`] or set aside by [`replace`].
pub fn remove(copy: &Path) {
    for suffix in FILES.into_iter().rev() {
        fs_err::remove_file(beside(copy, suffix))
            .ignore("it may not be there, or is removed later");
    }
}

/// Has a new database grant epochs and number events above those of a damaged one.
fn start_above(conn: &Connection, file: &Path) -> rusqlite::Result<()> {
    let known = open_alone(file).and_then(|old| meta(&old, BASE));
    let base = match known.ok().flatten().and_then(|base| base.parse().ok()) {
        Some(base) => base,
        // It may have been raised any number of times.
        None => {
            let raises = "SELECT abs(random() % 65536)";
            conn.query_row(raises, [], |row| row.get::<_, i64>(0))? * RAISE
        }
    };
    set_meta(conn, BASE, &base.to_string())?;
    let mark = fs_err::symlink_metadata(file).ok().and_then(|found| {
        let marks = MarkFile::of(file, &found, "");
        marks.read().ok().flatten()
    });
    if let Some(mark) = mark {
        let newest = i64::try_from(mark.event).unwrap_or_default();
        conn.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?1)",
            [newest],
        )?;
    }
    Ok(())
}
