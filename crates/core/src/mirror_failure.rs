//! A mirror write that failed.

use serde::Serialize;

use crate::time::Timestamp;

/// A mirror that could not be written, and has not been written since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MirrorFailure {
    pub path: String,
    /// The session that it should show.
    pub session: String,
    /// The error.
    pub why: String,
    pub at: Timestamp,
}
