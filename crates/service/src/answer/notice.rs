//! The view of a notice.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::notice::{Notice, NoticeKind};
use tenure_core::time::Timestamp;

/// A message for the caller, delivered at least once.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NoticeView {
    /// Its number. A notice that was delivered before has the same number again.
    pub id: Option<u64>,
    pub kind: NoticeKind,
    pub message: String,
    /// The claim key that it is about.
    pub key: Option<String>,
    /// The key's current epoch.
    pub epoch: Option<u64>,
    /// The session that caused it.
    pub from: Option<String>,
    /// When it was recorded.
    pub at: Timestamp,
}

impl From<&Notice> for NoticeView {
    fn from(notice: &Notice) -> Self {
        Self {
            id: notice.id.map(|id| id.0),
            kind: notice.kind,
            message: notice.message.clone(),
            key: notice.key.clone(),
            epoch: notice.epoch.map(|epoch| epoch.0),
            from: notice.from.map(|id| id.to_string()),
            at: notice.at,
        }
    }
}
