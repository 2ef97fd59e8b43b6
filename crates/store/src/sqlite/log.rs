//! The write-ahead log, kept short by our own checkpoints.
//!
//! Hooks are processes that open, write one row and exit. What SQLite knows about a checkpoint is in shared
//! memory and is lost with the last of them: after an automatic checkpoint the next process finds the whole log
//! again, copies it again, and appends. So a log that has grown is copied *and truncated*, in one step, by the
//! process that committed last: at 128 pages after a write and at 160 after a heartbeat, which therefore rarely
//! pays for it. Each page that is found again costs every hook about a microsecond.
//!
//! No one waits for a checkpoint. If another process is reading or writing, as much as possible is copied, and
//! either the next writer restarts the log or the next commit tries again.
//!
//! A log that was truncated grows with every commit, and a commit that makes a file grow waits many times longer
//! for the disk than one that overwrites it. A process that stays and writes all the time, such as a dispatcher,
//! therefore *tends* the log: it lets it grow to [`TENDED`] pages, copies it between two writes or when there is
//! nothing to do, and never truncates it, so that the next commits overwrite it. Nothing is found again meanwhile,
//! because what SQLite knows stays in shared memory as long as that process lives. A kernel lock tells the others
//! to leave the log to it.
//!
//! *Crash*: what is copied stays in the log until all of it is on disk. The lock of a process that tended it is
//! gone with that process, and the next write truncates the log. *Clock jump*: no clock is read. *Older
//! version*: any version may truncate the log of any other.

use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use rusqlite::Connection;
use tenure_core::store::Moment;

use super::connection::{BUSY_TIMEOUT, Durability};
use super::mark::open_plain;

/// The size of a page in the log.
const FRAME_BYTES: u64 = 4096 + 24;

/// At how many pages a tended log is copied. Each time, the disk is waited for twice more.
const TENDED: u64 = 3_000;
/// The same when there is nothing to do.
const TENDED_QUIET: u64 = 128;
/// At how many pages others no longer leave a log to the process that tends it. The first table of SQLite's index of the
/// log has place for 4,062; beyond that, every reader would search a second one.
const NEGLECTED: u64 = 4_000;

/// The log of one database.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Locked by the process that tends the log.
    tender: PathBuf,
    /// The lock, if this connection tends it.
    tending: Option<fs_err::File>,
}

impl Log {
    /// The log next to a database.
    pub(super) fn of(file: &Path) -> Self {
        let mut name = file.as_os_str().to_owned();
        name.push("-wal");
        let mut tender = file.as_os_str().to_owned();
        tender.push(".tender");
        Self {
            path: PathBuf::from(name),
            tender: PathBuf::from(tender),
            tending: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The length of its file; zero if there is none.
    pub(super) fn bytes(&self) -> u64 {
        fs_err::symlink_metadata(&self.path).map_or(0, |meta| meta.len())
    }

    /// Which file it is; none if there is none.
    pub(super) fn inode(&self) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let found = fs_err::symlink_metadata(&self.path).ok()?;
        Some((found.dev(), found.ino()))
    }

    /// Copies the log into the database and truncates it, if it has grown; called after a commit.
    ///
    /// A failure only leaves a longer log: what was committed is in it, and the next commit tries again, so no
    /// error is reported.
    pub(super) fn keep_short(&self, conn: &Connection, durability: Durability) {
        let most = match durability {
            Durability::Full => 128,
            Durability::Order => 160,
        };
        // The file may be longer than the part in use, never shorter.
        let bytes = self.bytes();
        let is_long = bytes >= most * FRAME_BYTES;
        let is_neglected = bytes >= NEGLECTED * FRAME_BYTES;
        if is_long && (is_neglected || !self.is_tended()) && pages_in_use(conn) >= most {
            cut(conn);
        }
    }

    /// Tends the log, unless another process does; called after a commit, or when there is nothing to do.
    pub(super) fn tend(&mut self, conn: &Connection, moment: Moment) {
        if self.tending.is_none() {
            let Some(lock) = self.lock() else { return };
            // Otherwise the first commit into a copied log truncates it.
            let limit = NEGLECTED * FRAME_BYTES;
            let sql = format!("PRAGMA journal_size_limit = {limit}");
            if conn.execute_batch(&sql).is_err() {
                return;
            }
            self.tending = Some(lock);
        }
        let most = match moment {
            Moment::Busy => TENDED,
            Moment::Quiet => TENDED_QUIET,
            Moment::Last => {
                self.tending = None;
                return cut(conn);
            }
        };
        if self.bytes() >= most * FRAME_BYTES && pages_to_copy(conn) >= most {
            checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)");
        }
    }

    fn lock(&self) -> Option<fs_err::File> {
        let mut options = fs_err::OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let file = open_plain(&mut options, &self.tender).ok()?;
        file.file().try_lock().ok()?;
        Some(file)
    }

    /// Whether a process tends the log: this one, or another one that lives.
    fn is_tended(&self) -> bool {
        let is_locked = || {
            let file = fs_err::File::open(&self.tender).ok()?;
            let taken = file.file().try_lock_shared();
            Some(matches!(taken, Err(TryLockError::WouldBlock)))
        };
        self.tending.is_some() || is_locked().unwrap_or(false)
    }
}

fn pages_in_use(conn: &Connection) -> u64 {
    let count = |conn: &Connection| -> rusqlite::Result<u32> {
        conn.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
            .query_row([], |row| row.get(1))
    };
    count(conn).map_or(0, u64::from)
}

/// How many of its pages are not in the database yet.
fn pages_to_copy(conn: &Connection) -> u64 {
    let count = |conn: &Connection| -> rusqlite::Result<i64> {
        conn.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
            .query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
    };
    count(conn).map_or(0, |pages| u64::try_from(pages).unwrap_or(0))
}

fn cut(conn: &Connection) {
    checkpoint(conn, "PRAGMA wal_checkpoint(TRUNCATE)");
}

fn checkpoint(conn: &Connection, sql: &str) {
    let without_waiting = || -> rusqlite::Result<()> {
        conn.busy_timeout(Duration::ZERO)?;
        conn.prepare_cached(sql)?.query_row([], |_| Ok(()))
    };
    let done = without_waiting();
    let restored = conn.busy_timeout(BUSY_TIMEOUT);
    if done.and(restored).is_err() {
        // See keep_short.
    }
}
