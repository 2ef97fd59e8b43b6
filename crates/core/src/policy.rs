//! The times that matter where nobody can prove anything.

use std::time::Duration;

/// The times that decide where nobody can prove anything, in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long a session counts as living where nobody can tell.
    pub lease: Duration,
    /// How much longer its claims stay its own after that.
    pub lock_delay: Duration,
    /// After how much silence in one turn a session is shown as stalled.
    pub stalled_after: Duration,
    /// For how long another session is told that a file was written.
    pub recent_writes: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10 * 60),
            lock_delay: Duration::from_secs(15),
            stalled_after: Duration::from_secs(15 * 60),
            recent_writes: Duration::from_secs(60 * 60),
        }
    }
}

impl Policy {
    /// The longest silence that a session may declare.
    pub const LONGEST_SILENCE: Duration = Duration::from_secs(4 * 3600);

    /// How old a heartbeat may get before another is written.
    pub fn beat_every(&self) -> Duration {
        Duration::from_secs(10).min(self.lease / 4)
    }
}
