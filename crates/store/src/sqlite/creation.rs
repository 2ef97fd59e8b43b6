//! Making a store, once, whoever comes first.
//!
//! A database appears under its name only when it is complete: it is built in a file of its own beside
//! it, brought to the disk, and renamed, all under a kernel lock on `NAME.init`. So a database of zero
//! bytes, or without its tables, is always damage and never a beginning. The same lock keeps two
//! migrations apart.
//!
//! *Crash*: a half-built `NAME.new` stays and is replaced by the next creator, which holds the lock; the
//! lock itself goes with its process. *Clock jump*: no clock is read. *Older version*: whoever creates
//! makes the newest schema that it knows.

use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use tenure_core::store::StoreError;

use super::connection;
use super::files::{beside, io_error};
use super::log::Log;
use super::mark::FileId;
use super::migrations::{self, MIGRATIONS};
use super::{Patience, moved};

/// How often a lock is asked for by whoever cannot wait for it.
const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Keeps other creating and migrating processes out until it is dropped.
#[derive(Debug)]
pub(super) struct InitLock(
    #[expect(dead_code, reason = "the lock is held by being open")] fs_err::File,
);

impl InitLock {
    /// Waits for the lock of the database at `file`, for a caller that has no time until then only.
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
            let file = fs_err::OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(path)?;
            own_alone(&file)?;
            lock(&file, limit)?;
            // Somebody may have removed the file while we waited: then others lock another one.
            let locked = file.metadata()?;
            match fs_err::symlink_metadata(path) {
                Ok(there) if (there.dev(), there.ino()) == (locked.dev(), locked.ino()) => {
                    return Ok(Self(file));
                }
                Ok(there) if there.is_symlink() => {
                    let why = format!("{} is a symbolic link", path.display());
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Waits for the kernel's lock. Its wait has no limit, so whoever has one asks again and again: a creator
/// that is stopped in the middle must not stop others.
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

/// Makes the database at `file` unless somebody else has by now.
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
    put_in_place(&new, file).map_err(|error| io_error(store, &error))
}

/// The owner may read and write, whatever the umask took away.
fn own_alone(file: &fs_err::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// Builds a complete database in `new`, which nobody else looks at.
fn build(new: &Path, store: &str) -> Result<(), StoreError> {
    fs_err::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(new)
        .and_then(|file| own_alone(&file))
        .map_err(|error| io_error(store, &error))?;
    let conn = connection::open(new, store)?.ok_or_else(|| super::replaced(store))?;
    let sql = |error: &rusqlite::Error| connection::classify(store, None, error);
    // Until it is renamed a crash costs nothing; it is brought to the disk as a whole.
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        .map_err(|error| sql(&error))?;
    migrations::build(&conn, store, MIGRATIONS)?;
    // Renaming keeps the inode.
    let found = fs_err::symlink_metadata(new).map_err(|error| io_error(store, &error))?;
    moved::remember_file(&conn, FileId::of(&found)).map_err(|error| sql(&error))?;
    let mode: String = conn
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(|error| sql(&error))?;
    if mode != "wal" {
        return Err(StoreError::Unavailable {
            store: store.to_owned(),
            why: "its file system cannot share memory between processes, which the log needs"
                .to_owned(),
        });
    }
    conn.close().map_err(|(_, error)| sql(&error))
}

fn put_in_place(new: &Path, file: &Path) -> io::Result<()> {
    fs_err::File::open(new)?.sync_all()?;
    fs_err::rename(new, file)?;
    match file.parent() {
        Some(dir) => fs_err::File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

fn remove_leftovers(new: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        match fs_err::remove_file(beside(new, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
