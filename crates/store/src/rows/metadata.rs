//! A session's metadata values in rows. Core limits their number and length.
//!
//! *Crash*: a value changes completely or not at all. *Clock jump*: there are no times. *Older version*: a key that core
//! does not parse is damage.

use std::collections::BTreeMap;

use tenure_core::id::SessionId;
use tenure_core::session::MetaKey;
use tenure_core::store::{MetadataRows, StoreError};

use crate::engine::{Engine, Rows};
use crate::value::params;

const OF: &str = "SELECT key, value FROM metadata WHERE session = ?1";
const SET: &str = "INSERT INTO metadata (session, key, value) VALUES (?1, ?2, ?3) \
     ON CONFLICT (session, key) DO UPDATE SET value = excluded.value";
const REMOVE: &str = "DELETE FROM metadata WHERE session = ?1 AND key = ?2";

impl<E: Engine> MetadataRows for Rows<E> {
    fn metadata(&mut self, session: SessionId) -> Result<BTreeMap<MetaKey, String>, StoreError> {
        let pairs = self.all("metadata", OF, &params![session.to_string()], |cells| {
            Ok((cells.parsed(MetaKey::parse)?, cells.text()?))
        })?;
        Ok(pairs.into_iter().collect())
    }

    fn set_metadata(
        &mut self,
        session: SessionId,
        key: &MetaKey,
        value: Option<&str>,
    ) -> Result<(), StoreError> {
        let session = session.to_string();
        match value {
            Some(value) => self.run(SET, &params![session, key.as_str(), value])?,
            None => self.run(REMOVE, &params![session, key.as_str()])?,
        };
        Ok(())
    }
}
