//! What stops agents that trigger each other.
//!
//! Runs of an item are counted since a permitted person last asked for one, whatever the runs changed. At the
//! limit its jobs wait until a person asks again.

use crate::key::Key;
use crate::time::Timestamp;

/// How many runs an item gets without a person in between, if its rule says nothing else.
pub const RUNS: u32 = 10;

/// The count of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    pub item: Key,
    /// Runs since a person last asked.
    pub runs: u32,
    /// When a person last asked; none if no one ever did.
    pub person_at: Option<Timestamp>,
    /// When it was reached and reported.
    pub told_at: Option<Timestamp>,
}

impl Breaker {
    pub fn of(item: Key) -> Self {
        Self {
            item,
            runs: 0,
            person_at: None,
            told_at: None,
        }
    }

    pub fn is_open(&self, limit: Option<u32>) -> bool {
        self.runs >= limit.unwrap_or(RUNS)
    }

    /// A person asked for a run.
    #[must_use]
    pub fn after_person(self, now: Timestamp) -> Self {
        Self {
            runs: 0,
            person_at: Some(now),
            told_at: None,
            ..self
        }
    }

    #[must_use]
    pub fn after_run(self) -> Self {
        Self {
            runs: self.runs.saturating_add(1),
            ..self
        }
    }
}
