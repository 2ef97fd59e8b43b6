//! Which session wrote which file.

use super::StoreError;
use crate::id::SessionId;
use crate::time::Timestamp;
use crate::write_conflict::{FileStamp, FileWrite, Tree};

/// Rows of a transaction.
pub trait WriteRows {
    /// Who wrote a file, and when last.
    fn writers(&mut self, path: &str) -> Result<Vec<FileWrite>, StoreError>;

    /// The files that a session wrote, the newest first; at most `limit`, zero means all.
    fn writes_of(&mut self, session: SessionId, limit: usize)
    -> Result<Vec<FileWrite>, StoreError>;

    /// The files that these sessions wrote at this time or later, in one look.
    fn writes_since(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<FileWrite>, StoreError>;

    /// Keeps that a session writes a file; an earlier time of the same file is replaced.
    fn note_write(&mut self, write: &FileWrite) -> Result<(), StoreError>;

    /// Keeps what a file is that a session wrote; a file that it did not write changes nothing.
    fn stamp_write(
        &mut self,
        session: SessionId,
        path: &str,
        stamp: Option<FileStamp>,
    ) -> Result<(), StoreError>;

    /// Drops what a session wrote before a time.
    fn forget_writes(&mut self, session: SessionId, before: Timestamp) -> Result<(), StoreError>;

    /// What a session's worktree was when it last wrote there.
    fn tree_of(&mut self, session: SessionId) -> Result<Option<Tree>, StoreError>;

    /// Keeps what a session's worktree is, in the place of what it was.
    fn set_tree(&mut self, session: SessionId, tree: &Tree) -> Result<(), StoreError>;
}
