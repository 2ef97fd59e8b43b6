//! How long an agent stays parked after a usage limit.
//!
//! The end is a wall-clock time: the provider names one, and a parked run keeps its time over a restart, where no
//! steady clock survives. A clock that jumps can end a park early or late, and costs at most one refused attempt.
//! A time in the text of a message is never read: it has no zone and no day.

use std::time::Duration;

use crate::run::progress::Limit;
use crate::time::Timestamp;

/// The first wait if the provider names no time.
pub const FIRST: Duration = Duration::from_secs(30 * 60);
/// The longest such wait.
pub const MAX_TIME: Duration = Duration::from_secs(6 * 60 * 60);
/// A named time that is nearer means nothing: the agent has waited that long by itself.
const NEAREST: Duration = Duration::from_secs(60);
/// A named time that is farther away is in another unit, or wrong. Limits last a month at most.
const FARTHEST: Duration = Duration::from_secs(35 * 24 * 60 * 60);

/// Until when an agent is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParkEnd {
    pub at: Timestamp,
    /// Whether the provider named this time.
    pub named: bool,
}

/// Until when a limit parks an agent that was parked `before` times in a row without a named time.
pub fn until(limit: Limit, before: u32, now: Timestamp) -> ParkEnd {
    let named = limit.resets_at.filter(|at| {
        let wait = now.age_at(*at);
        (NEAREST..=FARTHEST).contains(&wait)
    });
    let at = named.unwrap_or_else(|| later(now, wait(before)));
    ParkEnd {
        at,
        named: named.is_some(),
    }
}

/// The wait after so many unnamed ones: doubled each time, up to the longest.
pub fn wait(before: u32) -> Duration {
    let doubled = 1_u32.checked_shl(before).unwrap_or(u32::MAX);
    FIRST.saturating_mul(doubled).min(MAX_TIME)
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp(now.0.saturating_add(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_794_735_000_000);

    fn parked(resets_in: Option<i64>, before: u32) -> (i64, bool) {
        let resets_at = resets_in.map(|seconds| Timestamp(NOW.0 + seconds * 1000));
        let until = until(Limit { resets_at }, before, NOW);
        ((until.at.0 - NOW.0) / 1000, until.named)
    }

    #[test]
    fn f_r25_a_named_time_is_kept_to_the_second() {
        assert_eq!(parked(Some(7143), 0), (7143, true));
        assert_eq!(parked(Some(7143), 5), (7143, true));
        assert_eq!(parked(Some(7 * 24 * 3600), 0), (7 * 24 * 3600, true));
    }

    #[test]
    fn without_a_time_the_wait_doubles_from_half_an_hour_to_six_hours() {
        let minutes: Vec<i64> = (0..6).map(|before| parked(None, before).0 / 60).collect();
        assert_eq!(minutes, [30, 60, 120, 240, 360, 360]);
        assert_eq!(parked(None, u32::MAX), (6 * 3600, false));
    }

    #[test]
    fn a_time_that_cannot_be_meant_counts_as_none() {
        for odd in [
            i64::MIN / 2000,
            -1,
            0,
            2,
            59,
            36 * 24 * 3600,
            i64::MAX / 2000,
        ] {
            let resets_at = Some(Timestamp(NOW.0.saturating_add(odd.saturating_mul(1000))));
            let until = until(Limit { resets_at }, 1, NOW);
            assert!(!until.named, "{odd}");
            assert_eq!(until.at.0 - NOW.0, 3_600_000, "{odd}");
        }
    }
}
