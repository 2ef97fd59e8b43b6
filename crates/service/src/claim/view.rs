//! A claim as it is shown.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::claim::{ClaimRecord, TakenFrom};
use tenure_core::hint::Hint;
use tenure_core::session::Standing;
use tenure_core::time::Timestamp;

use crate::session::view::{SessionView, WaitView};

/// A claim key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClaimView {
    pub key: String,
    /// The fencing number of the newest grant.
    pub epoch: u64,
    /// Who holds it.
    pub holder: Option<Box<SessionView>>,
    /// `held`, `suspect`, `free` or `done`.
    pub state: &'static str,
    /// Since when it is held.
    pub acquired_at: Option<Timestamp>,
    /// What freed it without an act of its holder: `exit` or `lease`.
    pub freed_by: Option<&'static str>,
    /// Until when its holder counts as living where nobody can tell.
    pub lease_until: Option<Timestamp>,
    /// What the holder says that it does with it.
    pub note: Option<String>,
    /// In a grant: whether the caller had it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub already_held: Option<bool>,
    /// In a grant: from whom it was taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<TakenFrom>,
    /// In a guard's yes: the ancestor that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// For how long it is held, for sentences.
    #[serde(skip)]
    pub age: Option<std::time::Duration>,
}

/// Why a key is as it is, and what would change that.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WhyView {
    /// What a claim by the caller would be answered.
    pub answer: String,
    /// The reasons, one a line.
    pub because: Vec<String>,
    /// What would change it, as far as the caller may be told.
    pub hints: Vec<Hint>,
    /// Who waits for it, in order.
    pub waiters: Vec<WaitView>,
}

impl ClaimView {
    /// Makes the view of a key; `holder` is the session of its open hold, with how it stands.
    pub fn new(record: &ClaimRecord, holder: Option<(SessionView, &Standing)>) -> Self {
        use tenure_core::claim::EndedBy;
        let suspect = matches!(
            holder,
            Some((_, Standing::Suspect { .. } | Standing::Expired(_)))
        );
        let state = match (&holder, record.is_done()) {
            (Some(_), _) if suspect => "suspect",
            (Some(_), _) => "held",
            (None, true) => "done",
            (None, false) => "free",
        };
        let freed_by = match record.ended_by() {
            Some(EndedBy::Death | EndedBy::End) => Some("exit"),
            Some(EndedBy::Lease) => Some("lease"),
            _ => None,
        };
        let current = record.current();
        Self {
            key: record.key.to_string(),
            epoch: record.epoch.0,
            state,
            acquired_at: current.map(|hold| hold.granted_at),
            freed_by,
            lease_until: holder.as_ref().and_then(|(view, _)| view.lease_until),
            note: current.and_then(|hold| hold.note.clone()),
            holder: holder.map(|(view, _)| Box::new(view)),
            already_held: None,
            taken_from: None,
            via: None,
            age: None,
        }
    }
}
