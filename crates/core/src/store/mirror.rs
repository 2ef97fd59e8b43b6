//! Mirrors that could not be written.

use super::StoreError;
use crate::mirror_failure::MirrorFailure;

pub trait MirrorRows {
    /// Mirrors whose last write failed.
    fn mirror_failures(&mut self) -> Result<Vec<MirrorFailure>, StoreError>;

    /// Records a failed write, replacing an earlier failure for the same path.
    fn set_mirror_failure(&mut self, failure: &MirrorFailure) -> Result<(), StoreError>;

    /// Removes the failure of a mirror that was written again.
    fn clear_mirror_failure(&mut self, path: &str) -> Result<(), StoreError>;
}
