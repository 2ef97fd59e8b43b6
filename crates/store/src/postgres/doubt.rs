//! Doubts in rows: which holders a caller in a sandbox could not check, for its agent outside.

use tenure_core::id::{Life, SessionId, SessionToken};
use tenure_core::store::{DoubtRows, StoreError};

use super::handle::PostgresTx;
use super::value::params;

const TAKE: &str = "DELETE FROM doubts WHERE asker = $1 RETURNING holder, life";

pub(super) const ANY: &str = "SELECT 1 FROM doubts WHERE asker = $1 LIMIT 1";

impl DoubtRows for PostgresTx<'_> {
    fn add_doubt(&mut self, asker: SessionId, holder: SessionToken) -> Result<(), StoreError> {
        let sql = "INSERT INTO doubts (asker, holder, life) VALUES ($1, $2, $3) \
             ON CONFLICT (asker, holder, life) DO NOTHING";
        let row = params![asker.to_string(), holder.id.to_string(), holder.life.0];
        self.later(sql, row);
        Ok(())
    }

    fn has_doubts(&mut self, asker: SessionId) -> Result<bool, StoreError> {
        let found = self.first("doubts", ANY, params![asker.to_string()], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn take_doubts(&mut self, asker: SessionId) -> Result<Vec<SessionToken>, StoreError> {
        let mut taken = self.change_all("doubts", TAKE, params![asker.to_string()], |cells| {
            Ok(SessionToken {
                id: cells.parsed(SessionId::parse)?,
                life: Life(cells.number()?),
            })
        })?;
        taken.sort_by_key(|holder| (holder.id, holder.life));
        Ok(taken)
    }
}
