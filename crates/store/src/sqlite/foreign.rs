//! Databases of other programs, read only.
//!
//! SQLite makes a `-wal` and a `-shm` beside a database that keeps a log as soon as it reads one, and a reader that
//! may not write leaves them there, for the owner of the database to stumble over. So such a database is read into
//! memory together with its log, and SQLite never sees the files. A database without a log is opened in place, where
//! the locks of its own program count and reading makes no file.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::foreign_log;

/// How long to wait for a program that has the database locked.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The longest database, and the longest log.
const MAX_LENGTH: u64 = 64 << 20;

/// How often to read a database again that its own program changed meanwhile.
const ATTEMPTS: usize = 5;

/// Where the header says how a database is written and read: 1 without a log, 2 with one.
const MODES: std::ops::Range<usize> = 18..20;

/// The rows of a query, every cell as text. Nothing of the database is changed, and no file is made beside it. Neither
/// the database nor its log may be longer than 64 MiB.
pub fn rows(path: &Path, query: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    rows_within(path, query, MAX_LENGTH)
}

/// The same with another limit, in bytes.
pub fn rows_within(
    path: &Path,
    query: &str,
    most: u64,
) -> Result<Vec<Vec<Option<String>>>, String> {
    let connection = open(path, most)?;
    ask(&connection, query).map_err(|error| said(&error))
}

pub(super) fn said(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has it locked".to_owned()
        }
        Some(ErrorCode::NotADatabase) => "it is not an SQLite database".to_owned(),
        Some(ErrorCode::CannotOpen) => "it cannot be opened".to_owned(),
        Some(ErrorCode::ReadOnly) => {
            "its last change was cut off: start its own program once, which completes it".to_owned()
        }
        _ => error.to_string(),
    }
}

fn open(path: &Path, most: u64) -> Result<Connection, String> {
    // SQLite finds the log beside the file itself, not beside a link to it.
    let path = fs_err::canonicalize(path).map_err(|error| error.to_string())?;
    if metadata(&path, most)?.len() == 0 {
        return Err("it is empty".to_owned());
    }
    match copy(&path, most)? {
        Some(bytes) => in_memory(&bytes).map_err(|error| said(&error)),
        None => in_place(&path).map_err(|error| said(&error)),
    }
}

fn in_place(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

fn in_memory(bytes: &[u8]) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact("main", bytes, bytes.len(), true)?;
    Ok(connection)
}

/// A database that keeps a log, with what is in the log; none if it keeps no log.
///
/// What is in the log moves to the database from time to time. If that happens while both are read, they do not fit
/// together, and are read again.
fn copy(path: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let mut log = path.to_owned().into_os_string();
    log.push("-wal");
    let log = PathBuf::from(log);
    for _ in 0..ATTEMPTS {
        let before = metadata(path, most)?;
        let start = bytes(path, MODES.end as u64)?;
        let keeps_log = start.get(MODES).is_some_and(|modes| modes.contains(&2));
        if !keeps_log && fs_err::symlink_metadata(&log).is_err() {
            return Ok(None);
        }
        let mut found = whole(path, most)?;
        let logged = match metadata(&log, most) {
            Ok(_) => whole(&log, most)?,
            Err(_) if fs_err::symlink_metadata(&log).is_err() => Vec::new(),
            Err(why) => return Err(why),
        };
        if stamp(&before) != stamp(&metadata(path, most)?) {
            continue;
        }
        foreign_log::apply(&mut found, &logged, most)?;
        if let Some(modes) = found.get_mut(MODES) {
            modes.fill(1);
        }
        return Ok(Some(found));
    }
    Err("another program keeps changing it".to_owned())
}

/// What changes when a file is written.
fn stamp(found: &Metadata) -> (u64, u64, i64, i64) {
    (found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}

/// A regular file that is not too long.
fn metadata(path: &Path, most: u64) -> Result<Metadata, String> {
    let found = fs_err::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if found.len() > most {
        return Err(too_long(path, most));
    }
    Ok(found)
}

fn too_long(path: &Path, most: u64) -> String {
    format!("{} is longer than {most} bytes", path.display())
}

fn whole(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let found = bytes(path, most.saturating_add(1))?;
    if found.len() as u64 > most {
        Err(too_long(path, most))
    } else {
        Ok(found)
    }
}

/// The first bytes of a file.
fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        fs_err::File::open(path)?
            .take(most)
            .read_to_end(&mut found)?;
        Ok(found)
    };
    read().map_err(|error| error.to_string())
}

fn ask(connection: &Connection, query: &str) -> rusqlite::Result<Vec<Vec<Option<String>>>> {
    let mut statement = connection.prepare(query)?;
    let width = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..width)
            .map(|at| Ok(text(row.get_ref(at)?)))
            .collect::<rusqlite::Result<Vec<_>>>()
    })?;
    rows.collect()
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}
