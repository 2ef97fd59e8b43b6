//! The content of a mirror, in each format.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::mission::view::ParticipantView;
use crate::session::view::SessionView;
use tenure_core::id::Malformed;
use tenure_core::time::Timestamp;

/// The format of a mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Our own: the session as every answer shows it, with its metadata and missions.
    Json,
    /// The four fields that PACT reads.
    Pact,
    /// A spec-kitty directory: one file with ten fields per mission, and the pointer.
    SpecKitty,
}

impl Format {
    /// Parses the name used in the settings.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        match text {
            "json" => Ok(Format::Json),
            "pact" => Ok(Format::Pact),
            "spec-kitty" => Ok(Format::SpecKitty),
            _ => Err(Malformed::new(
                "format of a mirror",
                text,
                "expected json, pact or spec-kitty",
            )),
        }
    }

    /// Whether its path names a directory.
    pub fn is_directory(self) -> bool {
        self == Format::SpecKitty
    }
}

/// A session's context: what a mirror shows of it.
#[derive(Debug, Clone)]
pub struct SessionContext {
    pub session: SessionView,
    pub metadata: BTreeMap<String, String>,
    /// The missions that it takes part in.
    pub missions: Vec<ParticipantView>,
    /// The mission that its own pointer, or its user's, names, and since when.
    pub active: Option<(String, Timestamp)>,
    pub read_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its path below the mirror's directory; none if the mirror is one file.
    pub below: Option<String>,
    pub fields: Map<String, Value>,
    /// The field that identifies the owner. Other programs' fields are kept while its value stays the same.
    identity: &'static str,
}

/// Fields that no setting changes: they identify the session and who wrote the file.
pub const OWN_FIELDS: &[&str] = &[
    "tenure",
    "v",
    "id",
    "session",
    "session_id",
    "participant_id",
    "mission_id",
    "ended_at",
];

/// Fields that change without an event in the log. A file that differs only in these is right.
const VOLATILE: &[&str] = &[
    "written_at",
    "last_activity_at",
    "last_seen_at",
    "lease_until",
    "state",
    "why",
    "activity",
    "activity_since",
    "activity_by",
    "activity_why",
    "activity_until",
    "branch_at",
    "asks",
    "finished",
    "place",
    "waits_for",
    "collides_with",
    "lost",
];

/// Fields that other programs may fill in; ours count only if we have a value.
const THEIRS: &[&str] = &["mission_run_id", "session_token", "saas_api_url"];

impl Document {
    /// The mission that it shows, if it is the file of a participant.
    pub fn mission(&self) -> Option<&str> {
        self.fields.get("mission_id")?.as_str()
    }

    /// Shows a participant's token, or that it was cleared.
    pub fn show_token(&mut self, token: &str) {
        let shown = Some(token).filter(|token| !token.is_empty());
        self.fields.insert("session_token".into(), json!(shown));
    }

    /// The text of the file, including what others wrote into the file of the same session or participant.
    pub fn text(&self, present: Option<&str>) -> String {
        let before = present.and_then(object);
        let mut text = serde_json::to_string_pretty(&self.merged(before)).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Whether a file says this already, apart from what changes all the time.
    pub fn is_in(&self, present: &str) -> bool {
        let Some(before) = object(present) else {
            return false;
        };
        let steady = |fields: Map<String, Value>| {
            let mut fields = Value::Object(fields);
            drop_volatile(&mut fields);
            fields
        };
        steady(self.merged(Some(before.clone()))) == steady(before)
    }

    fn merged(&self, before: Option<Map<String, Value>>) -> Map<String, Value> {
        let mut fields = self.fields.clone();
        let same = |before: &Map<String, Value>| {
            before.get(self.identity).is_some()
                && before.get(self.identity) == fields.get(self.identity)
        };
        if let Some(before) = before.filter(same) {
            for (name, value) in before {
                let unfilled =
                    THEIRS.contains(&name.as_str()) && fields.get(&name) == Some(&json!(""));
                if unfilled || (!fields.contains_key(&name) && name != "ended_at") {
                    fields.insert(name, value);
                }
            }
        }
        fields
    }
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

fn drop_volatile(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !VOLATILE.contains(&name.as_str()));
            fields.values_mut().for_each(drop_volatile);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_volatile),
        _ => {}
    }
}

