//! What stands between a free key and its grant.

use tenure_core::claim::{ClaimRecord, Former, Hold};
use tenure_core::process::Survivors;
use tenure_core::session::Session;

/// An overlapping hold of a session that is gone.
pub(super) type Rival = (Hold, Session, Former);

/// What must happen before a key is granted.
pub(super) struct Steps {
    pub(super) record: ClaimRecord,
    /// The holder that is gone, and its hold is still open.
    pub(super) holder: Option<(Session, Former)>,
    /// Overlapping holds of sessions that are gone.
    pub(super) rivals: Vec<Rival>,
    /// What the former holder left behind.
    pub(super) survivors: Survivors,
}
