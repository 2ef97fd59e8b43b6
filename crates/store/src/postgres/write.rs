//! Files that sessions wrote, and the state of their worktrees then, in rows.
//!
//! One row per session and file: a second write replaces the time. Old rows are removed when new
//! ones are added, so the table contains only recent writes.

use tenure_core::id::SessionId;
use tenure_core::store::{StoreError, WriteRows};
use tenure_core::time::Timestamp;
use tenure_core::write_conflict::{FileStamp, FileWrite, Tree};

use super::handle::{PostgresTx, limit_or_all};
use super::row::Cells;
use super::session::id_list;
use super::value::params;

const WRITERS: &str = "SELECT path, session, at, size, modified FROM writes WHERE path = $1";

const OF: &str = "SELECT path, session, at, size, modified FROM writes \
     WHERE session = $1 ORDER BY at DESC, path LIMIT $2";

const SINCE: &str = "SELECT w.path, w.session, w.at, w.size, w.modified FROM writes w \
     WHERE w.session = ANY($1) AND w.at >= $2 \
     ORDER BY w.path, w.session";

const TREE: &str = "SELECT root, head, branch, at FROM trees WHERE session = $1";

fn read(cells: &mut Cells<'_>) -> Result<FileWrite, StoreError> {
    Ok(FileWrite {
        path: cells.text()?,
        session: cells.parsed(SessionId::parse)?,
        at: cells.time()?,
        stamp: match (cells.maybe_number()?, cells.maybe_number()?) {
            (Some(size), Some(modified)) => Some(FileStamp { size, modified }),
            _ => None,
        },
    })
}

fn cells_of(stamp: Option<FileStamp>) -> (Option<i64>, Option<i64>) {
    let size = stamp.map(|stamp| stamp.size.cast_signed());
    (size, stamp.map(|stamp| stamp.modified))
}

impl WriteRows for PostgresTx<'_> {
    fn writers(&mut self, path: &str) -> Result<Vec<FileWrite>, StoreError> {
        self.all("writes", WRITERS, params![path], read)
    }

    fn writes_of(
        &mut self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FileWrite>, StoreError> {
        let row = params![session.to_string(), limit_or_all(limit)];
        self.all("writes", OF, row, read)
    }

    fn writes_since(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<FileWrite>, StoreError> {
        let row = params![id_list(sessions), since.0];
        self.all("writes", SINCE, row, read)
    }

    fn note_write(&mut self, write: &FileWrite) -> Result<(), StoreError> {
        let sql = "INSERT INTO writes (path, session, at, size, modified) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (path, session) DO UPDATE SET at = excluded.at, size = excluded.size, \
             modified = excluded.modified";
        let (size, modified) = cells_of(write.stamp);
        let row = params![
            &write.path,
            write.session.to_string(),
            write.at.0,
            size,
            modified
        ];
        self.run(sql, row).map(|_| ())
    }

    fn stamp_write(
        &mut self,
        session: SessionId,
        path: &str,
        stamp: Option<FileStamp>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE writes SET size = $3, modified = $4 WHERE path = $1 AND session = $2";
        let (size, modified) = cells_of(stamp);
        self.run(sql, params![path, session.to_string(), size, modified])
            .map(|_| ())
    }

    fn forget_writes(&mut self, session: SessionId, before: Timestamp) -> Result<(), StoreError> {
        let sql = "DELETE FROM writes WHERE session = $1 AND at < $2";
        self.run(sql, params![session.to_string(), before.0])
            .map(|_| ())
    }

    fn tree_of(&mut self, session: SessionId) -> Result<Option<Tree>, StoreError> {
        self.first("trees", TREE, params![session.to_string()], |cells| {
            Ok(Tree {
                root: cells.text()?,
                head: cells.maybe_text()?,
                branch: cells.maybe_text()?,
                at: cells.time()?,
            })
        })
    }

    fn set_tree(&mut self, session: SessionId, tree: &Tree) -> Result<(), StoreError> {
        let sql = "INSERT INTO trees (session, root, head, branch, at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (session) DO UPDATE SET root = excluded.root, head = excluded.head, \
             branch = excluded.branch, at = excluded.at";
        let row = params![
            session.to_string(),
            &tree.root,
            &tree.head,
            &tree.branch,
            tree.at.0
        ];
        self.run(sql, row).map(|_| ())
    }
}
