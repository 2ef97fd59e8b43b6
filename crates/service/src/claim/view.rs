use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::claim::{ClaimRecord, TakenFrom};
use tenure_core::hint::Hint;
use tenure_core::session::Standing;
use tenure_core::time::Timestamp;

use crate::session::view::{NameView, SessionView, WaitView};

/// A claim key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClaimView {
    pub key: String,
    /// The fencing number of the newest grant.
    pub epoch: u64,
    /// The session that holds it.
    pub holder: Option<Box<SessionView>>,
    /// `held`, `suspect`, `free` or `done`.
    pub state: &'static str,
    /// Since when it is held.
    pub acquired_at: Option<Timestamp>,
    /// What freed it without an act of its holder: `exit` or `lease`.
    pub freed_by: Option<&'static str>,
    /// Until when its holder is presumed alive if its process can't be checked.
    pub lease_until: Option<Timestamp>,
    /// The holder's own note about it.
    pub note: Option<String>,
    /// In a grant: whether the caller already held it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub already_held: Option<bool>,
    /// In a grant: the previous holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<TakenFrom>,
    /// In a takeover: until when the previous holder may still write, because its machine may not know of it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may_write_until: Option<Timestamp>,
    /// In a positive guard answer: the ancestor that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// How long it has been held, for messages.
    #[serde(skip)]
    pub age: Option<std::time::Duration>,
}

/// Why a key is in its state, and what would change that.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WhyView {
    /// The outcome of a claim by the caller.
    pub answer: String,
    /// The reasons, one per line.
    pub because: Vec<String>,
    /// What would change it, limited to what the caller may see.
    pub hints: Vec<Hint>,
    /// The sessions that wait for it, in order.
    pub waiters: Vec<WaitView>,
}

/// One page of the timeline.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TimelineView {
    /// When it was read; what is still held reaches up to here.
    pub now: Timestamp,
    /// What ended before is left out.
    pub since: Option<Timestamp>,
    /// First what is held, by key, then what ended, the latest end first. A hold that ended while the pages were read may
    /// be there twice: the later one counts.
    pub holds: Vec<HoldView>,
    /// The cursor of the next page; none if this is the last.
    pub next: Option<String>,
}

/// One hold: who had an item, from when to when, and how it ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HoldView {
    pub key: String,
    /// The fencing number.
    pub epoch: u64,
    /// The session that held it.
    pub session: NameView,
    /// How it was granted: `claim`, `handoff`, `takeover`, `resume` or `moved`.
    pub means: &'static str,
    /// The holder's own note about it.
    pub note: Option<String>,
    pub from: Timestamp,
    /// When it ended; none while it is held.
    pub to: Option<Timestamp>,
    /// How it ended: `release`, `done`, `end` (its session ended), `death`, `lease`, `taken` or `handoff`.
    pub ended_by: Option<&'static str>,
    /// Why it ended without an act of its holder: the reason of a takeover, or the proof.
    pub ended_why: Option<String>,
    /// Who took it over or was handed it.
    pub passed_to: Option<NameView>,
    /// Since when its holder is suspect: its lease expired and its process can't be checked.
    pub suspect_since: Option<Timestamp>,
    /// When others may claim it from a suspect holder.
    pub free_at: Option<Timestamp>,
}

impl ClaimView {
    /// Builds the view; `holder` is the session of the open hold, with its standing.
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
            may_write_until: None,
            via: None,
            age: None,
        }
    }
}
