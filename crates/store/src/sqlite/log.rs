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
//! *Crash*: what is copied stays in the log until all of it is on disk. *Clock jump*: no clock is read. *Older
//! version*: any version may truncate the log of any other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{BUSY_TIMEOUT, Durability};

/// The size of a page in the log.
const FRAME_BYTES: u64 = 4096 + 24;

/// The log of one database.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
}

impl Log {
    /// The log next to a database.
    pub(super) fn of(file: &Path) -> Self {
        let mut name = file.as_os_str().to_owned();
        name.push("-wal");
        Self {
            path: PathBuf::from(name),
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
        if self.bytes() >= most * FRAME_BYTES && pages_in_use(conn) >= most {
            cut(conn);
        }
    }
}

fn pages_in_use(conn: &Connection) -> u64 {
    let count = |conn: &Connection| -> rusqlite::Result<u32> {
        conn.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
            .query_row([], |row| row.get(1))
    };
    count(conn).map_or(0, u64::from)
}

fn cut(conn: &Connection) {
    let without_waiting = || -> rusqlite::Result<()> {
        conn.busy_timeout(Duration::ZERO)?;
        conn.prepare_cached("PRAGMA wal_checkpoint(TRUNCATE)")?
            .query_row([], |_| Ok(()))
    };
    let done = without_waiting();
    let restored = conn.busy_timeout(BUSY_TIMEOUT);
    if done.and(restored).is_err() {
        // See keep_short.
    }
}
