//! Notices in rows. A delivered notice keeps its row, with the time, and is never returned again.
//!
//! *Crash*: a notice whose delivery was not committed is delivered again. *Older version*: an
//! unknown kind of notice is damage.

use tenure_core::id::{Epoch, SessionId, SessionToken};
use tenure_core::key::Key;
use tenure_core::notice::{Notice, NoticeId, NoticeKind, Pending};
use tenure_core::store::{NoticeRows, StoreError};
use tenure_core::time::Timestamp;

use super::claim::key_list;
use super::handle::{PostgresTx, limit_or_all};
use super::new_notice;
use super::value::params;

pub(super) const ANY: &str =
    "SELECT 1 FROM notices WHERE recipient = $1 AND delivered_at IS NULL LIMIT 1";
const WAITING: &str = "SELECT id, kind, message, key, epoch, sender, at FROM notices \
     WHERE recipient = $1 AND delivered_at IS NULL ORDER BY kind = 'lost' DESC, id LIMIT $2";
const LOST: &str = "SELECT DISTINCT key FROM notices \
     WHERE recipient = $1 AND delivered_at IS NULL AND kind = 'lost' AND key = ANY($2)";
const COUNT: &str = "SELECT count(*) FROM notices WHERE recipient = $1 AND delivered_at IS NULL";
const DELIVER: &str = "UPDATE notices SET delivered_at = $3 \
     WHERE recipient = $1 AND delivered_at IS NULL AND id = ANY($2)";
const CHANNEL: &str = "SELECT 1 FROM model_channels WHERE session = $1 AND life = $2";

impl NoticeRows for PostgresTx<'_> {
    fn add_notice(&mut self, notice: &Notice) -> Result<(), StoreError> {
        let epoch = notice.epoch.map(|epoch| self.count("epoch", epoch.0));
        let epoch = epoch.transpose()?;
        self.push(new_notice::insert(notice, epoch));
        Ok(())
    }

    fn has_notices(&mut self, session: SessionId) -> Result<bool, StoreError> {
        let found = self.first("notices", ANY, params![session.to_string()], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn pending_notices(&mut self, session: SessionId, limit: usize) -> Result<Pending, StoreError> {
        let row = params![session.to_string(), limit_or_all(limit)];
        let first = self.all("notices", WAITING, row, |cells| {
            Ok(Notice {
                id: Some(NoticeId(cells.number()?)),
                to: session,
                kind: cells.parsed(NoticeKind::parse)?,
                message: cells.text()?,
                key: cells.maybe_text()?,
                epoch: cells.maybe_number()?.map(Epoch),
                from: cells.maybe_parsed(SessionId::parse)?,
                at: cells.time()?,
            })
        })?;
        let count = self.first("notices", COUNT, params![session.to_string()], |cells| {
            cells.number::<u64>()
        })?;
        let all = usize::try_from(count.unwrap_or_default()).unwrap_or(usize::MAX);
        Ok(Pending {
            more: all.saturating_sub(first.len()),
            first,
        })
    }

    fn losses_told(&mut self, session: SessionId, keys: &[Key]) -> Result<Vec<Key>, StoreError> {
        let row = params![session.to_string(), key_list(keys)];
        self.all("notices", LOST, row, |cells| cells.parsed(Key::stored))
    }

    fn mark_delivered(
        &mut self,
        session: SessionId,
        told: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let ids: Vec<i64> = told.iter().map(|id| id.0.cast_signed()).collect();
        self.later(DELIVER, params![session.to_string(), ids, at.0]);
        Ok(())
    }

    fn note_model_channel(&mut self, session: SessionToken) -> Result<(), StoreError> {
        let sql = "INSERT INTO model_channels (session, life) VALUES ($1, $2) \
             ON CONFLICT (session) DO UPDATE SET life = excluded.life";
        self.later(sql, params![session.id.to_string(), session.life.0]);
        Ok(())
    }

    fn has_model_channel(&mut self, session: SessionToken) -> Result<bool, StoreError> {
        let row = params![session.id.to_string(), session.life.0];
        let found = self.first("model_channels", CHANNEL, row, |_| Ok(()))?;
        Ok(found.is_some())
    }
}
