//! Choices decided by a seed: the same seed makes the same requests, whatever the machine does with
//! them.

/// A generator of choices (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The choices of a seed, independent for each stream.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut dice = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number from `from` to `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True this many times out of a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(of.len()).ok().filter(|count| *count > 0)?;
        of.get(usize::try_from(self.below(count)).ok()?)
    }

    pub fn shuffle<T>(&mut self, of: &mut [T]) {
        for end in (1..of.len()).rev() {
            let count = u64::try_from(end + 1).unwrap_or(1);
            of.swap(end, usize::try_from(self.below(count)).unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_and_streams_differ() {
        let run = |seed, stream| {
            let mut dice = Dice::new(seed, stream);
            [dice.below(1000), dice.below(1000), dice.between(5, 9)]
        };
        assert_eq!(run(1, 2), run(1, 2));
        assert_ne!(run(1, 2), run(1, 3));
        assert_ne!(run(1, 2), run(2, 2));
    }
}
