//! One connection to a database file: how it is opened and configured, and what its errors mean.
//!
//! Owns every pragma. Opening is the hot path of a hook, so what persists in the file (WAL mode) is never set
//! again, and what SQLite takes by a call instead of a statement is set that way.
//!
//! SQLite makes no checkpoint by itself, neither at a commit nor when a connection closes: see the log.
//!
//! *Crash*: the next opener replays the log, which is short. *Clock jump*: no clock is read here. *Older
//! version*: nothing here depends on the schema.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, ffi};
use rustix::process::{Resource, getrlimit};
use tenure_core::store::StoreError;

/// How long a statement waits for another process.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Prepared statements to keep: more than the trait has, so that a long-lived store parses each once.
const CACHED_STATEMENTS: usize = 64;

/// How much of a commit must survive a power failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// All of it.
    Full,
    /// Only its order: the newest commits may be lost.
    Order,
}

impl Durability {
    fn pragma(self) -> &'static str {
        match self {
            Durability::Full => "PRAGMA synchronous = FULL",
            Durability::Order => "PRAGMA synchronous = NORMAL",
        }
    }
}

/// Opens an existing database file, and never creates one; none if a symbolic link is on the path.
pub(super) fn open(file: &Path, store: &str) -> Result<Option<Connection>, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    match Connection::open_with_flags(file, flags) {
        Ok(conn) => Ok(Some(conn)),
        Err(error) if leads_through_link(&error) => Ok(None),
        Err(error) => Err(classify(store, None, &error)),
    }
}

fn leads_through_link(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|cause| cause.extended_code);
    code == Some(ffi::SQLITE_CANTOPEN_SYMLINK)
}

/// Opens only the database file for reading: no log, no lock, nothing written.
pub(super) fn open_alone(file: &Path) -> rusqlite::Result<Connection> {
    let mut name = String::from("file:");
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => name.push(char::from(*byte)),
            plain if plain.is_ascii_alphanumeric() => name.push(char::from(*plain)),
            other => name.push_str(&format!("%{other:02x}")),
        }
    }
    name.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    Connection::open_with_flags(name, flags)
}

/// The number of the newest event that was ever stored.
pub(super) fn newest_event(conn: &Connection) -> rusqlite::Result<u64> {
    let newest = conn
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'events'")?
        .query_row([], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(newest.unwrap_or(0).unsigned_abs())
}

/// Opens an in-memory database.
pub(super) fn open_in_memory(store: &str) -> Result<Connection, StoreError> {
    Connection::open_in_memory().map_err(|error| classify(store, None, &error))
}

/// Sets what every connection to a store needs.
pub(super) fn configure(conn: &Connection, store: &str) -> Result<(), StoreError> {
    let set = || -> rusqlite::Result<()> {
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // Otherwise a statement on a table with partial indexes is planned again whenever a value is bound.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.execute_batch(
            "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; \
             PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 1048576",
        )
    };
    set().map_err(|error| classify(store, Some(conn), &error))
}

/// Limits how long the next statements wait for another process; no limit means the default.
pub(super) fn wait_until(
    conn: &Connection,
    store: &str,
    until: Option<Instant>,
) -> Result<(), StoreError> {
    let left = until.map_or(BUSY_TIMEOUT, |until| {
        until.saturating_duration_since(Instant::now())
    });
    conn.busy_timeout(left.min(BUSY_TIMEOUT))
        .map_err(|error| classify(store, Some(conn), &error))
}

/// Sets how durable the next commits are.
pub(super) fn set_durability(
    conn: &Connection,
    store: &str,
    durability: Durability,
) -> Result<(), StoreError> {
    conn.execute_batch(durability.pragma())
        .map_err(|error| classify(store, Some(conn), &error))
}

/// The meaning of an SQLite error for the user of the store.
///
/// With a connection, a corruption error also has the result of a quick check.
pub(super) fn classify(
    store: &str,
    conn: Option<&Connection>,
    error: &rusqlite::Error,
) -> StoreError {
    let store = store.to_owned();
    let rusqlite::Error::SqliteFailure(cause, message) = error else {
        let why = error.to_string();
        return StoreError::Unavailable { store, why };
    };
    match cause.code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed => StoreError::Busy { store },
        _ if needs_room(cause) && largest_file().is_some() => {
            let most = largest_file().unwrap_or_default();
            let why = format!(
                "file size is limited to {most} bytes here (ulimit -f); nothing was changed"
            );
            StoreError::Unavailable { store, why }
        }
        ErrorCode::DiskFull => StoreError::Full { store },
        // The shared memory of the log could not grow.
        _ if cause.extended_code == ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full { store },
        ErrorCode::NotADatabase => StoreError::Damaged {
            store,
            why: "it is not a SQLite database".to_owned(),
        },
        ErrorCode::DatabaseCorrupt => StoreError::Damaged {
            store,
            why: describe_corruption(conn, cause, message.as_deref()),
        },
        _ if is_taken(cause.extended_code) => StoreError::Conflict,
        _ => StoreError::Unavailable {
            store,
            why: describe(cause, message.as_deref()),
        },
    }
}

