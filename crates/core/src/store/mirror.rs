//! Mirrors that could not be written.

use super::StoreError;
use crate::mirror_failure::MirrorFailure;

/// Rows of a transaction.
pub trait MirrorRows {
    /// Mirrors that could not be written and have not been written since.
    fn mirror_failures(&mut self) -> Result<Vec<MirrorFailure>, StoreError>;

    /// Keeps that a mirror could not be written, in the place of an earlier failure of the same path.
    fn set_mirror_failure(&mut self, failure: &MirrorFailure) -> Result<(), StoreError>;

    /// Forgets the failure of a mirror that was written again.
    fn clear_mirror_failure(&mut self, path: &str) -> Result<(), StoreError>;
}
