//! Files that sessions wrote, and what their worktrees were then, in rows.
//!
//! One row for a session and a file: a second write of it replaces the time. Old rows are dropped as new
//! ones come, so the table stays as small as what was written lately.

use rusqlite::params;
use tenure_core::id::SessionId;
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;
use tenure_core::trample::{FileStamp, FileWrite, Tree};

use super::handle::{SqliteTx, limit_or_all};
use super::row::Cells;

pub(super) const WRITERS: &str =
    "SELECT path, session, at, size, modified FROM writes WHERE path = ?1";

pub(super) const OF: &str = "SELECT path, session, at, size, modified FROM writes \
     WHERE session = ?1 ORDER BY at DESC, path LIMIT ?2";

pub(super) const TREE: &str = "SELECT root, head, branch, at FROM trees WHERE session = ?1";

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

pub(super) fn writers(tx: &SqliteTx<'_>, path: &str) -> Result<Vec<FileWrite>, StoreError> {
    tx.all("writes", WRITERS, [path], read)
}

pub(super) fn of(
    tx: &SqliteTx<'_>,
    session: SessionId,
    limit: usize,
) -> Result<Vec<FileWrite>, StoreError> {
    let row = params![session.to_string(), limit_or_all(limit)];
    tx.all("writes", OF, row, read)
}

pub(super) fn note(tx: &SqliteTx<'_>, write: &FileWrite) -> Result<(), StoreError> {
    let sql = "INSERT INTO writes (path, session, at, size, modified) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (path, session) DO UPDATE SET at = excluded.at, size = excluded.size, \
         modified = excluded.modified";
    let (size, modified) = cells_of(write.stamp);
    let row = params![
        write.path,
        write.session.to_string(),
        write.at.0,
        size,
        modified
    ];
    tx.run(sql, row).map(|_| ())
}

fn cells_of(stamp: Option<FileStamp>) -> (Option<i64>, Option<i64>) {
    let size = stamp.map(|stamp| stamp.size.cast_signed());
    (size, stamp.map(|stamp| stamp.modified))
}

pub(super) fn stamp(
    tx: &SqliteTx<'_>,
    session: SessionId,
    path: &str,
    stamp: Option<FileStamp>,
) -> Result<(), StoreError> {
    let sql = "UPDATE writes SET size = ?3, modified = ?4 WHERE path = ?1 AND session = ?2";
    let (size, modified) = cells_of(stamp);
    tx.run(sql, params![path, session.to_string(), size, modified])
        .map(|_| ())
}

pub(super) fn forget(
    tx: &SqliteTx<'_>,
    session: SessionId,
    before: Timestamp,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM writes WHERE session = ?1 AND at < ?2";
    tx.run(sql, params![session.to_string(), before.0])
        .map(|_| ())
}

pub(super) fn tree(tx: &SqliteTx<'_>, session: SessionId) -> Result<Option<Tree>, StoreError> {
    tx.first("trees", TREE, [session.to_string()], |cells| {
        Ok(Tree {
            root: cells.text()?,
            head: cells.maybe_text()?,
            branch: cells.maybe_text()?,
            at: cells.time()?,
        })
    })
}

pub(super) fn set_tree(
    tx: &SqliteTx<'_>,
    session: SessionId,
    tree: &Tree,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO trees (session, root, head, branch, at) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (session) DO UPDATE SET root = excluded.root, head = excluded.head, \
         branch = excluded.branch, at = excluded.at";
    let row = params![
        session.to_string(),
        tree.root,
        tree.head,
        tree.branch,
        tree.at.0
    ];
    tx.run(sql, row).map(|_| ())
}
