//! Creating a store, exactly once.
//!
//! A database appears under its name only when it is complete: it is built in a temporary file next to it,
//! flushed to disk, and renamed, all under a kernel lock on `NAME.init`. So an empty database, or one without
//! its tables, is always damage and never a start. The same lock keeps two migrations apart.
//!
//! *Crash*: a half-built `NAME.new` stays and is replaced by the next creator, which holds the lock; the lock
//! itself is released with its process. *Clock jump*: no clock is read. *Older version*: a creator uses the
//! newest schema that it knows.

use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use rusqlite::Connection;
use tenure_core::store::StoreError;

use super::connection;
use super::files::{beside, io_error};
use super::log::Log;
use super::mark::{FileId, open_plain};
use super::migrations::{self, MIGRATIONS};
use super::{Patience, header, moved};

/// How often a caller with a deadline retries the lock.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Excludes other creating and migrating processes until it is dropped.
#[derive(Debug)]
pub(super) struct InitLock(
    #[expect(dead_code, reason = "the lock is held by being open")] fs_err::File,
);

impl InitLock {
    /// Waits for the lock of the database at `file`; a caller with a deadline waits only until then.
    pub(super) fn acquire(
        file: &Path,
        store: &str,
        limit: Option<Patience>,
    ) -> Result<Self, StoreError> {
        let path = beside(file, ".init");
        Self::wait(&path, limit).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => StoreError::Busy {
                store: store.to_owned(),
            },
            _ => io_error(store, &error),
        })
    }

    fn wait(path: &Path, limit: Option<Patience>) -> io::Result<Self> {
        loop {
            let mut options = fs_err::OpenOptions::new();
            options.create(true).truncate(false).write(true);
            let file = open_plain(options.mode(0o600), path)?;
            let locked = file.metadata()?;
            if !locked.is_file() {
                let why = format!("{} is not a regular file", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            own_alone(&file)?;
            lock(&file, limit)?;
            // The file may have been removed during the wait; others then lock another one.
            match fs_err::symlink_metadata(path) {
                Ok(there) if (there.dev(), there.ino()) == (locked.dev(), locked.ino()) => {
                    return Ok(Self(file));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Waits for the kernel's lock. That wait has no limit, so a caller with a deadline polls: a creator that is
/// stopped in the middle must not stop others.
fn lock(file: &fs_err::File, limit: Option<Patience>) -> io::Result<()> {
    let Some(limit) = limit else {
        return file.lock();
    };
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= limit.until => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(TryLockError::WouldBlock) => {}
        }
        (limit.pause)(ASK_AGAIN);
    }
}

/// Creates the database at `file` unless another process has done so by now.
pub(super) fn create(file: &Path, store: &str, limit: Option<Patience>) -> Result<(), StoreError> {
    let _lock = InitLock::acquire(file, store, limit)?;
    match fs_err::symlink_metadata(file) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_error(store, &error)),
    }
    let log = Log::of(file);
    if log.bytes() > 0 {
        return Err(StoreError::Damaged {
            store: store.to_owned(),
            why: format!(
                "the database is missing, but its log {} still exists",
                log.path().display()
            ),
        });
    }
    let new = beside(file, ".new");
    remove_leftovers(&new).map_err(|error| io_error(store, &error))?;
    build(&new, store)?;
    // SQLite says that the log is on even if its note of that in the header could not be written.
    header::check_file(&new, store)?;
    put_in_place(&new, file).map_err(|error| io_error(store, &error))
}

/// The owner may read and write, whatever the umask removed.
fn own_alone(file: &fs_err::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// Builds a complete database in `new`, which no one else uses.
fn build(new: &Path, store: &str) -> Result<(), StoreError> {
    let conn = begin(new, store)?;
    finish(conn, "WAL", store)
}

/// An empty database in the new file `new`, which no one else uses, until it is finished.
pub(super) fn begin(new: &Path, store: &str) -> Result<Connection, StoreError> {
    fs_err::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(new)
        .and_then(|file| own_alone(&file))
        .map_err(|error| io_error(store, &error))?;
    let file = resolved(new).map_err(|error| io_error(store, &error))?;
    let conn = connection::open(&file, store)?.ok_or_else(|| super::replaced(store))?;
    let sql = |error: rusqlite::Error| connection::classify(store, None, &error);
    // Until the rename a crash costs nothing; it is flushed to disk as a whole.
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        .map_err(sql)?;
    migrations::build(&conn, store, MIGRATIONS)?;
    // Renaming keeps the inode.
    let found = fs_err::symlink_metadata(new).map_err(|error| io_error(store, &error))?;
    moved::remember_file(&conn, FileId::of(&found)).map_err(sql)?;
    Ok(conn)
}

/// The file without links in its path, which SQLite refuses.
fn resolved(new: &Path) -> io::Result<PathBuf> {
    let dir = fs_err::canonicalize(new.parent().unwrap_or(Path::new("/")))?;
    Ok(dir.join(new.file_name().unwrap_or_default()))
}

/// Gives a database its journal mode, and closes it.
pub(super) fn finish(conn: Connection, mode: &str, store: &str) -> Result<(), StoreError> {
    let set: String = conn
        .query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| {
            row.get(0)
        })
        .map_err(|error| connection::classify(store, None, &error))?;
    if !set.eq_ignore_ascii_case(mode) {
        return Err(StoreError::without_shared_memory(store));
    }
    conn.close()
        .map_err(|(_, error)| connection::classify(store, None, &error))
}

pub(super) fn put_in_place(new: &Path, file: &Path) -> io::Result<()> {
    fs_err::File::open(new)?.sync_all()?;
    fs_err::rename(new, file)?;
    match file.parent() {
        Some(dir) => fs_err::File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

pub(super) fn remove_leftovers(new: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        match fs_err::remove_file(beside(new, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
