//! What stops agents that trigger each other.
//!
//! Runs of an item are counted since a permitted person last asked for one, whatever the runs changed. At the
//! limit its jobs wait until a person asks again.
//!
//! An agent may write with the token of a person. So an event by a person's account during a run of that item, or within
//! [`AFTERWARDS`] of its end, starts a run and is no person's word, unless it names tenure.

use std::time::Duration;

use crate::key::Key;
use crate::time::Timestamp;

/// How many runs an item gets without a person in between, if its rule says nothing else.
pub const RUNS: u32 = 10;

/// How many runs of an item may begin within an hour, if its rule says nothing else.
pub const RUNS_PER_HOUR: u32 = 10;

/// How long after a run an event may still be its agent's.
pub const AFTERWARDS: Duration = Duration::from_secs(60);

/// Who asks for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// A permitted person who names tenure, or speaks on this machine.
    Yes,
    /// The account of a permitted person. An agent may use it, too.
    Account,
    No,
}

impl Person {
    /// Whether it is a person's word, if a run of the item is on, or one ended at this time.
    pub fn is_word(self, is_running: bool, ended_at: Option<Timestamp>, now: Timestamp) -> bool {
        let is_recent = ended_at.is_some_and(|at| at.age_at(now) < AFTERWARDS);
        match self {
            Person::Yes => true,
            Person::Account => !is_running && !is_recent,
            Person::No => false,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_persons_account_writes_during_a_run_or_a_minute_after_is_not_their_word() {
        let now = Timestamp(1_000_000);
        let (soon, later) = (now.minus(AFTERWARDS / 2), now.minus(AFTERWARDS));
        assert!(Person::Account.is_word(false, None, now));
        assert!(!Person::Account.is_word(true, None, now));
        assert!(!Person::Account.is_word(false, Some(soon), now));
        assert!(Person::Account.is_word(false, Some(later), now));
        assert!(
            Person::Yes.is_word(true, Some(soon), now),
            "it names tenure"
        );
        assert!(!Person::No.is_word(false, None, now));
    }
}
