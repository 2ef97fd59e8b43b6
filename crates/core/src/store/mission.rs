//! Missions, participants and pointers.

use super::StoreError;
use crate::id::SessionId;
use crate::mission::pointer::{Pointer, PointerScope};
use crate::mission::{Mission, MissionId, Participant, StoredParticipant};
use crate::time::Timestamp;

pub trait MissionRows {
    /// Creates a mission if it does not exist.
    fn make_mission(&mut self, id: &MissionId, at: Timestamp) -> Result<(), StoreError>;

    /// Every mission that was ever joined, ordered by id.
    fn list_missions(&mut self) -> Result<Vec<Mission>, StoreError>;

    /// A mission, if it exists.
    fn mission(&mut self, id: &str) -> Result<Option<Mission>, StoreError>;

    /// A session's row in a mission.
    fn participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<Option<StoredParticipant>, StoreError>;

    /// A mission's participants, in order of joining.
    fn participants(&mut self, mission: &str) -> Result<Vec<StoredParticipant>, StoreError>;

    /// The rows of one session in all missions, ordered by mission.
    fn participations(&mut self, session: SessionId) -> Result<Vec<StoredParticipant>, StoreError>;

    /// The rows of all these sessions in all missions, in one query.
    fn participations_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<StoredParticipant>, StoreError>;

    /// Every row of every mission, including rows of missions that do not exist.
    fn all_participants(&mut self) -> Result<Vec<StoredParticipant>, StoreError>;

    /// Adds a participant. A taken participant id, or a second row of a session, is a conflict.
    fn insert_participant(&mut self, participant: &Participant) -> Result<(), StoreError>;

    /// Replaces a participant's row if its revision is still the given one, and raises the revision. The time
    /// of joining never changes.
    fn update_participant(&mut self, participant: &Participant) -> Result<(), StoreError>;

    /// Removes a participant; returns whether there was one.
    fn remove_participant(&mut self, mission: &str, session: SessionId)
    -> Result<bool, StoreError>;

    /// The mission that a session, a repository or a user points to.
    fn pointer(&mut self, scope: &PointerScope) -> Result<Option<Pointer>, StoreError>;

    /// Sets or clears a pointer.
    fn set_pointer(
        &mut self,
        scope: &PointerScope,
        mission: Option<&MissionId>,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    fn list_pointers(&mut self) -> Result<Vec<Pointer>, StoreError>;
}
