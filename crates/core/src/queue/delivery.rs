//! A delivery: an event from outside, with what became of it.
//!
//! Deliveries are told apart per outcome: only one that led to something makes a second one a duplicate, so that
//! what was refused or ignored can be delivered again after the rules changed.

use std::time::Duration;

use crate::id::{JobId, stored_enum};
use crate::key::Key;
use crate::time::Timestamp;

/// How long the same body is a duplicate.
pub const SAME_BODY_FOR: Duration = Duration::from_secs(7 * 86_400);

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its number in the store; zero before it is stored.
    pub id: i64,
    /// Where it arrived.
    pub endpoint: String,
    /// The forge's own id for it.
    pub delivery_id: Option<String>,
    /// What it is about, and in which version, if the forge reports both.
    pub content_key: Option<String>,
    /// The hash of its body: the same body again is the same delivery, whatever its id, for [`SAME_BODY_FOR`].
    pub body_hash: Option<String>,
    pub received_at: Timestamp,
    /// What happened, such as `issue.opened`.
    pub event: String,
    pub repo: Option<String>,
    pub item: Option<Key>,
    /// Who did it.
    pub author: Option<String>,
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: Option<String>,
    pub why: String,
    pub job: Option<JobId>,
}

stored_enum! {
    Verdict, "verdict" {
        /// It made a job.
        Queued = "queued",
        /// It joined a job that was waiting.
        Joined = "joined",
        /// Something was closed, cancelled or reset.
        Acted = "acted",
        /// It is decided later: its forge must be asked about it and did not answer yet, or others arrived before it.
        Waits = "waits",
        /// No rule matches.
        Ignored = "ignored",
        /// A rule matches, but not for this author or this code.
        Refused = "refused",
    }
}

/// A delivery that is stored and not decided yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecidedDelivery {
    /// The number of the delivery.
    pub delivery: i64,
    pub endpoint: String,
    /// The forge's own id for it.
    pub delivery_id: Option<String>,
    /// The headers that name its event, as JSON.
    pub headers: String,
    /// What its forge answered, as JSON; none while it has not answered.
    pub answers: Option<String>,
    /// Whether everything that needs no answer was done.
    pub acted: bool,
    /// Whether a person asked for it again.
    pub replayed: bool,
}

impl Verdict {
    /// Whether a second delivery of the same is a duplicate.
    pub fn is_final(self) -> bool {
        matches!(self, Verdict::Queued | Verdict::Joined | Verdict::Acted)
    }
}
