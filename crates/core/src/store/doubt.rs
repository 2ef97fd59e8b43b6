//! Holders that could not be seen from a sandbox.

use super::StoreError;
use crate::id::{SessionId, SessionToken};

/// Rows of a transaction.
pub trait DoubtRows {
    /// Remembers that `asker` could not see whether `holder` lives.
    fn add_doubt(&mut self, asker: SessionId, holder: SessionToken) -> Result<(), StoreError>;

    /// Whether there are holders that `asker` could not see.
    fn has_doubts(&mut self, asker: SessionId) -> Result<bool, StoreError>;

    /// Takes the holders that `asker` could not see, each once, whoever asks at the same time.
    fn take_doubts(&mut self, asker: SessionId) -> Result<Vec<SessionToken>, StoreError>;
}
