//! A session's metadata values in rows. Core limits their number and length.

use std::collections::BTreeMap;

use tenure_core::id::SessionId;
use tenure_core::session::MetaKey;
use tenure_core::store::{MetadataRows, StoreError};

use super::handle::PostgresTx;
use super::value::params;

const OF: &str = "SELECT key, value FROM metadata WHERE session = $1";

impl MetadataRows for PostgresTx<'_> {
    fn metadata(&mut self, session: SessionId) -> Result<BTreeMap<MetaKey, String>, StoreError> {
        let pairs = self.all("metadata", OF, params![session.to_string()], |cells| {
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
        let changed = match value {
            Some(value) => self.run(
                "INSERT INTO metadata (session, key, value) VALUES ($1, $2, $3) \
                 ON CONFLICT (session, key) DO UPDATE SET value = excluded.value",
                params![session, key.as_str(), value],
            ),
            None => self.run(
                "DELETE FROM metadata WHERE session = $1 AND key = $2",
                params![session, key.as_str()],
            ),
        };
        changed.map(|_| ())
    }
}
