//! Deliveries that arrive faster than they are decided.
//!
//! A decision costs several times as much as storing a delivery. So one that arrives alone is decided at once, and its
//! sender is told the verdict. Several that arrive together are stored first and answered, and decided afterwards in
//! the order of their arrival: when no more arrive, or when the oldest has waited for [`PATIENCE`].
//!
//! *Invariants*: as long as one is undecided, a later one is stored behind it. A burst that never ends delays a decision
//! for a bounded time: from then on more are decided than arrive.

use std::time::Duration;

/// How long a burst may put decisions off.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// If none arrives for this long, the burst is over for now. The senders of a burst need less to send their next ones,
/// also on a busy machine: a decision too early makes all of them wait for it.
pub const PAUSE: Duration = Duration::from_millis(50);
/// How many are decided in one transaction while none arrives. One that arrives meanwhile waits for it.
pub const TOGETHER: usize = 64;
/// How many are decided at least, once they have waited for long.
const AT_LEAST: usize = 16;

/// Whether deliveries that arrived together are stored before they are decided.
pub fn is_stored_first(arrived: usize, is_behind: bool) -> bool {
    is_behind || arrived > 1
}

/// How many are decided during a burst, after so many were stored, where the oldest has waited for this long.
pub fn due(stored: usize, waited: Duration) -> usize {
    if waited < PATIENCE {
        return 0;
    }
    // More than arrive, so that they become fewer.
    stored.saturating_mul(2).clamp(AT_LEAST, TOGETHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_arrives_alone_is_decided_at_once_unless_others_are_undecided() {
        assert!(!is_stored_first(1, false));
        assert!(is_stored_first(1, true));
        assert!(is_stored_first(2, false));
    }

    #[test]
    fn a_burst_puts_decisions_off_for_a_bounded_time_and_then_more_are_decided_than_arrive() {
        let almost = PATIENCE.saturating_sub(Duration::from_millis(1));
        assert_eq!(due(8, almost), 0);
        for stored in 0..=TOGETHER / 2 {
            assert!(due(stored, PATIENCE) > stored);
        }
        assert_eq!(due(usize::MAX, PATIENCE), TOGETHER);
    }
}
