//! Missions, their participants and the pointers to them in rows.
//!
//! A row is returned as stored; core checks it. A change compares the revision, and never changes the time of joining.
//! *Crash*: a row changes completely or not at all. *Clock jump*: times order participants for people only. *Older
//! version*: these columns take any text, and core says what is wrong with it.

use tenure_core::id::SessionId;
use tenure_core::mission::pointer::{Pointer, PointerScope};
use tenure_core::mission::{Mission, MissionId, Participant, StoredParticipant};
use tenure_core::store::{MissionRows, StoreError};
use tenure_core::time::Timestamp;

use super::session::id_list;
use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    MissionRow of "missions" by select_missions { id, created_at }
}

columns! { $
    ParticipantRow of "participants" by select_participants {
        mission, session, participant, role, joined_at, active_at, drive, focus, run_id, api_url, revision,
    }
}

columns! { $
    PointerRow of "pointers" by select_pointers { scope, name, mission, at }
}

const BY_ID: &str = select_missions!("WHERE id = ?1");
const MISSIONS: &str = select_missions!("/* may scan: all are listed */ ORDER BY id");
const ONE: &str = select_participants!("WHERE mission = ?1 AND session = ?2");
const OF_MISSION: &str =
    select_participants!("WHERE mission = ?1 ORDER BY joined_at, participant, session");
const OF_SESSION: &str =
    select_participants!("INDEXED BY participants_session WHERE session = ?1 ORDER BY mission");
const OF_SESSIONS: &str = select_participants!(
    "INDEXED BY participants_session \
     WHERE session IN (SELECT value FROM json_each(?1)) ORDER BY session, mission"
);
const EVERY: &str = select_participants!(
    "/* may scan: all are listed */ ORDER BY mission, joined_at, participant, session"
);
const UPDATE: &str = "UPDATE participants SET participant = ?3, role = ?4, active_at = ?5, \
     drive = ?6, focus = ?7, run_id = ?8, api_url = ?9, revision = revision + 1 \
     WHERE mission = ?1 AND session = ?2 AND revision = ?10";
const REMOVE: &str = "DELETE FROM participants WHERE mission = ?1 AND session = ?2";
const POINTER: &str = select_pointers!("WHERE scope = ?1 AND name = ?2");
const POINTERS: &str = select_pointers!("/* may scan: all are listed */ ORDER BY scope, name");
/// Setting the same mission again keeps its time.
const SET_POINTER: &str = "INSERT INTO pointers (scope, name, mission, at) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (scope, name) DO UPDATE SET mission = excluded.mission, at = excluded.at \
     WHERE pointers.mission <> excluded.mission";
const CLEAR_POINTER: &str = "DELETE FROM pointers WHERE scope = ?1 AND name = ?2";

fn read_mission(cells: &mut Cells<'_>) -> Result<Mission, StoreError> {
    let row = MissionRow::read(cells);
    Ok(Mission {
        id: row.id.text()?,
        created_at: row.created_at.time()?,
    })
}

fn read(cells: &mut Cells<'_>) -> Result<StoredParticipant, StoreError> {
    let row = ParticipantRow::read(cells);
    Ok(StoredParticipant {
        mission: row.mission.text()?,
        session: row.session.parsed(SessionId::parse)?,
        participant: row.participant.text()?,
        role: row.role.text()?,
        joined_at: row.joined_at.time()?,
        active_at: row.active_at.time()?,
        drive: row.drive.text()?,
        focus: row.focus.maybe_text()?,
        run_id: row.run_id.maybe_text()?,
        api_url: row.api_url.maybe_text()?,
        revision: row.revision.number()?,
    })
}

fn read_pointer(cells: &mut Cells<'_>) -> Result<Pointer, StoreError> {
    let row = PointerRow::read(cells);
    let (kind, name) = (row.scope.text()?, row.name.text()?);
    let scope = match kind.as_str() {
        "session" => PointerScope::Session(
            SessionId::parse(&name).map_err(|error| row.name.bad(&error.to_string()))?,
        ),
        "repo" => PointerScope::Repo(name),
        "user" => PointerScope::User(name),
        _ => return Err(row.scope.broken(&format!("its scope is {kind:?}"))),
    };
    Ok(Pointer {
        scope,
        mission: row.mission.text()?,
        at: row.at.time()?,
    })
}

