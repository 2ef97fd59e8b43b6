//! Requests about missions, and their answers.

use crate::mission::view::{ParticipantView, PointerView};
use tenure_core::mission::change::MissionChange;
use tenure_core::mission::check::MissionFault;
use tenure_core::mission::{MissionId, ParticipantId, Role};

/// The caller's surroundings, as far as missions need them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissionPlace {
    /// The repository of the directory that it calls from.
    pub repo: Option<String>,
    pub user: String,
    /// The roles that the settings allow; empty means any.
    pub roles: Vec<String>,
}

/// A session joins a mission, or joins it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRequest {
    pub mission: MissionId,
    pub role: Role,
    /// Its id there; generated if none is given.
    pub participant: Option<ParticipantId>,
}

/// A change of the caller's own row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRequest {
    pub mission: Option<MissionId>,
    pub change: MissionChange,
    /// Refuse a focus that others work on.
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerOwner {
    Session,
    /// The repository, in all its worktrees.
    Repo,
    User,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointRequest {
    pub whose: PointerOwner,
    pub mission: Option<MissionId>,
}

#[derive(Debug, Clone)]
pub struct JoinResult {
    pub participant: ParticipantView,
    pub new: bool,
    /// The session that had this participant id before.
    pub continues: Option<String>,
    /// Other faults in the mission.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct MissionChangeResult {
    pub participant: ParticipantView,
    /// Which mission was selected, and what decided it.
    pub pointer: PointerView,
    /// Collisions, and other faults in the mission.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct LeaveResult {
    pub mission: String,
    /// The id of the session that left it.
    pub session: String,
    /// Whether the session's pointer was cleared too.
    pub cleared: bool,
}

/// The answer to a pointer that was set or cleared.
#[derive(Debug, Clone)]
pub struct PointResult {
    /// `session`, `repo` or `user`.
    pub whose: &'static str,
    pub name: String,
    pub mission: Option<String>,
    pub before: Option<String>,
    /// The active mission now, and what decided it.
    pub pointer: PointerView,
    pub faults: Vec<MissionFault>,
}
