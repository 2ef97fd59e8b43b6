//! Views of missions and their participants.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::mission::check::MissionFault;
use tenure_core::mission::pointer::Resolution;
use tenure_core::time::Timestamp;

use crate::session::view::NameView;

/// A session in a mission.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ParticipantView {
    pub mission: String,
    /// Its id in the mission: a ULID.
    pub participant_id: String,
    pub session: NameView,
    /// What it is in the mission.
    pub role: String,
    /// What it works on: `wp:<id>`, `step:<id>` or none.
    pub focus: Option<String>,
    /// The run of the mission in another system.
    pub run_id: Option<String>,
    /// The address of that system's API.
    pub api_url: Option<String>,
    /// `active` or `inactive`; a session that is gone is never active.
    pub drive: &'static str,
    /// `live`, `stalled`, `ended`, `dead` or `unknown`.
    pub state: &'static str,
    /// The evidence for that state.
    pub why: String,
    pub dir: String,
    pub joined_at: Timestamp,
    /// When it was last active, in the mission or otherwise.
    pub last_activity_at: Timestamp,
    /// Others that work on the same focus.
    pub collides_with: Vec<String>,
    /// Counts the changes of its row.
    pub revision: u64,
}

/// A mission in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MissionView {
    pub id: String,
    /// When it was first joined.
    pub created_at: Timestamp,
    /// How many take part.
    pub participants: usize,
    pub live: usize,
    /// How many of those actively work on a focus.
    pub driving: usize,
    /// When one of them was last active.
    pub last_activity_at: Option<Timestamp>,
    /// Whether the caller takes part.
    pub joined: bool,
}

/// Which mission is selected, and what decided it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PointerView {
    /// The mission, if one is selected.
    pub mission: Option<String>,
    /// `flag`, `session`, `repo`, `user` or `none`.
    pub by: &'static str,
    /// The evidence for that.
    pub evidence: String,
    /// Pointers that were ignored, and why.
    pub passed_over: Vec<MissionFault>,
}

impl From<Resolution> for PointerView {
    fn from(found: Resolution) -> Self {
        Self {
            mission: found.mission.map(|id| id.to_string()),
            by: found.by,
            evidence: found.evidence,
            passed_over: found.passed_over,
        }
    }
}
