//! A clock that moves only when the test moves it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::time::{Era, Now, Timestamp};

/// 2026-01-01T00:00:00Z.
const WALL: i64 = 1_767_225_600_000;

/// Monotonic time at the start of an era, not zero because a machine has run for a while by then.
const STEADY: i64 = 10_000;

/// A clock; clones of it are the same clock.
#[derive(Debug, Clone)]
pub struct FakeClock(Arc<Mutex<Now>>);

impl Default for FakeClock {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeClock {
    /// The first day of 2026, in the era "boot".
    pub fn new() -> FakeClock {
        FakeClock(Arc::new(Mutex::new(Now {
            wall: Timestamp(WALL),
            era: Era {
                id: "boot".to_owned(),
                private: false,
            },
            steady: STEADY,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Now {
        self.lock().clone()
    }

    /// Advances both monotonic and wall-clock time.
    pub fn advance(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).expect("no test waits that long");
        let mut now = self.lock();
        now.steady += millis;
        now.wall.0 += millis;
    }

    /// Sets only wall-clock time, forward or back.
    pub fn set_wall(&self, wall: Timestamp) {
        self.lock().wall = wall;
    }

    /// Begins another era, in which monotonic time starts again; wall-clock time continues.
    pub fn new_era(&self, id: &str, private: bool) {
        let mut now = self.lock();
        now.steady = STEADY;
        now.era = Era {
            id: id.to_owned(),
            private,
        };
    }

    /// This clock as a function, for a store.
    pub fn source(&self) -> Box<dyn Fn() -> Now + Send + Sync> {
        let clock = self.clone();
        Box::new(move || clock.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_shows_what_the_clock_shows() {
        let clock = FakeClock::new();
        let source: Box<dyn Fn() -> Now> = clock.source();
        let before = source();
        clock.advance(Duration::from_secs(2));
        assert_eq!(source().steady - before.steady, 2_000);
        assert_eq!(source().wall.0 - before.wall.0, 2_000);
        clock.set_wall(Timestamp(7));
        clock.new_era("other", true);
        let after = source();
        assert_eq!((after.wall, after.steady), (Timestamp(7), STEADY));
        assert_eq!((after.era.id.as_str(), after.era.private), ("other", true));
    }
}
