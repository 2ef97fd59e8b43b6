//! Choices that a seed decides, so that a storm can be repeated.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Shown with a failure.
pub fn tell(what: std::fmt::Arguments<'_>) {
    writeln!(std::io::stdout(), "{what}").expect("somebody reads it");
}

pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

/// The seed that is given, else one of the moment.
pub fn seed() -> u64 {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a time")
    };
    number("TENURE_STORM_SEED").unwrap_or_else(|| u64::from(now().subsec_nanos()))
}
