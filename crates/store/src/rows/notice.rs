//! Notices in rows. A delivered notice keeps its row, with the time, and is never returned again.
//!
//! The life in which hooks reach a session's model is in the session's row, and does not count as a change of it.
//! *Crash*: a notice whose delivery was not committed is delivered again. *Clock jump*: notices are in the order of
//! their numbers. *Older version*: an unknown kind of notice is damage.

use tenure_core::id::{Epoch, SessionId, SessionToken};
use tenure_core::key::Key;
use tenure_core::notice::{Notice, NoticeId, NoticeKind, Pending};
use tenure_core::store::{NoticeRows, StoreError};
use tenure_core::time::Timestamp;
use tenure_core::woken::WakeSender;

use super::claim::key_list;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::{Value, limit_or_all, params};

columns! { $
    NoticeRow of "notices" by select_notices { id, kind, message, key, epoch, sender, at, wakes, woke_at }
}

pub(crate) const ANY: &str =
    "SELECT recipient FROM notices WHERE recipient = ?1 AND delivered_at IS NULL LIMIT 1";
/// Adds a notice with these [`values`].
pub const ADD: &str = "INSERT INTO notices (recipient, kind, message, key, epoch, sender, at, wakes) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const WAITING: &str = select_notices!(
    "WHERE recipient = ?1 AND delivered_at IS NULL ORDER BY kind = 'lost' DESC, id LIMIT ?2"
);
const COUNT: &str = "SELECT count(*) FROM notices WHERE recipient = ?1 AND delivered_at IS NULL";
const LOST: &str = "SELECT DISTINCT key FROM notices WHERE recipient = ?1 AND delivered_at IS NULL \
     AND kind = 'lost' AND key IN (SELECT value FROM json_each(?2))";
const DELIVER: &str = "UPDATE notices SET delivered_at = ?3 \
     WHERE recipient = ?1 AND delivered_at IS NULL AND id IN (SELECT value FROM json_each(?2))";
const TAKE: &str = "UPDATE notices SET woke_at = ?3 \
     WHERE recipient = ?1 AND delivered_at IS NULL AND id IN (SELECT value FROM json_each(?2))";
const NOTE_CHANNEL: &str = "UPDATE sessions SET model_life = ?2 \
     WHERE id = ?1 AND (model_life IS NULL OR model_life <> ?2)";
const CHANNEL: &str = "SELECT id FROM sessions WHERE id = ?1 AND model_life = ?2";

/// What [`ADD`] stores of a notice. A transaction that decides about an earlier commit adds one too.
pub fn values(notice: &Notice, epoch: Option<i64>) -> [Value<'_>; 8] {
    params![
        notice.to.to_string(),
        notice.kind.as_str(),
        &notice.message,
        &notice.key,
        epoch,
        notice.from.map(|from| from.to_string()),
        notice.at.0,
        notice.wakes.map(WakeSender::as_str),
    ]
}

impl<E: Engine> NoticeRows for Rows<E> {
    fn add_notice(&mut self, notice: &Notice) -> Result<(), StoreError> {
        let epoch = notice.epoch.map(|epoch| self.count("epoch", epoch.0));
        let row = values(notice, epoch.transpose()?);
        self.engine.execute_later(ADD, &row)
    }

    fn has_notices(&mut self, session: SessionId) -> Result<bool, StoreError> {
        let session = &params![session.to_string()];
        let found = self.first("notices", ANY, session, |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn pending_notices(&mut self, session: SessionId, limit: usize) -> Result<Pending, StoreError> {
        let waiting = &params![session.to_string(), limit_or_all(limit)];
        let first = self.all("notices", WAITING, waiting, |cells| {
            let row = NoticeRow::read(cells);
            Ok(Notice {
                id: Some(NoticeId(row.id.number()?)),
                to: session,
                kind: row.kind.parsed(NoticeKind::parse)?,
                message: row.message.text()?,
                key: row.key.maybe_text()?,
                epoch: row.epoch.maybe_number()?.map(Epoch),
                from: row.sender.maybe_parsed(SessionId::parse)?,
                at: row.at.time()?,
                wakes: row.wakes.maybe_parsed(WakeSender::parse)?,
                woke_at: row.woke_at.maybe_time()?,
            })
        })?;
        let all = self.counted("notices", COUNT, &params![session.to_string()])?;
        Ok(Pending {
            more: all.saturating_sub(first.len()),
            first,
        })
    }

    fn losses_told(&mut self, session: SessionId, keys: &[Key]) -> Result<Vec<Key>, StoreError> {
        let lost = &params![session.to_string(), key_list(keys)];
        self.all("notices", LOST, lost, |cells| cells.parsed(Key::stored))
    }

    fn mark_delivered(
        &mut self,
        session: SessionId,
        told: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let ids: Vec<i64> = told.iter().map(|id| id.0.cast_signed()).collect();
        let told = &params![session.to_string(), ids, at.0];
        self.engine.execute_later(DELIVER, told)
    }

    fn take_to_wake(
        &mut self,
        session: SessionId,
        taken: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let ids: Vec<i64> = taken.iter().map(|id| id.0.cast_signed()).collect();
        let taken = &params![session.to_string(), ids, at.0];
        self.engine.execute_later(TAKE, taken)
    }

    fn note_model_channel(&mut self, session: SessionToken) -> Result<(), StoreError> {
        let life = &params![session.id.to_string(), session.life.0];
        self.engine.execute_later(NOTE_CHANNEL, life)
    }

    fn has_model_channel(&mut self, session: SessionToken) -> Result<bool, StoreError> {
        let life = &params![session.id.to_string(), session.life.0];
        let found = self.first("sessions", CHANNEL, life, |_| Ok(()))?;
        Ok(found.is_some())
    }
}