impl<E: Engine> MissionRows for Rows<E> {
    fn make_mission(&mut self, id: &MissionId, at: Timestamp) -> Result<(), StoreError> {
        let row = MissionRow {
            id: id.as_str().into(),
            created_at: at.0.into(),
        };
        self.run(MissionRow::INSERT, &row.values())?;
        Ok(())
    }

    fn list_missions(&mut self) -> Result<Vec<Mission>, StoreError> {
        self.all("missions", MISSIONS, &[], read_mission)
    }

    fn mission(&mut self, id: &str) -> Result<Option<Mission>, StoreError> {
        self.first("missions", BY_ID, &params![id], read_mission)
    }

    fn participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<Option<StoredParticipant>, StoreError> {
        let key = &params![mission, session.to_string()];
        self.first("participants", ONE, key, read)
    }

    fn participants(&mut self, mission: &str) -> Result<Vec<StoredParticipant>, StoreError> {
        self.all("participants", OF_MISSION, &params![mission], read)
    }

    fn participations(&mut self, session: SessionId) -> Result<Vec<StoredParticipant>, StoreError> {
        let session = &params![session.to_string()];
        self.all("participants", OF_SESSION, session, read)
    }

    fn participations_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<StoredParticipant>, StoreError> {
        let sessions = &params![id_list(sessions)];
        self.all("participants", OF_SESSIONS, sessions, read)
    }

    fn all_participants(&mut self) -> Result<Vec<StoredParticipant>, StoreError> {
        self.all("participants", EVERY, &[], read)
    }

    fn insert_participant(&mut self, participant: &Participant) -> Result<(), StoreError> {
        let stored = participant.stored();
        let row = ParticipantRow {
            mission: stored.mission.into(),
            session: stored.session.to_string().into(),
            participant: stored.participant.into(),
            role: stored.role.into(),
            joined_at: stored.joined_at.0.into(),
            active_at: stored.active_at.0.into(),
            drive: stored.drive.into(),
            focus: stored.focus.into(),
            run_id: stored.run_id.into(),
            api_url: stored.api_url.into(),
            revision: self.count("revision", stored.revision)?.into(),
        };
        self.compare_and_set(ParticipantRow::INSERT, &row.values())
    }

    fn update_participant(&mut self, participant: &Participant) -> Result<(), StoreError> {
        let stored = participant.stored();
        let revision = self.count("revision", stored.revision)?;
        self.compare_and_set(
            UPDATE,
            &params![
                stored.mission,
                stored.session.to_string(),
                stored.participant,
                stored.role,
                stored.active_at.0,
                stored.drive,
                stored.focus,
                stored.run_id,
                stored.api_url,
                revision,
            ],
        )
    }

    fn remove_participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<bool, StoreError> {
        let removed = self.run(REMOVE, &params![mission, session.to_string()])?;
        Ok(removed > 0)
    }

    fn pointer(&mut self, scope: &PointerScope) -> Result<Option<Pointer>, StoreError> {
        let key = &params![scope.kind(), scope.name()];
        self.first("pointers", POINTER, key, read_pointer)
    }

    fn set_pointer(
        &mut self,
        scope: &PointerScope,
        mission: Option<&MissionId>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (kind, name) = (scope.kind(), scope.name());
        match mission {
            Some(mission) => {
                self.run(SET_POINTER, &params![kind, name, mission.as_str(), at.0])?;
            }
            None => {
                self.run(CLEAR_POINTER, &params![kind, name])?;
            }
        }
        Ok(())
    }

    fn list_pointers(&mut self) -> Result<Vec<Pointer>, StoreError> {
        self.all("pointers", POINTERS, &[], read_pointer)
    }
}
