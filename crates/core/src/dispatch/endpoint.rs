//! What arrives at an endpoint: deliveries that were accepted, and why others were refused.
//!
//! One refusal means little: anyone can send anything to an open port. Many in a row, without one delivery that was
//! accepted, mean that the forge has another secret, or that nothing can be stored: no work arrives, and somebody must
//! know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::stored_enum;
use crate::time::Timestamp;

/// After how many refusals in a row an endpoint counts as refusing.
pub const MANY: u64 = 10;

stored_enum! {
    /// Why a delivery was refused.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    RefusalCause, "cause of a refusal" {
        /// No secret proves that the forge sent it.
        Signature = "signature",
        /// It is genuine, and cannot be read.
        Unreadable = "unreadable",
        /// It could not be stored.
        StoreAway = "store_away",
        TooLarge = "too_large",
    }
}

impl RefusalCause {
    /// In words, and what to do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Signature => {
                "their signature does not match; compare the secret in the forge with secret_files"
            }
            Self::Unreadable => {
                "they cannot be read; compare the kind of the forge with the one that sends"
            }
            Self::StoreAway => "they cannot be stored; the dispatcher's log names the reason",
            Self::TooLarge => "they are larger than 25 MB",
        }
    }
}

/// What arrived at one endpoint since its dispatcher started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointState {
    pub accepted: u64,
    /// When the last delivery was accepted.
    pub accepted_at: Option<Timestamp>,
    /// How many were refused, by cause.
    pub refused: BTreeMap<RefusalCause, u64>,
    /// How many were refused since the last one that was accepted.
    pub in_a_row: u64,
    /// When the last one was refused, and why.
    pub last_refusal: Option<(Timestamp, RefusalCause)>,
}

impl EndpointState {
    /// A delivery was accepted. Returns whether the endpoint refused before.
    pub fn accept(&mut self, now: Timestamp) -> bool {
        let refused = self.is_refusing();
        self.accepted += 1;
        self.accepted_at = Some(now);
        self.in_a_row = 0;
        refused
    }

    /// A delivery was refused. Returns whether the endpoint counts as refusing from now on.
    pub fn refuse(&mut self, cause: RefusalCause, now: Timestamp) -> bool {
        *self.refused.entry(cause).or_default() += 1;
        self.in_a_row += 1;
        self.last_refusal = Some((now, cause));
        self.in_a_row == MANY
    }

    pub fn is_refusing(&self) -> bool {
        self.in_a_row >= MANY
    }

    /// Why no work arrives; none while it may.
    pub fn complaint(&self) -> Option<String> {
        let (_, cause) = self.last_refusal.filter(|_| self.is_refusing())?;
        Some(format!(
            "the last {} deliveries were refused: {}",
            self.in_a_row,
            cause.advice()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenth_refusal_in_a_row_is_named_once_and_one_delivery_ends_it() {
        let mut state = EndpointState::default();
        let at = Timestamp(1);
        let named: Vec<bool> = (0..12)
            .map(|_| state.refuse(RefusalCause::Signature, at))
            .collect();
        assert_eq!(named.iter().filter(|one| **one).count(), 1);
        assert!(named[9] && state.is_refusing());
        let told = state.complaint().unwrap();
        assert!(told.starts_with("the last 12 deliveries were refused: their signature"));
        assert!(state.accept(at));
        assert_eq!(
            (state.complaint(), state.refused[&RefusalCause::Signature]),
            (None, 12)
        );
        assert!(!state.accept(at));
        assert!(!state.refuse(RefusalCause::TooLarge, at));
    }
}
