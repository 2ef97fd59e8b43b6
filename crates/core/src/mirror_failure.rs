//! What is kept of a mirror that could not be written.

use serde::Serialize;

use crate::time::Timestamp;

/// A mirror that could not be written, and has not been written since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MirrorFailure {
    /// The file.
    pub path: String,
    /// The session that it should show.
    pub session: String,
    /// What stood in the way.
    pub why: String,
    pub at: Timestamp,
}
