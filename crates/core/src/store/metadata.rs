//! Metadata values of sessions.

use std::collections::BTreeMap;

use super::StoreError;
use crate::id::SessionId;
use crate::session::MetaKey;

pub trait MetadataRows {
    /// A session's metadata values.
    fn metadata(&mut self, session: SessionId) -> Result<BTreeMap<MetaKey, String>, StoreError>;

    /// Sets or removes one metadata value of a session.
    fn set_metadata(
        &mut self,
        session: SessionId,
        key: &MetaKey,
        value: Option<&str>,
    ) -> Result<(), StoreError>;
}
