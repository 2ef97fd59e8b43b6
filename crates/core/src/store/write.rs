//! Which session wrote which file.

use super::StoreError;
use crate::id::SessionId;
use crate::time::Timestamp;
use crate::write_conflict::{FileStamp, FileWrite, Tree};

pub trait WriteRows {
    /// Who wrote a file, and when last.
    fn writers(&mut self, path: &str) -> Result<Vec<FileWrite>, StoreError>;

    /// The files below a directory that somebody wrote, in order; at most 1,000.
    fn written_below(&mut self, dir: &str) -> Result<Vec<String>, StoreError>;

    /// The files that a session wrote, newest first; at most `limit`, zero means all.
    fn writes_of(&mut self, session: SessionId, limit: usize)
    -> Result<Vec<FileWrite>, StoreError>;

    /// The files that these sessions wrote at this time or later, in one query.
    fn writes_since(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<FileWrite>, StoreError>;

    /// Records that a session writes a file, replacing an earlier time for the same file.
    fn note_write(&mut self, write: &FileWrite) -> Result<(), StoreError>;

    /// Stores the state of a file that a session wrote; changes nothing for a file that it did not write.
    fn stamp_write(
        &mut self,
        session: SessionId,
        path: &str,
        stamp: Option<FileStamp>,
    ) -> Result<(), StoreError>;

    /// Removes what a session wrote before a time.
    fn forget_writes(&mut self, session: SessionId, before: Timestamp) -> Result<(), StoreError>;

    /// The state of a session's worktree when it last wrote there.
    fn tree_of(&mut self, session: SessionId) -> Result<Option<Tree>, StoreError>;

    /// Stores the state of a session's worktree, replacing the previous one.
    fn set_tree(&mut self, session: SessionId, tree: &Tree) -> Result<(), StoreError>;
}