/// The file size limit of this process in bytes, if there is one.
fn largest_file() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Whether a file could not grow.
fn needs_room(cause: &ffi::Error) -> bool {
    matches!(
        cause.extended_code,
        ffi::SQLITE_FULL
            | ffi::SQLITE_IOERR_WRITE
            | ffi::SQLITE_IOERR_TRUNCATE
            | ffi::SQLITE_IOERR_SHMSIZE
    )
}

/// Whether a disk failed for another reason than that there was no room, so that all may have been written.
pub(super) fn is_unconfirmed(cause: ffi::Error) -> bool {
    let lacks_room = needs_room(&cause)
        && (cause.extended_code != ffi::SQLITE_IOERR_WRITE || largest_file().is_some());
    cause.code == ErrorCode::SystemIoFailure && !lacks_room
}

fn is_taken(extended_code: i32) -> bool {
    matches!(
        extended_code,
        ffi::SQLITE_CONSTRAINT_UNIQUE
            | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_ROWID
    )
}

/// SQLite's message, its name for the exact code, and the code itself.
fn describe(cause: &ffi::Error, message: Option<&str>) -> String {
    let code = cause.extended_code;
    let name = ffi::code_to_str(code);
    match message {
        Some(message) if message != name => format!("{message} ({name}, SQLite code {code})"),
        _ => format!("{name} (SQLite code {code})"),
    }
}

fn describe_corruption(
    conn: Option<&Connection>,
    cause: &ffi::Error,
    message: Option<&str>,
) -> String {
    let said = describe(cause, message);
    let check = |conn: &Connection| {
        conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
    };
    match conn.map(check) {
        Some(Ok(finding)) if finding != "ok" => {
            format!("{said}; quick_check: {}", finding.replace('\n', " "))
        }
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(code: i32) -> StoreError {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        classify("/s/tenure.db", None, &error)
    }

    #[test]
    fn every_error_has_one_meaning_and_names_the_store() {
        let store = || "/s/tenure.db".to_owned();
        for busy in [ffi::SQLITE_BUSY, ffi::SQLITE_LOCKED, ffi::SQLITE_PROTOCOL] {
            assert_eq!(meaning(busy), StoreError::Busy { store: store() });
        }
        for full in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            assert_eq!(meaning(full), StoreError::Full { store: store() });
        }
        for damaged in [ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            assert!(
                matches!(meaning(damaged), StoreError::Damaged { store: s, .. } if s == store())
            );
        }
        for shut in [
            ffi::SQLITE_READONLY,
            ffi::SQLITE_CANTOPEN,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_PERM,
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY,
        ] {
            assert!(
                matches!(meaning(shut), StoreError::Unavailable { store: s, .. } if s == store())
            );
        }
        for taken in [
            ffi::SQLITE_CONSTRAINT_UNIQUE,
            ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
        ] {
            assert_eq!(meaning(taken), StoreError::Conflict);
        }
    }

    #[test]
    fn a_failed_flush_leaves_a_commit_in_doubt_and_a_full_disk_does_not() {
        let doubt = |code| is_unconfirmed(ffi::Error::new(code));
        assert!(doubt(ffi::SQLITE_IOERR_FSYNC) && doubt(ffi::SQLITE_IOERR_DIR_FSYNC));
        assert!(
            !doubt(ffi::SQLITE_FULL)
                && !doubt(ffi::SQLITE_IOERR_SHMSIZE)
                && !doubt(ffi::SQLITE_BUSY)
        );
    }

    #[test]
    fn a_connection_has_every_setting_that_is_promised() {
        let conn = open_in_memory("m").unwrap();
        configure(&conn, "m").unwrap();
        let pragma = |name: &str| -> i64 {
            conn.pragma_query_value(None, name, |row| row.get(0))
                .unwrap()
        };
        assert_eq!(pragma("foreign_keys"), 1);
        assert_eq!(pragma("trusted_schema"), 0);
        assert_eq!(pragma("cell_size_check"), 1);
        assert_eq!(pragma("temp_store"), 2);
        assert_eq!(pragma("busy_timeout"), 10_000);
        assert_eq!(pragma("wal_autocheckpoint"), 0);
        set_durability(&conn, "m", Durability::Full).unwrap();
        assert_eq!(pragma("synchronous"), 2);
        set_durability(&conn, "m", Durability::Order).unwrap();
        assert_eq!(pragma("synchronous"), 1);
    }
}
