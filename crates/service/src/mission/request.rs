//! What is asked about missions, and what comes back.

use crate::mission::view::{ParticipantView, PointerView};
use tenure_core::mission::change::Change;
use tenure_core::mission::check::Fault;
use tenure_core::mission::{MissionId, ParticipantId, Role};

/// Where the caller stands, as far as missions need to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Here {
    /// The repository of the directory that it calls from.
    pub repo: Option<String>,
    pub user: String,
    /// The roles that the settings list; none listed means that any will do.
    pub roles: Vec<String>,
}

/// A session joins a mission, or joins it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRequest {
    pub mission: MissionId,
    /// What it will be there.
    pub role: Role,
    /// Its id there; one is made otherwise.
    pub participant: Option<ParticipantId>,
}

/// A change of the caller's own row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRequest {
    pub mission: Option<MissionId>,
    pub change: Change,
    /// Refuse what others drive.
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Session,
    /// The repository's, in all its worktrees.
    Repo,
    User,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointRequest {
    pub whose: Whose,
    pub mission: Option<MissionId>,
}

#[derive(Debug, Clone)]
pub struct Joined {
    pub participant: ParticipantView,
    /// Whether it is new.
    pub new: bool,
    /// What else is wrong in the mission.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Changed {
    pub participant: ParticipantView,
    /// Which mission was meant, and what decided that.
    pub pointer: PointerView,
    /// Whom it collides with, and what else is wrong in the mission.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Left {
    pub mission: String,
    /// The pointer that was cleared with it.
    pub cleared: bool,
}

/// The answer to a pointer that was set or cleared.
#[derive(Debug, Clone)]
pub struct Pointed {
    /// `session`, `repo` or `user`.
    pub whose: &'static str,
    pub name: String,
    pub mission: Option<String>,
    pub before: Option<String>,
    /// What is the active mission now, and what decided that.
    pub pointer: PointerView,
    pub faults: Vec<Fault>,
}
