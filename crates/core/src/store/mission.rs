//! Missions, participants and pointers.

use super::StoreError;
use crate::id::SessionId;
use crate::mission::pointer::{Pointer, Scope};
use crate::mission::{Mission, MissionId, Participant, StoredParticipant};
use crate::time::Timestamp;

/// Rows of a transaction.
pub trait MissionRows {
    /// Makes a mission if it is missing.
    fn make_mission(&mut self, id: &MissionId, at: Timestamp) -> Result<(), StoreError>;

    /// Every mission that somebody ever joined, in order of their ids.
    fn list_missions(&mut self) -> Result<Vec<Mission>, StoreError>;

    /// A mission, if it is stored.
    fn mission(&mut self, id: &str) -> Result<Option<Mission>, StoreError>;

    /// A session's row in a mission.
    fn participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<Option<StoredParticipant>, StoreError>;

    /// A mission's participants, those who joined first first.
    fn participants(&mut self, mission: &str) -> Result<Vec<StoredParticipant>, StoreError>;

    /// The rows of one session in all missions, in order of the missions.
    fn participations(&mut self, session: SessionId) -> Result<Vec<StoredParticipant>, StoreError>;

    /// The rows of all these sessions in all missions, in one look.
    fn participations_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<StoredParticipant>, StoreError>;

    /// Every row of every mission, those of missions that are not stored among them.
    fn all_participants(&mut self) -> Result<Vec<StoredParticipant>, StoreError>;

    /// Adds a participant. A taken participant id, or a second row of a session, is a conflict.
    fn insert_participant(&mut self, participant: &Participant) -> Result<(), StoreError>;

    /// Replaces a participant's row if its revision is still the one given, and raises the revision. When
    /// it joined is never changed.
    fn update_participant(&mut self, participant: &Participant) -> Result<(), StoreError>;

    /// Forgets a participant; tells whether there was one.
    fn remove_participant(&mut self, mission: &str, session: SessionId)
    -> Result<bool, StoreError>;

    /// The mission that a session, a repository or a user points to.
    fn pointer(&mut self, scope: &Scope) -> Result<Option<Pointer>, StoreError>;

    /// Sets or forgets a pointer.
    fn set_pointer(
        &mut self,
        scope: &Scope,
        mission: Option<&MissionId>,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Every pointer.
    fn list_pointers(&mut self) -> Result<Vec<Pointer>, StoreError>;
}
