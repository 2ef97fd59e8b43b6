//! Holders that could not be checked from inside a sandbox.

use super::StoreError;
use crate::id::{SessionId, SessionToken};

pub trait DoubtRows {
    /// Records that `asker` could not check whether `holder` is alive.
    fn add_doubt(&mut self, asker: SessionId, holder: SessionToken) -> Result<(), StoreError>;

    /// Whether there are holders that `asker` could not check.
    fn has_doubts(&mut self, asker: SessionId) -> Result<bool, StoreError>;

    /// Takes the holders that `asker` could not check; each is taken once, even by concurrent callers.
    fn take_doubts(&mut self, asker: SessionId) -> Result<Vec<SessionToken>, StoreError>;
}
