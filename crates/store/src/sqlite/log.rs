//! The write-ahead log, kept short by checkpoints of our own.
//!
//! Hooks are processes that open, write one row and exit. What SQLite knows of a checkpoint is in shared
//! memory and goes with the last of them: after its own automatic checkpoint the next process finds the
//! whole log again, copies it again, and appends. So a log that has grown is copied *and cut off*, in one
//! go, by whoever committed last: at 128 pages after a write and at 160 after a heartbeat, which
//! therefore rarely pays for it. Each page that is found again costs every hook about a microsecond.
//!
//! Nobody waits for a checkpoint. Where another process reads or writes just then, as much as possible is
//! copied, and either the next writer begins the log anew or the next commit tries again.
//!
//! *Crash*: what is copied stays in the log until all of it is on the disk. *Clock jump*: no clock is
//! read. *Older version*: any version may cut the log of any other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{BUSY_TIMEOUT, Durability};

/// What a page costs in the log.
const FRAME_BYTES: u64 = 4096 + 24;

/// The log of one database.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
}

impl Log {
    /// The log beside a database.
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

    /// How long its file is; zero where there is none.
    pub(super) fn bytes(&self) -> u64 {
        fs_err::symlink_metadata(&self.path).map_or(0, |meta| meta.len())
    }

    /// Which file it is; none where there is none.
    pub(super) fn inode(&self) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let found = fs_err::symlink_metadata(&self.path).ok()?;
        Some((found.dev(), found.ino()))
    }

    /// Brings the log into the database and cuts it off, if it has grown; called after a commit.
    ///
    /// A failure costs nothing but a longer log: what was committed is in it, and the next commit tries
    /// again, so none is reported.
    pub(super) fn keep_short(&self, conn: &Connection, durability: Durability) {
        let most = match durability {
            Durability::Full => 128,
            Durability::Order => 160,
        };
        // The file may be longer than what is in use of it, never shorter.
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
