//! Notices: what a session must be told at its next call or hook, once.

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, SessionId};
use crate::time::Timestamp;

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A claim was taken from the session.
    Lost,
    /// A claim was handed to the session.
    Handed,
    /// Another process is in the session's conversation.
    Twin,
    /// Somebody told it something.
    Told,
    /// A tool that it used was under another session's feet.
    Warned,
}

impl NoticeKind {
    /// The name that the store and the JSON write.
    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::Lost => "lost",
            NoticeKind::Handed => "handed",
            NoticeKind::Twin => "twin",
            NoticeKind::Told => "told",
            NoticeKind::Warned => "warned",
        }
    }

    /// Reads what [`NoticeKind::as_str`] wrote.
    pub fn parse(text: &str) -> Result<Self, crate::id::Malformed> {
        match text {
            "lost" => Ok(NoticeKind::Lost),
            "handed" => Ok(NoticeKind::Handed),
            "twin" => Ok(NoticeKind::Twin),
            "told" => Ok(NoticeKind::Told),
            "warned" => Ok(NoticeKind::Warned),
            _ => Err(crate::id::Malformed::new(
                "notice",
                text,
                "expected lost, handed, twin, told or warned",
            )),
        }
    }
}

/// Something that a session must be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Whom to tell.
    pub to: SessionId,
    /// What it is about.
    pub kind: NoticeKind,
    /// The sentence to tell.
    pub message: String,
    /// The claim key that it is about.
    pub key: Option<String>,
    /// The epoch that the key has now.
    pub epoch: Option<Epoch>,
    /// The session that caused it.
    pub from: Option<SessionId>,
    /// When it was recorded.
    pub at: Timestamp,
}
