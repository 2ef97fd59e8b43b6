//! Giving up on a run that cannot be reached.
//!
//! A run holds its conversation and its directory until its processes are proved dead. On a host that is gone, or in
//! a container that no one sees into, that may never be. Then a person may declare it over, with a reason.

use crate::liveness::Liveness;

/// Whether a run may be given up, by what is seen of its runner and its agent. What is seen to live can be stopped.
pub fn may_abandon(runner: &Liveness, agent: &Liveness) -> bool {
    ![runner, agent].contains(&&Liveness::Alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liveness::{Doubt, Proof};

    #[test]
    fn what_is_seen_to_live_is_stopped_and_not_abandoned() {
        let dead = Liveness::Dead(Proof::Recorded("gone".into()));
        let unknown = Liveness::Unknown(Doubt::Unverified);
        for (one, other) in [(&dead, &unknown), (&unknown, &unknown), (&dead, &dead)] {
            assert!(may_abandon(one, other) && may_abandon(other, one));
            assert!(!may_abandon(one, &Liveness::Alive));
            assert!(!may_abandon(&Liveness::Alive, other));
        }
    }
}
