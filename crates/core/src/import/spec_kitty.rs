//! spec-kitty: a directory with one `missions/ID/session.json` for each mission and a pointer to the active one.

use super::json::{needed, object, text};
use super::{ImportEntry, NotTaken, PastParticipant, Record, time};
use crate::mission::{ApiUrl, Drive, Focus, MissionId, MissionRunId, ParticipantId, Role};

/// The file of a mission; `folder` is the name of its directory.
pub fn mission(folder: &str, content: &str, source: &str) -> ImportEntry {
    ImportEntry {
        name: folder.to_owned(),
        source: source.to_owned(),
        content: participant(folder, content),
    }
}

fn participant(folder: &str, content: &str) -> Result<Record, NotTaken> {
    let fields = object(content)?;
    let mission = MissionId::parse(needed(&fields, "mission_id")?)?;
    if mission.as_str() != folder {
        return NotTaken::refused(format!(
            "it is the file of mission {mission}, in the directory of another"
        ));
    }
    let joined_at = time("joined_at", needed(&fields, "joined_at")?)?;
    let active_at = match text(&fields, "last_activity_at")? {
        Some(at) => time("last_activity_at", at)?,
        None => joined_at,
    };
    if active_at < joined_at {
        return NotTaken::refused("its last_activity_at is before its joined_at");
    }
    Ok(Record::Participant(Box::new(PastParticipant {
        mission,
        participant: ParticipantId::parse(needed(&fields, "participant_id")?)?,
        role: Role::parse(needed(&fields, "role")?)?,
        joined_at,
        active_at,
        drive: match text(&fields, "drive_intent")? {
            Some(drive) => Drive::parse(drive)?,
            None => Drive::Inactive,
        },
        focus: match text(&fields, "focus")? {
            Some(focus) => Focus::parse(focus)?,
            None => None,
        },
        run_id: text(&fields, "mission_run_id")?
            .map(MissionRunId::parse)
            .transpose()?,
        api_url: text(&fields, "saas_api_url")?
            .map(ApiUrl::parse)
            .transpose()?,
        token: text(&fields, "session_token")?.map(str::to_owned),
    })))
}

/// The file that names the active mission.
pub fn pointer(content: &str, source: &str) -> ImportEntry {
    let read = || {
        let fields = object(content)?;
        match text(&fields, "active_mission_id")? {
            Some(mission) => Ok(Record::Pointer(MissionId::parse(mission)?)),
            None => NotTaken::left("it names no active mission"),
        }
    };
    ImportEntry {
        name: "active mission".to_owned(),
        source: source.to_owned(),
        content: read(),
    }
}
