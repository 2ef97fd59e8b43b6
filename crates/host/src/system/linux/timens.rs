//! The offsets that a time namespace adds to the clocks that its processes see.
//!
//! Inside and outside a time namespace, the same process shows different start ticks, and the monotonic clock a
//! different time. Removing the observer's own offsets makes both comparable. A system without the file has no
//! time namespaces, so its offsets are zero.

const NANOS: i128 = 1_000_000_000;

/// What is added, in nanoseconds; zero outside a time namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Offsets {
    /// Added to CLOCK_MONOTONIC.
    pub monotonic: i128,
    /// Added to CLOCK_BOOTTIME, and so to the start of every process.
    pub boottime: i128,
}

impl Offsets {
    /// The boottime offset in clock ticks.
    pub(super) fn boottime_ticks(self, ticks_per_second: u64) -> i128 {
        (self.boottime * i128::from(ticks_per_second)).div_euclid(NANOS)
    }
}

/// Parses `/proc/self/timens_offsets`.
pub(super) fn parse(text: &str) -> Option<Offsets> {
    let mut offsets = Offsets::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let clock = words.next()?;
        let seconds: i64 = words.next()?.parse().ok()?;
        let nanos: i64 = words.next()?.parse().ok()?;
        let total = i128::from(seconds) * NANOS + i128::from(nanos);
        match clock {
            "monotonic" => offsets.monotonic = total,
            "boottime" => offsets.boottime = total,
            _ => {}
        }
    }
    Some(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_l15_offsets_are_read_as_the_kernel_writes_them() {
        let text = "monotonic           5         0\nboottime       -86400 500000000\n";
        let offsets = parse(text).unwrap();
        assert_eq!(offsets.monotonic, 5 * NANOS);
        assert_eq!(offsets.boottime, -86_400 * NANOS + 500_000_000);
        assert_eq!(offsets.boottime_ticks(100), -8_639_950);
    }

    #[test]
    fn what_is_not_understood_is_not_taken_for_zero() {
        assert_eq!(parse("boottime x 0\n"), None);
        assert_eq!(parse("boottime 1\n"), None);
        assert_eq!(parse(""), Some(Offsets::default()));
    }
}
