//! Work that one dispatcher at a time does for a store: replies to a forge, and its sweep.
//!
//! A duty is held by a process. It passes to another when that process is proved dead; where it cannot be seen,
//! because it runs on another machine, when it did not renew the duty for [`UNSEEN_FOR`]. Two holders at once would
//! cost a comment that is written twice, nothing else.

use std::time::Duration;

use crate::liveness::Liveness;
use crate::process::Process;
use crate::time::Timestamp;

/// How long a holder that cannot be seen keeps a duty without renewing it.
pub const UNSEEN_FOR: Duration = Duration::from_secs(15 * 60);
/// How often a holder renews it.
pub const RENEWED_EVERY: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duty {
    pub name: String,
    pub holder: Process,
    /// When the holder last renewed it.
    pub renewed_at: Timestamp,
    /// When the last sweep ended that found everything out.
    pub swept_at: Option<Timestamp>,
}

impl Duty {
    /// Whether another process may take it over.
    pub fn is_free(&self, holder: &Liveness, now: Timestamp) -> bool {
        match holder {
            Liveness::Dead(_) => true,
            Liveness::Alive => false,
            _ => self.renewed_at.age_at(now) >= UNSEEN_FOR,
        }
    }
}
