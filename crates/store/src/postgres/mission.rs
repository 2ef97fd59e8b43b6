//! Missions, their participants and the pointers to them in rows.
//!
//! A row is returned as stored; core checks it. A change compares the revision, and never changes the time of
//! joining.

use tenure_core::id::SessionId;
use tenure_core::mission::pointer::{Pointer, Scope};
use tenure_core::mission::{Mission, MissionId, Participant, StoredParticipant};
use tenure_core::store::{MissionRows, StoreError};
use tenure_core::time::Timestamp;

use super::handle::PostgresTx;
use super::row::Cells;
use super::session::id_list;
use super::value::params;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT mission, session, participant, role, joined_at, active_at, drive, focus, revision \
             FROM participants ",
            $rest
        )
    };
}

const ONE: &str = select!("WHERE mission = $1 AND session = $2");
const OF_MISSION: &str = select!("WHERE mission = $1 ORDER BY joined_at, participant, session");
const OF_SESSION: &str = select!("WHERE session = $1 ORDER BY mission");
const OF_SESSIONS: &str = select!("WHERE session = ANY($1) ORDER BY session, mission");
const EVERY: &str = select!("ORDER BY mission, joined_at, participant, session");
const BY_ID: &str = "SELECT id, created_at FROM missions WHERE id = $1";
const UPDATE: &str = "UPDATE participants SET participant = $3, role = $4, active_at = $5, \
     drive = $6, focus = $7, revision = revision + 1 \
     WHERE mission = $1 AND session = $2 AND revision = $8";
const POINTER: &str = "SELECT mission, at FROM pointers WHERE scope = $1 AND name = $2";

fn read_mission(cells: &mut Cells<'_>) -> Result<Mission, StoreError> {
    Ok(Mission {
        id: cells.text()?,
        created_at: cells.time()?,
    })
}

pub(super) fn pointer(
    tx: &mut PostgresTx<'_>,
    scope: &Scope,
) -> Result<Option<Pointer>, StoreError> {
    let key = params![scope.kind(), scope.name()];
    tx.first("pointers", POINTER, key, |cells| {
        Ok(Pointer {
            scope: scope.clone(),
            mission: cells.text()?,
            at: cells.time()?,
        })
    })
}

fn read(cells: &mut Cells<'_>) -> Result<StoredParticipant, StoreError> {
    Ok(StoredParticipant {
        mission: cells.text()?,
        session: cells.parsed(SessionId::parse)?,
        participant: cells.text()?,
        role: cells.text()?,
        joined_at: cells.time()?,
        active_at: cells.time()?,
        drive: cells.text()?,
        focus: cells.maybe_text()?,
        revision: cells.number()?,
    })
}

impl MissionRows for PostgresTx<'_> {
    fn make_mission(&mut self, id: &MissionId, at: Timestamp) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO missions (id, created_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
        self.run(sql, params![id.as_str(), at.0])?;
        Ok(())
    }

    fn list_missions(&mut self) -> Result<Vec<Mission>, StoreError> {
        let sql = "SELECT id, created_at FROM missions ORDER BY id";
        self.all("missions", sql, Vec::new(), read_mission)
    }

    fn mission(&mut self, id: &str) -> Result<Option<Mission>, StoreError> {
        self.first("missions", BY_ID, params![id], read_mission)
    }

    fn participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<Option<StoredParticipant>, StoreError> {
        self.first(
            "participants",
            ONE,
            params![mission, session.to_string()],
            read,
        )
    }

    fn participants(&mut self, mission: &str) -> Result<Vec<StoredParticipant>, StoreError> {
        self.all("participants", OF_MISSION, params![mission], read)
    }

    fn participations(&mut self, session: SessionId) -> Result<Vec<StoredParticipant>, StoreError> {
        self.all(
            "participants",
            OF_SESSION,
            params![session.to_string()],
            read,
        )
    }

    fn participations_of(
        &mut self,
        sessions: &[SessionId],
    ) -> Result<Vec<StoredParticipant>, StoreError> {
        self.all(
            "participants",
            OF_SESSIONS,
            params![id_list(sessions)],
            read,
        )
    }

    fn all_participants(&mut self) -> Result<Vec<StoredParticipant>, StoreError> {
        self.all("participants", EVERY, Vec::new(), read)
    }

    fn insert_participant(&mut self, participant: &Participant) -> Result<(), StoreError> {
        let row = participant.stored();
        let sql = "INSERT INTO participants (mission, session, participant, role, joined_at, active_at, \
             drive, focus, revision) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let revision = self.count("revision", row.revision)?;
        self.insert(
            sql,
            params![
                row.mission,
                row.session.to_string(),
                row.participant,
                row.role,
                row.joined_at.0,
                row.active_at.0,
                row.drive,
                row.focus,
                revision,
            ],
        )
    }

    fn update_participant(&mut self, participant: &Participant) -> Result<(), StoreError> {
        let row = participant.stored();
        let revision = self.count("revision", row.revision)?;
        self.compare_and_set(
            UPDATE,
            params![
                row.mission,
                row.session.to_string(),
                row.participant,
                row.role,
                row.active_at.0,
                row.drive,
                row.focus,
                revision,
            ],
        )
    }

    fn remove_participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<bool, StoreError> {
        let sql = "DELETE FROM participants WHERE mission = $1 AND session = $2";
        let removed = self.run(sql, params![mission, session.to_string()])?;
        Ok(removed > 0)
    }

    fn pointer(&mut self, scope: &Scope) -> Result<Option<Pointer>, StoreError> {
        pointer(self, scope)
    }

    fn set_pointer(
        &mut self,
        scope: &Scope,
        mission: Option<&MissionId>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (kind, name) = (scope.kind(), scope.name());
        let changed = match mission {
            // Setting the same mission again keeps its time.
            Some(mission) => self.run(
                "INSERT INTO pointers (scope, name, mission, at) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (scope, name) DO UPDATE SET mission = excluded.mission, at = excluded.at \
                 WHERE pointers.mission <> excluded.mission",
                params![kind, name, mission.as_str(), at.0],
            ),
            None => self.run(
                "DELETE FROM pointers WHERE scope = $1 AND name = $2",
                params![kind, name],
            ),
        };
        changed.map(|_| ())
    }

    fn list_pointers(&mut self) -> Result<Vec<Pointer>, StoreError> {
        let sql = "SELECT scope, name, mission, at FROM pointers ORDER BY scope, name";
        self.all("pointers", sql, Vec::new(), |cells| {
            let (kind, name) = (cells.text()?, cells.text()?);
            let scope = match kind.as_str() {
                "session" => Scope::Session(
                    SessionId::parse(&name).map_err(|error| cells.bad(&error.to_string()))?,
                ),
                "repo" => Scope::Repo(name),
                "user" => Scope::User(name),
                _ => return Err(cells.broken(&format!("its scope is {kind:?}"))),
            };
            Ok(Pointer {
                scope,
                mission: cells.text()?,
                at: cells.time()?,
            })
        })
    }
}
