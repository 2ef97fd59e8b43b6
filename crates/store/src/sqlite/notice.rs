//! Notices in rows. One that was delivered keeps its row, with the time, and is never returned again.
//!
//! *Crash*: taking commits with whatever the caller does in the same transaction. *Older version*: a
//! kind of notice that is not known is damage.

use rusqlite::params;
use tenure_core::id::{Epoch, SessionId};
use tenure_core::notice::{Notice, NoticeKind};
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;

use super::handle::SqliteTx;

pub(super) const ANY: &str =
    "SELECT 1 FROM notices WHERE recipient = ?1 AND delivered_at IS NULL LIMIT 1";
pub(super) const WAITING: &str = "SELECT kind, message, key, epoch, sender, at FROM notices \
     WHERE recipient = ?1 AND delivered_at IS NULL ORDER BY id";
pub(super) const DELIVER: &str =
    "UPDATE notices SET delivered_at = ?2 WHERE recipient = ?1 AND delivered_at IS NULL";

pub(super) fn add(tx: &SqliteTx<'_>, notice: &Notice) -> Result<(), StoreError> {
    let sql = "INSERT INTO notices (recipient, kind, message, key, epoch, sender, at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let epoch = notice.epoch.map(|epoch| tx.count("epoch", epoch.0));
    tx.run(
        sql,
        params![
            notice.to.to_string(),
            notice.kind.as_str(),
            notice.message,
            notice.key,
            epoch.transpose()?,
            notice.from.map(|from| from.to_string()),
            notice.at.0,
        ],
    )?;
    Ok(())
}

pub(super) fn any(tx: &SqliteTx<'_>, session: SessionId) -> Result<bool, StoreError> {
    let found = tx.first("notices", ANY, [session.to_string()], |_| Ok(()))?;
    Ok(found.is_some())
}

pub(super) fn take(
    tx: &SqliteTx<'_>,
    session: SessionId,
    at: Timestamp,
) -> Result<Vec<Notice>, StoreError> {
    let waiting = tx.all("notices", WAITING, [session.to_string()], |cells| {
        Ok(Notice {
            to: session,
            kind: cells.parsed(NoticeKind::parse)?,
            message: cells.text()?,
            key: cells.maybe_text()?,
            epoch: cells.maybe_number()?.map(Epoch),
            from: cells.maybe_parsed(SessionId::parse)?,
            at: cells.time()?,
        })
    })?;
    if !waiting.is_empty() {
        tx.run(DELIVER, params![session.to_string(), at.0])?;
    }
    Ok(waiting)
}
