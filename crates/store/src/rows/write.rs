//! Files that sessions wrote, and the state of their worktrees then, in rows.
//!
//! One row per session and file: a second write replaces the time. Old rows are removed when new ones are added, so the
//! table contains only recent writes. The state of a worktree is in the session's row, and does not count as a change
//! of it. *Crash*: a write is recorded completely or not at all. *Clock jump*: a write may seem older or newer than it
//! is; core only warns because of it. *Older version*: see the schema.

use tenure_core::id::SessionId;
use tenure_core::store::{StoreError, WriteRows};
use tenure_core::time::Timestamp;
use tenure_core::write_conflict::{FileStamp, FileWrite, Tree};

use super::session::id_list;
use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{limit_or_all, params};

columns! { $
    WriteRow of "writes" by select_writes { path, session, at, size, modified }
}

const WRITERS: &str = select_writes!("WHERE path = ?1");
const BELOW: &str =
    "SELECT path FROM writes WHERE path >= ?1 AND path < ?2 ORDER BY path LIMIT 1000";
const OF: &str = select_writes!("WHERE session = ?1 ORDER BY at DESC, path LIMIT ?2");
const SINCE: &str = concat!(
    "SELECT ",
    select_writes!(columns "w."),
    " FROM json_each(?1) CROSS JOIN writes w INDEXED BY writes_session \
     ON w.session = json_each.value WHERE w.at >= ?2 ORDER BY w.path, w.session"
);
const NOTE: &str = "INSERT INTO writes (path, session, at, size, modified) \
     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (path, session) DO UPDATE SET at = excluded.at, \
     size = excluded.size, modified = excluded.modified";
const STAMP: &str = "UPDATE writes SET size = ?3, modified = ?4 WHERE path = ?1 AND session = ?2";
const FORGET: &str = "DELETE FROM writes WHERE session = ?1 AND at < ?2";
const TREE: &str = "SELECT tree_root, tree_head, tree_branch, tree_at FROM sessions \
     WHERE id = ?1 AND tree_root IS NOT NULL";
const SET_TREE: &str = "UPDATE sessions SET tree_root = ?2, tree_head = ?3, tree_branch = ?4, \
     tree_at = ?5 WHERE id = ?1";

fn read(cells: &mut Cells<'_>) -> Result<FileWrite, StoreError> {
    let row = WriteRow::read(cells);
    Ok(FileWrite {
        path: row.path.text()?,
        session: row.session.parsed(SessionId::parse)?,
        at: row.at.time()?,
        stamp: match (row.size.maybe_number()?, row.modified.maybe_number()?) {
            (Some(size), Some(modified)) => Some(FileStamp { size, modified }),
            _ => None,
        },
    })
}

fn size_of(stamp: Option<FileStamp>) -> Option<i64> {
    stamp.map(|stamp| stamp.size.cast_signed())
}

impl<E: Engine> WriteRows for Rows<E> {
    fn writers(&mut self, path: &str) -> Result<Vec<FileWrite>, StoreError> {
        self.all("writes", WRITERS, &params![path], read)
    }

    fn written_below(&mut self, dir: &str) -> Result<Vec<String>, StoreError> {
        // In the order of bytes a zero follows the slash.
        let range = &params![format!("{dir}/"), format!("{dir}0")];
        self.all("writes", BELOW, range, |cells| cells.text())
    }

    fn writes_of(
        &mut self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<FileWrite>, StoreError> {
        let newest = &params![session.to_string(), limit_or_all(limit)];
        self.all("writes", OF, newest, read)
    }

    fn writes_since(
        &mut self,
        sessions: &[SessionId],
        since: Timestamp,
    ) -> Result<Vec<FileWrite>, StoreError> {
        self.all("writes", SINCE, &params![id_list(sessions), since.0], read)
    }

    fn note_write(&mut self, write: &FileWrite) -> Result<(), StoreError> {
        let row = WriteRow {
            path: (&write.path).into(),
            session: write.session.to_string().into(),
            at: write.at.0.into(),
            size: size_of(write.stamp).into(),
            modified: write.stamp.map(|stamp| stamp.modified).into(),
        };
        self.run(NOTE, &row.values())?;
        Ok(())
    }

    fn stamp_write(
        &mut self,
        session: SessionId,
        path: &str,
        stamp: Option<FileStamp>,
    ) -> Result<(), StoreError> {
        self.run(
            STAMP,
            &params![
                path,
                session.to_string(),
                size_of(stamp),
                stamp.map(|stamp| stamp.modified),
            ],
        )?;
        Ok(())
    }

    fn forget_writes(&mut self, session: SessionId, before: Timestamp) -> Result<(), StoreError> {
        self.run(FORGET, &params![session.to_string(), before.0])?;
        Ok(())
    }

    fn tree_of(&mut self, session: SessionId) -> Result<Option<Tree>, StoreError> {
        self.first("sessions", TREE, &params![session.to_string()], |cells| {
            Ok(Tree {
                root: cells.text()?,
                head: cells.maybe_text()?,
                branch: cells.maybe_text()?,
                at: cells.time()?,
            })
        })
    }

    fn set_tree(&mut self, session: SessionId, tree: &Tree) -> Result<(), StoreError> {
        self.run(
            SET_TREE,
            &params![
                session.to_string(),
                &tree.root,
                &tree.head,
                &tree.branch,
                tree.at.0,
            ],
        )?;
        Ok(())
    }
}
