//! The files of an open database: the database itself, its log, its wake files.
//!
//! A connection keeps using its file whatever happens to the file's name. A process in a file that others can
//! no longer reach would be granted what another process is granted in the new one. So the file at the path is
//! compared with the opened one: when a transaction begins, when a watcher asks for changes, and before a
//! commit is acknowledged. The path is the original one, so a symbolic link on the way that now points
//! elsewhere is noticed too.
//!
//! *Crash*: nothing is written here. *Clock jump*: no clock is read. *Older version*: does not compare.

use std::path::{Path, PathBuf};

use tenure_core::store::StoreError;

use super::header::{Inode, OpenCount, inode_at};
use super::log::Log;
use super::mark::MarkFile;
use super::wake_files::WakeFiles;

/// What belongs to an open database file.
#[derive(Debug)]
pub(super) struct Attached {
    path: PathBuf,
    inode: Inode,
    /// The database file itself, without links.
    pub(super) file: PathBuf,
    pub(super) log: Log,
    /// The log that the connection uses, which must keep its name.
    log_inode: Option<(u64, u64)>,
    pub(super) mark: MarkFile,
    pub(super) wake_files: WakeFiles,
}

impl Attached {
    /// The files of the database `file`, which was opened as `path`.
    pub(super) fn to(path: &Path, file: &Path, opened: &OpenCount, mark: MarkFile) -> Self {
        let log = Log::of(file);
        Self {
            path: path.to_owned(),
            inode: opened.inode(),
            file: file.to_owned(),
            log_inode: log.inode(),
            log,
            mark,
            wake_files: WakeFiles::of(file),
        }
    }

    /// The log must stay the one that the connection opened: what is written to a removed log is lost with the
    /// last process that has it open.
    pub(super) fn check_log(&self, store: &str) -> Result<(), StoreError> {
        if self.log.inode() == self.log_inode {
            return Ok(());
        }
        Err(StoreError::LogLost {
            store: store.to_owned(),
            log: self.log.path().display().to_string(),
            how: "was removed or replaced while it was in use".to_owned(),
        })
    }

    /// Whether the path still leads to the opened file.
    pub(super) fn is_there(&self) -> bool {
        inode_at(&self.path).is_ok_and(|inode| inode == self.inode)
    }

    /// The same, as an error.
    pub(super) fn check(&self, store: &str) -> Result<(), StoreError> {
        if self.is_there() {
            Ok(())
        } else {
            Err(StoreError::Replaced {
                store: store.to_owned(),
            })
        }
    }
}
