//! The times that settings can change.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::keeper::Terms;
use crate::line::TURN;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// How long a session is presumed alive when its process can't be checked.
    pub lease: Duration,
    /// How much longer it keeps its claims after that.
    pub lock_delay: Duration,
    /// How long a session may be silent in a turn before it is shown as stalled.
    pub stalled_after: Duration,
    /// How long other sessions are warned that a file was written.
    pub recent_writes: Duration,
    /// How long a machine counts as alive on a store that several machines use, after its keeper's last renewal.
    pub host_lease: Duration,
    /// How long a closed conversation can come back, and the worktree of a closed item stays.
    pub grace: Duration,
    /// The longest wait before another attempt while a remote, a forge or a disk is away.
    pub retry_every: Duration,
    /// How long a waiter may take to act in its turn.
    pub turn: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10 * 60),
            lock_delay: Duration::from_secs(15),
            stalled_after: Duration::from_secs(15 * 60),
            recent_writes: Duration::from_secs(60 * 60),
            host_lease: Duration::from_secs(5 * 60),
            grace: Duration::from_secs(7 * 24 * 3600),
            retry_every: Duration::from_secs(5 * 60),
            turn: TURN,
        }
    }
}

impl Policy {
    /// The same for a store that several machines use: a session whose machine vanished lives as long as the machine,
    /// and the lock delay and a waiter's turn are longer, because messages between machines take longer.
    #[must_use]
    pub fn shared(self) -> Self {
        Self {
            lease: self.lease.min(self.host_lease),
            lock_delay: self.lock_delay * 2,
            turn: TURN * 3,
            ..self
        }
    }

    /// What a keeper and the judges of its machine agree on; `self` is already the policy for a shared store.
    pub fn keeper_terms(&self) -> Terms {
        Terms {
            host_lease: self.host_lease,
            lock_delay: self.lock_delay,
        }
    }

    /// The longest silence that a session can announce.
    pub const MAX_SILENCE: Duration = Duration::from_secs(4 * 3600);

    /// How old a heartbeat may be before another is written.
    pub fn beat_every(&self) -> Duration {
        Duration::from_secs(10).min(self.lease / 4)
    }
}
