//! Doubts in rows: which holders a caller in a sandbox could not check, for its agent outside.
//!
//! *Crash*: doubts that were not taken in a commit are there for the next one. *Clock jump*: there are no times. *Older
//! version*: see the schema.

use tenure_core::id::{Life, SessionId, SessionToken};
use tenure_core::store::{DoubtRows, StoreError};

use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    DoubtRow of "doubts" by select_doubts { asker, holder, life }
}

pub(crate) const ANY: &str = "SELECT asker FROM doubts WHERE asker = ?1 LIMIT 1";
const TAKE: &str = "DELETE FROM doubts WHERE asker = ?1 RETURNING holder, life";

impl<E: Engine> DoubtRows for Rows<E> {
    fn add_doubt(&mut self, asker: SessionId, holder: SessionToken) -> Result<(), StoreError> {
        let row = DoubtRow {
            asker: asker.to_string().into(),
            holder: holder.id.to_string().into(),
            life: holder.life.0.into(),
        };
        self.engine.execute_later(DoubtRow::INSERT, &row.values())
    }

    fn has_doubts(&mut self, asker: SessionId) -> Result<bool, StoreError> {
        let found = self.first("doubts", ANY, &params![asker.to_string()], |_| Ok(()))?;
        Ok(found.is_some())
    }

    fn take_doubts(&mut self, asker: SessionId) -> Result<Vec<SessionToken>, StoreError> {
        let mut taken = self.changed("doubts", TAKE, &params![asker.to_string()], |cells| {
            Ok(SessionToken {
                id: cells.parsed(SessionId::parse)?,
                life: Life(cells.number()?),
            })
        })?;
        taken.sort_by_key(|holder| (holder.id, holder.life));
        Ok(taken)
    }
}
