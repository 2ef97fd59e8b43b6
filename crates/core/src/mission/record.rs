//! Stored missions and participants.

use super::name::{ApiUrl, Drive, Focus, MissionId, MissionRunId, ParticipantId, Role};
use crate::id::SessionId;
use crate::time::Timestamp;

/// A mission as stored: its id is text until it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mission {
    pub id: String,
    pub created_at: Timestamp,
}

/// A participant's row as stored: nothing in it is trusted until it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredParticipant {
    /// The mission that it is stored under.
    pub mission: String,
    pub session: SessionId,
    pub participant: String,
    pub role: String,
    pub joined_at: Timestamp,
    /// When it was last active in the mission.
    pub active_at: Timestamp,
    pub drive: String,
    pub focus: Option<String>,
    /// The run of the mission in another system.
    pub run_id: Option<String>,
    /// The address of that system's API.
    pub api_url: Option<String>,
    /// Counts the changes to this row, for compare-and-set.
    pub revision: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    pub mission: MissionId,
    pub session: SessionId,
    pub participant: ParticipantId,
    pub role: Role,
    /// When it joined; never changes.
    pub joined_at: Timestamp,
    /// When it was last active in the mission; never before it joined, never backwards.
    pub active_at: Timestamp,
    /// Whether it is actively working on its focus.
    pub drive: Drive,
    pub focus: Option<Focus>,
    /// The run of the mission in another system.
    pub run_id: Option<MissionRunId>,
    /// The address of that system's API.
    pub api_url: Option<ApiUrl>,
    /// Counts the changes to this row, for compare-and-set.
    pub revision: u64,
}

impl Participant {
    /// Records activity now. A clock that was moved back changes nothing.
    pub fn is_active_at(&mut self, now: Timestamp) {
        self.active_at = self.active_at.max(self.joined_at).max(now);
    }

    /// The row to store.
    pub fn stored(&self) -> StoredParticipant {
        StoredParticipant {
            mission: self.mission.to_string(),
            session: self.session,
            participant: self.participant.to_string(),
            role: self.role.to_string(),
            joined_at: self.joined_at,
            active_at: self.active_at,
            drive: self.drive.as_str().to_owned(),
            focus: self.focus.as_ref().map(ToString::to_string),
            run_id: self.run_id.as_ref().map(ToString::to_string),
            api_url: self.api_url.as_ref().map(ToString::to_string),
            revision: self.revision,
        }
    }
}