/// The session that a file was written for, if tenure wrote it.
pub fn writer_of(text: &str) -> Option<String> {
    let file: Value = serde_json::from_str(text).ok()?;
    Some(file["tenure"]["session"].as_str()?.to_owned())
}

/// The files of a mirror. `fields` are the user's own; a value in the session's metadata goes before them.
pub fn documents(
    format: Format,
    context: &SessionContext,
    fields: &[(String, String)],
) -> Vec<Document> {
    let kept = |name: &str| match name {
        "team_name" => team(&context.metadata).is_some(),
        name => context.metadata.contains_key(name),
    };
    let mut documents = formatted(format, context);
    // The pointer is about the user, not about a session.
    for document in documents.iter_mut().filter(|one| one.identity != POINTER) {
        for (name, value) in fields.iter().filter(|(name, _)| !kept(name)) {
            document.fields.insert(name.clone(), json!(value));
        }
    }
    documents
}

fn formatted(format: Format, context: &SessionContext) -> Vec<Document> {
    match format {
        Format::Json => vec![ours(context)],
        Format::Pact => vec![pact(context)],
        Format::SpecKitty => {
            let missions = context.missions.iter().map(|one| spec_kitty(context, one));
            let pointer = spec_kitty_pointer(context);
            missions.chain([pointer]).collect()
        }
    }
}

/// The id under which the agent's own tools know a session.
pub fn outer_id(session: &SessionView) -> &str {
    session.native_id.as_deref().unwrap_or(&session.id)
}

fn document(
    context: &SessionContext,
    below: Option<String>,
    identity: &'static str,
    fields: Value,
) -> Document {
    let mut fields = match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if let Some(ended_at) = context.session.ended_at {
        fields.insert("ended_at".into(), json!(ended_at));
    }
    fields.insert("tenure".into(), writer(context));
    Document {
        below,
        fields,
        identity,
    }
}

/// Who wrote the file, and for which process. Without it a stale file could not be recognised.
fn writer(context: &SessionContext) -> Value {
    let session = &context.session;
    json!({
        "session": session.id,
        "handle": session.handle,
        "life": session.process.life,
        "pid": session.process.pid,
        "start_ticks": session.process.start_ticks,
        "boot_id": session.process.boot_id,
        "host_id": session.process.host_id,
        "written_at": context.read_at,
    })
}

fn ours(context: &SessionContext) -> Document {
    let fields = json!({
        "v": 1,
        "id": context.session.id,
        "session": context.session,
        "meta": context.metadata,
        "missions": context.missions,
        "active_mission": context.active.as_ref().map(|(id, _)| id),
    });
    document(context, None, "id", fields)
}

/// PACT's team, which is a metadata value of the session.
pub fn team(metadata: &BTreeMap<String, String>) -> Option<&str> {
    let kept = metadata.get("team_name").or_else(|| metadata.get("team"));
    kept.map(String::as_str)
}

fn pact(context: &SessionContext) -> Document {
    let session = &context.session;
    let fields = json!({
        "team_name": team(&context.metadata).unwrap_or_default(),
        "session_id": outer_id(session),
        "project_dir": session.dir,
        "started_at": session.started_at,
    });
    document(context, None, "session_id", fields)
}

fn spec_kitty(context: &SessionContext, one: &ParticipantView) -> Document {
    let kept = |name: &str| context.metadata.get(name).cloned().unwrap_or_default();
    let fields = json!({
        "mission_id": one.mission,
        "mission_run_id": one.run_id.clone().unwrap_or_else(|| kept("mission_run_id")),
        "participant_id": one.participant_id,
        "role": one.role,
        "joined_at": one.joined_at,
        "last_activity_at": one.last_activity_at,
        "drive_intent": one.drive,
        "focus": one.focus,
        "session_token": "",
        "saas_api_url": one.api_url.clone().unwrap_or_else(|| kept("saas_api_url")),
    });
    let below = format!("missions/{}/session.json", one.mission);
    document(context, Some(below), "participant_id", fields)
}

/// The identity of the pointer file: only its writer.
const POINTER: &str = "tenure";

fn spec_kitty_pointer(context: &SessionContext) -> Document {
    let live = context.session.ended_at.is_none();
    let active = context.active.as_ref().filter(|_| live);
    let fields = json!({
        "active_mission_id": active.map(|(id, _)| id),
        "last_switched_at": active.map(|(_, at)| at),
    });
    document(context, Some("session.json".into()), POINTER, fields)
}

#[cfg(test)]
mod tests;
