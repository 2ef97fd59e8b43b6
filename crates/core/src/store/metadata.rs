//! Small values kept with a session.

use std::collections::BTreeMap;

use super::StoreError;
use crate::id::SessionId;
use crate::session::MetaKey;

/// Rows of a transaction.
pub trait MetadataRows {
    /// A session's small values.
    fn metadata(&mut self, session: SessionId) -> Result<BTreeMap<MetaKey, String>, StoreError>;

    /// Sets or removes one of a session's small values.
    fn set_metadata(
        &mut self,
        session: SessionId,
        key: &MetaKey,
        value: Option<&str>,
    ) -> Result<(), StoreError>;
}
