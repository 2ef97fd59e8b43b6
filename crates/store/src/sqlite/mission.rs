//! Missions, their participants and the pointers to them in rows.
//!
//! A row is returned as it stands: what is wrong with it is core's to say. A change compares the revision,
//! and never touches when somebody joined.

use rusqlite::params;
use tenure_core::id::SessionId;
use tenure_core::mission::pointer::{Pointer, Scope};
use tenure_core::mission::{Mission, MissionId, Participant, StoredParticipant};
use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;

use super::handle::SqliteTx;
use super::row::Cells;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT mission, session, participant, role, joined_at, active_at, drive, focus, revision \
             FROM participants ",
            $rest
        )
    };
}

pub(super) const ONE: &str = select!("WHERE mission = ?1 AND session = ?2");
pub(super) const OF_MISSION: &str =
    select!("WHERE mission = ?1 ORDER BY joined_at, participant, session");
pub(super) const OF_SESSION: &str =
    select!("INDEXED BY participants_session WHERE session = ?1 ORDER BY mission");
const EVERY: &str = select!("ORDER BY mission, joined_at, participant, session");
pub(super) const BY_ID: &str = "SELECT id, created_at FROM missions WHERE id = ?1";
pub(super) const UPDATE: &str = "UPDATE participants SET participant = ?3, role = ?4, active_at = ?5, \
     drive = ?6, focus = ?7, revision = revision + 1 \
     WHERE mission = ?1 AND session = ?2 AND revision = ?8";
pub(super) const POINTER: &str = "SELECT mission, at FROM pointers WHERE scope = ?1 AND name = ?2";

pub(super) fn lock(tx: &SqliteTx<'_>, id: &MissionId, at: Timestamp) -> Result<(), StoreError> {
    // SQLite has one writer at a time: whoever has begun to write has locked everything.
    let sql = "INSERT INTO missions (id, created_at) VALUES (?1, ?2) ON CONFLICT (id) DO NOTHING";
    tx.run(sql, params![id.as_str(), at.0])?;
    Ok(())
}

pub(super) fn list(tx: &SqliteTx<'_>) -> Result<Vec<Mission>, StoreError> {
    let sql = "SELECT id, created_at FROM missions ORDER BY id";
    tx.all("missions", sql, [], read_mission)
}

pub(super) fn get(tx: &SqliteTx<'_>, id: &str) -> Result<Option<Mission>, StoreError> {
    tx.first("missions", BY_ID, [id], read_mission)
}

fn read_mission(cells: &mut Cells<'_>) -> Result<Mission, StoreError> {
    Ok(Mission {
        id: cells.text()?,
        created_at: cells.time()?,
    })
}

pub(super) fn one(
    tx: &SqliteTx<'_>,
    mission: &str,
    session: SessionId,
) -> Result<Option<StoredParticipant>, StoreError> {
    tx.first(
        "participants",
        ONE,
        params![mission, session.to_string()],
        read,
    )
}

pub(super) fn of_mission(
    tx: &SqliteTx<'_>,
    mission: &str,
) -> Result<Vec<StoredParticipant>, StoreError> {
    tx.all("participants", OF_MISSION, [mission], read)
}

pub(super) fn of_session(
    tx: &SqliteTx<'_>,
    session: SessionId,
) -> Result<Vec<StoredParticipant>, StoreError> {
    tx.all("participants", OF_SESSION, [session.to_string()], read)
}

pub(super) fn every(tx: &SqliteTx<'_>) -> Result<Vec<StoredParticipant>, StoreError> {
    tx.all("participants", EVERY, [], read)
}

pub(super) fn insert(tx: &SqliteTx<'_>, participant: &Participant) -> Result<(), StoreError> {
    let row = participant.stored();
    let sql = "INSERT INTO participants (mission, session, participant, role, joined_at, active_at, \
         drive, focus, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    tx.run(
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
            tx.count("revision", row.revision)?,
        ],
    )?;
    Ok(())
}

pub(super) fn update(tx: &SqliteTx<'_>, participant: &Participant) -> Result<(), StoreError> {
    let row = participant.stored();
    let changed = tx.run(
        UPDATE,
        params![
            row.mission,
            row.session.to_string(),
            row.participant,
            row.role,
            row.active_at.0,
            row.drive,
            row.focus,
            tx.count("revision", row.revision)?,
        ],
    )?;
    match changed {
        0 => Err(StoreError::Conflict),
        _ => Ok(()),
    }
}

pub(super) fn remove(
    tx: &SqliteTx<'_>,
    mission: &str,
    session: SessionId,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM participants WHERE mission = ?1 AND session = ?2";
    let removed = tx.run(sql, params![mission, session.to_string()])?;
    Ok(removed > 0)
}

pub(super) fn pointer(tx: &SqliteTx<'_>, scope: &Scope) -> Result<Option<Pointer>, StoreError> {
    let key = (scope.kind(), scope.name());
    tx.first("pointers", POINTER, key, |cells| {
        Ok(Pointer {
            scope: scope.clone(),
            mission: cells.text()?,
            at: cells.time()?,
        })
    })
}

pub(super) fn set_pointer(
    tx: &SqliteTx<'_>,
    scope: &Scope,
    mission: Option<&MissionId>,
    at: Timestamp,
) -> Result<(), StoreError> {
    let (kind, name) = (scope.kind(), scope.name());
    let changed = match mission {
        // Setting what is set already leaves its time alone.
        Some(mission) => tx.run(
            "INSERT INTO pointers (scope, name, mission, at) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (scope, name) DO UPDATE SET mission = excluded.mission, at = excluded.at \
             WHERE mission <> excluded.mission",
            params![kind, name, mission.as_str(), at.0],
        ),
        None => tx.run(
            "DELETE FROM pointers WHERE scope = ?1 AND name = ?2",
            params![kind, name],
        ),
    };
    changed.map(|_| ())
}

pub(super) fn list_pointers(tx: &SqliteTx<'_>) -> Result<Vec<Pointer>, StoreError> {
    let sql = "SELECT scope, name, mission, at FROM pointers ORDER BY scope, name";
    tx.all("pointers", sql, [], |cells| {
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
