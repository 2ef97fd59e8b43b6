//! How long to wait before another attempt after a lost race.
//!
//! The first attempts follow at once, because the faster caller is done. Then the waits double, up to a limit,
//! and each is drawn at random from its upper half, so callers that lost together do not collide again.

use std::time::Duration;

/// How many attempts follow at once.
const AT_ONCE: u32 = 2;
const SHORTEST: Duration = Duration::from_millis(1);
const MAX_TIME: Duration = Duration::from_millis(16);

/// The wait after the `lost`th race, counted from one; `random` is drawn again for each.
pub fn after(lost: u32, random: u16) -> Duration {
    if lost <= AT_ONCE {
        return Duration::ZERO;
    }
    let doubled = 1_u32 << (lost - AT_ONCE - 1).min(16);
    let most = (SHORTEST * doubled).min(MAX_TIME);
    most / 2 + most / 2 * u32::from(random) / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_are_spread() {
        assert_eq!(after(1, u16::MAX), Duration::ZERO);
        assert_eq!(after(AT_ONCE, u16::MAX), Duration::ZERO);
        let mut before = Duration::ZERO;
        for lost in AT_ONCE + 1..300 {
            let (least, most) = (after(lost, 0), after(lost, u16::MAX));
            assert_eq!(least * 2, most);
            assert!(before <= most && most <= MAX_TIME, "race {lost}: {most:?}");
            before = most;
        }
        assert_eq!(before, MAX_TIME);
    }
}
