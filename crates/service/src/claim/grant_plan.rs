//! The steps between a free key and its grant.

use tenure_core::claim::{ClaimRecord, Hold, PreviousHolder};
use tenure_core::process::Survivors;
use tenure_core::session::Session;

/// An overlapping hold of a session that is gone.
pub(super) type Rival = (Hold, Session, PreviousHolder);

/// The steps that must come before a grant.
pub(super) struct GrantPlan {
    pub(super) record: ClaimRecord,
    /// The holder that is gone, if its hold is still open.
    pub(super) holder: Option<(Session, PreviousHolder)>,
    /// Overlapping holds of sessions that are gone.
    pub(super) rivals: Vec<Rival>,
    /// What the previous holder left running.
    pub(super) survivors: Survivors,
}
