//! The write-ahead log, kept short by our own checkpoints.
//!
//! Hooks are processes that open, write one row and exit. What SQLite knows about a checkpoint is in shared
//! memory and is lost with the last of them: after an automatic checkpoint the next process finds the whole log
//! again, copies it again, and appends. Each page that is found again costs every hook about a microsecond. So a
//! log that has grown is copied *and truncated*, in one step, by the process that committed last: by a heartbeat past
//! [`SHORT`] pages if nobody waits to write, else past [`BUSY`]. A writer that has to wait says so with a kernel
//! lock ([`Log::announce`]). A claim writes pages of several tables and indexes: if it copied too, many would wait for
//! the disk three times instead of once. The next heartbeat does it.
//!
//! Up to [`MAX_PAGES`] pages no one waits for a checkpoint. If another process is reading or writing, as much as possible
//! is copied, and either the next writer restarts the log or the next commit tries again. Past that, the process that
//! committed waits a moment for the others.
//!
//! A log that was truncated grows with every commit, and a commit that makes a file grow waits many times longer
//! for the disk than one that overwrites it. A process that stays and writes all the time, such as a dispatcher,
//! therefore *checkpoints* the log: it lets it grow to [`CHECKPOINTED`] pages, copies it between two writes or when there is
//! nothing to do, and never truncates it, so that the next commits overwrite it. Nothing is found again meanwhile,
//! because what SQLite knows stays in shared memory as long as that process lives. A kernel lock tells the others
//! to leave the log to it.
//!
//! *Crash*: what is copied stays in the log until all of it is on disk. The lock of a process that checkpoints it is
//! gone with that process, and the next write truncates the log. *Clock jump*: no clock is read. *Older
//! version*: any version may truncate the log of any other.

use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use rusqlite::Connection;
use tenure_core::ignore::Ignore;
use tenure_core::store::Checkpoint;

use super::connection::{BUSY_TIMEOUT, Durability};
use super::files::beside;
use super::mark::open_plain;

/// Past how many pages a heartbeat copies a log if nobody waits to write.
const SHORT: u64 = 16;
/// The same for anyone if somebody does: the disk is waited for twice more, and all who wait would wait for it.
const BUSY: u64 = 128;
/// No log is longer that no process checkpoints, as long as no reader lasts longer than [`PATIENCE`].
const MAX_PAGES: u64 = 256;
/// How long a process waits for others before it copies a log that is too long.
const PATIENCE: Duration = Duration::from_millis(50);

/// How often a waiting process tries to say so.
const ATTEMPTS: usize = 10;

/// The size of a page in the log.
const FRAME_BYTES: u64 = 4096 + 24;

/// At how many pages such a log is copied. Each time, the disk is waited for twice more.
const CHECKPOINTED: u64 = 3_000;
/// The same when there is nothing to do.
const CHECKPOINTED_QUIET: u64 = 128;
/// At how many pages others no longer leave a log to the process that checkpoints it. The first table of SQLite's index of the
/// log has place for 4,062; beyond that, every reader would search a second one.
const NEGLECTED: u64 = 4_000;

/// The log of one database.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Locked by the process that checkpoints the log.
    tender: PathBuf,
    /// The lock, if this connection checkpoints the log.
    checkpointing: Option<fs_err::File>,
    /// Locked by processes that wait to write.
    waiting: PathBuf,
}

/// Says that this process waits to write, until it is dropped.
#[derive(Debug)]
pub(super) struct Announced {
    _lock: Option<fs_err::File>,
}

impl Log {
    /// The log next to a database.
    pub(super) fn of(file: &Path) -> Self {
        Self {
            path: beside(file, "-wal"),
            tender: beside(file, ".tender"),
            checkpointing: None,
            waiting: beside(file, ".waiting"),
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
        let short = match durability {
            Durability::Full => BUSY,
            Durability::Order => SHORT,
        };
        // The file may be longer than the part in use, never shorter.
        let pages = self.bytes() / FRAME_BYTES;
        if pages <= short || (pages < NEGLECTED && self.is_checkpointed()) {
            return;
        }
        let most = if self.somebody_waits() { BUSY } else { short };
        let used = if pages > most { pages_in_use(conn) } else { 0 };
        if used > MAX_PAGES {
            checkpoint(conn, TRUNCATE, PATIENCE);
        } else if used > most {
            cut(conn);
        }
    }

    /// Says that this process waits to write. Without it, the wait is only longer.
    pub(super) fn announce(&self) -> Announced {
        let mut options = fs_err::OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let is_locked = |file: &fs_err::File| {
            (0..ATTEMPTS).any(|_| {
                let taken = file.file().try_lock_shared().is_ok();
                if !taken {
                    // Another process just looks whether somebody waits.
                    std::thread::yield_now();
                }
                taken
            })
        };
        let opened = open_plain(&mut options, &self.waiting).ok();
        Announced {
            _lock: opened.filter(is_locked),
        }
    }

    fn somebody_waits(&self) -> bool {
        let Ok(file) = fs_err::File::open(&self.waiting) else {
            return false;
        };
        matches!(file.file().try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Checkpoints the log, unless another process does; called after a commit, or when there is nothing to do.
    pub(super) fn checkpoint(&mut self, conn: &Connection, at: Checkpoint) {
        if self.checkpointing.is_none() {
            let Some(lock) = self.lock() else { return };
            // Otherwise the first commit into a copied log truncates it.
            let limit = NEGLECTED * FRAME_BYTES;
            let sql = format!("PRAGMA journal_size_limit = {limit}");
            if conn.execute_batch(&sql).is_err() {
                return;
            }
            self.checkpointing = Some(lock);
        }
        let most = match at {
            Checkpoint::Small => CHECKPOINTED,
            Checkpoint::Full => CHECKPOINTED_QUIET,
            Checkpoint::Final => {
                self.checkpointing = None;
                return cut(conn);
            }
        };
        if self.bytes() >= most * FRAME_BYTES && pages_to_copy(conn) >= most {
            checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)", Duration::ZERO);
        }
    }

    fn lock(&self) -> Option<fs_err::File> {
        let mut options = fs_err::OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let file = open_plain(&mut options, &self.tender).ok()?;
        file.file().try_lock().ok()?;
        Some(file)
    }

    /// Whether a process checkpoints the log: this one, or another one that lives.
    fn is_checkpointed(&self) -> bool {
        let is_locked = || {
            let file = fs_err::File::open(&self.tender).ok()?;
            let taken = file.file().try_lock_shared();
            Some(matches!(taken, Err(TryLockError::WouldBlock)))
        };
        self.checkpointing.is_some() || is_locked().unwrap_or(false)
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

const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

fn cut(conn: &Connection) {
    checkpoint(conn, TRUNCATE, Duration::ZERO);
}

fn checkpoint(conn: &Connection, sql: &str, patience: Duration) {
    let within = || -> rusqlite::Result<()> {
        conn.busy_timeout(patience)?;
        conn.prepare_cached(sql)?.query_row([], |_| Ok(()))
    };
    let done = within();
    let restored = conn.busy_timeout(BUSY_TIMEOUT);
    done.and(restored).ignore("see keep_short");
}
