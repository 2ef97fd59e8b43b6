//! Who sent a message that may start a turn, and when messages started turns in a session.
//!
//! *Clock jump*: an hour that is too long or too short. *Older version*: an unknown sender is damage.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{Malformed, stored_enum};
use crate::time::Timestamp;

/// How many turns messages start in one session within [`PERIOD`].
pub const MAX_TURNS: usize = 6;
pub const PERIOD: Duration = Duration::from_secs(60 * 60);

const TURN: &str = "turn";

stored_enum! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    WakeSender, "sender of a message" {
        /// A person at a terminal.
        Person = "person",
        /// Somebody with a token of the HTTP API.
        Token = "token",
        /// The session of an agent, in a turn that no message started.
        Agent = "agent",
    }
}

/// When messages started turns in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Woken {
    /// Whether a message started its last turn: no person has sent it a prompt since.
    pub is_turn: bool,
    /// The last times, oldest first; at most [`MAX_TURNS`].
    pub at: Vec<Timestamp>,
}

impl Woken {
    /// The same after another turn.
    #[must_use]
    pub fn again(&self, now: Timestamp) -> Self {
        let forgotten = (self.at.len() + 1).saturating_sub(MAX_TURNS);
        let kept = self.at.iter().skip(forgotten).copied();
        Self {
            is_turn: true,
            at: kept.chain([now]).collect(),
        }
    }

    /// As a store keeps it: `turn` if a message started the last turn, then the times. Nothing for none.
    pub fn stored(&self) -> Option<String> {
        let turn = self.is_turn.then(|| TURN.to_owned());
        let times = self.at.iter().map(|at| at.0.to_string());
        let words: Vec<String> = turn.into_iter().chain(times).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut woken = Self::default();
        for word in text.split(' ') {
            if word == TURN {
                woken.is_turn = true;
                continue;
            }
            let at = word.parse().map(Timestamp);
            let wrong =
                |_| Malformed::new("list of times", text, "expected `turn` and milliseconds");
            woken.at.push(at.map_err(wrong)?);
        }
        Ok(woken)
    }

    /// Whether messages started as many turns within the last hour as they may.
    pub fn is_enough(&self, now: Timestamp) -> bool {
        let since = now.minus(PERIOD);
        let lately = self.at.iter().filter(|at| **at > since);
        lately.count() >= MAX_TURNS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_back() {
        let woken = Woken::default().again(Timestamp(5)).again(Timestamp(6));
        assert_eq!(woken.stored().as_deref(), Some("turn 5 6"));
        let rested = Woken {
            is_turn: false,
            ..woken.clone()
        };
        for one in [woken, rested] {
            assert_eq!(Woken::parse(&one.stored().unwrap()), Ok(one));
        }
        assert_eq!(Woken::default().stored(), None);
        assert!(Woken::parse("soon").is_err());
    }
}
