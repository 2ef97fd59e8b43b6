//! Deliveries that arrive faster than they are decided.
//!
//! Each is stored before it is decided, and a decision costs several times as much as storing a delivery. One that arrives
//! alone is decided at once, and its sender is told the verdict. Several that arrive together are answered when they are
//! stored, and decided in the order of their arrival: when no more arrive, or when the oldest has waited for [`PATIENCE`].
//!
//! *Invariants*: a burst that never ends delays a decision for a bounded time: from then on more are decided than arrive.
//! One whose forge does not answer delays no other, and is asked about until its forge answers.

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

/// How long the sender of one that arrived alone waits for the verdict. Forges wait for 5 s or more.
pub const SENDER_WAITS: Duration = Duration::from_secs(3);
/// A question that is asked later than this may get an answer about a newer commit than the author saw.
pub const LATE: Duration = Duration::from_secs(10);
/// How often a forge that does not answer is asked again at the latest.
pub const ASKED_EVERY: Duration = Duration::from_secs(300);

/// How long a forge is left alone that did not answer this often in a row: 1 s, doubling to [`ASKED_EVERY`].
pub fn ask_again_after(failures: u32) -> Duration {
    let seconds = 1_u64 << failures.saturating_sub(1).min(16);
    Duration::from_secs(seconds).min(ASKED_EVERY)
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
    fn a_forge_that_does_not_answer_is_asked_without_end_and_every_five_minutes_at_the_latest() {
        assert_eq!(ask_again_after(1), Duration::from_secs(1));
        for failures in 1..1000 {
            let (one, next) = (ask_again_after(failures), ask_again_after(failures + 1));
            assert!(one <= next && next <= ASKED_EVERY);
        }
        assert_eq!(ask_again_after(1000), ASKED_EVERY);
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
