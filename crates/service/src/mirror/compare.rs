//! Whether a context file belongs to this session, and which fields disagree.
//!
//! The file may have any origin: tenure, PACT, spec-kitty, or a fixture that a test left in a home directory.
//! Every known field is compared. A file that identifies no session does not belong to this one either.

use serde_json::{Map, Value};

use super::content::{SessionContext, outer_id, team};
use crate::mission::view::ParticipantView;
use tenure_core::hint::Hint;
use tenure_core::json_fault::fault_at;
use tenure_core::mission::check::MissionFault;
use tenure_core::time::Timestamp;

/// How much earlier than its registration a file may say that a session started, in milliseconds.
const HEARD_LATE: i64 = 5_000;

/// A context file, as far as it could be read.
#[derive(Debug, Clone)]
pub struct ContextFile {
    pub path: String,
    /// Its content, or why it could not be read.
    pub text: Result<String, String>,
}

impl ContextFile {
    /// Every disagreement with the session.
    pub fn disagreements(&self, context: &SessionContext) -> Vec<MissionFault> {
        match &self.text {
            Ok(text) => disagreements(text, &self.path, context),
            Err(why) => vec![MissionFault {
                mission: None,
                subject: self.path.clone(),
                field: "file",
                value: self.path.clone(),
                why: why.clone(),
                hints: vec![tenure_core::hint::Hint::verb(
                    "whoami",
                    "and use its output instead of this file",
                )],
            }],
        }
    }
}

/// Every field of the file that disagrees with the session.
pub fn disagreements(text: &str, file: &str, context: &SessionContext) -> Vec<MissionFault> {
    let mut found = Comparison {
        file,
        context,
        faults: Vec::new(),
        known: 0,
    };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) => found.compare(&fields),
        Ok(_) => found.add("file", file, "it is not a JSON object".into()),
        Err(error) => found.add(
            "file",
            file,
            format!("it is not valid JSON ({})", fault_at(&error)),
        ),
    }
    found.faults
}

struct Comparison<'a> {
    file: &'a str,
    context: &'a SessionContext,
    faults: Vec<MissionFault>,
    known: usize,
}

impl Comparison<'_> {
    fn add(&mut self, field: &'static str, value: &str, why: String) {
        self.faults.push(MissionFault {
            mission: None,
            subject: self.file.to_owned(),
            field,
            value: value.to_owned(),
            why,
            hints: vec![Hint::verb(
                "whoami",
                "and use its output instead of this file",
            )],
        });
    }

    fn compare(&mut self, fields: &Map<String, Value>) {
        self.session_id(fields);
        self.project_dir(fields);
        self.started_at(fields);
        self.team_name(fields);
        self.mission(fields);
        self.active_mission(fields);
        self.writer(fields);
        self.end(fields);
        if self.known == 0 && self.faults.is_empty() {
            let why = "it identifies no session: session_id, participant_id and tenure are missing";
            self.add("file", self.file, why.to_owned());
        }
    }

    /// A field as text; a value of any other type is a fault.
    fn text<'b>(&mut self, fields: &'b Map<String, Value>, name: &'static str) -> Option<&'b str> {
        match fields.get(name)? {
            Value::Null => None,
            Value::String(text) => {
                self.known += 1;
                Some(text)
            }
            other => {
                self.add(name, &other.to_string(), "it is not a string".into());
                None
            }
        }
    }

    fn session_id(&mut self, fields: &Map<String, Value>) {
        let Some(named) = self.text(fields, "session_id") else {
            return;
        };
        let session = &self.context.session;
        if named == session.id || Some(named) == session.native_id.as_deref() {
            return;
        }
        let had = session
            .native_ids
            .iter()
            .flatten()
            .any(|one| one.native_id == named);
        let why = if had {
            format!(
                "it is an earlier conversation of this session, which is now in {}",
                outer_id(session)
            )
        } else {
            format!(
                "it belongs to another session; this session is {}",
                outer_id(session)
            )
        };
        self.add("session_id", named, why);
    }

    fn project_dir(&mut self, fields: &Map<String, Value>) {
        let Some(named) = self.text(fields, "project_dir") else {
            return;
        };
        let dir = &self.context.session.dir;
        if named.trim_end_matches('/') != dir.trim_end_matches('/') {
            self.add("project_dir", named, format!("this session works in {dir}"));
        }
    }

    fn started_at(&mut self, fields: &Map<String, Value>) {
        let Some(named) = self.text(fields, "started_at") else {
            return;
        };
        let started = self.context.session.started_at;
        match named.parse::<Timestamp>() {
            Err(error) => self.add("started_at", named, error.why),
            Ok(at) if at.0 < started.0.saturating_sub(HEARD_LATE) => {
                self.add(
                    "started_at",
                    named,
                    format!("this session started at {started}"),
                );
            }
            Ok(at) if at > self.context.read_at => {
                self.add("started_at", named, "it is in the future".into());
            }
            Ok(_) => {}
        }
    }

    fn team_name(&mut self, fields: &Map<String, Value>) {
        let Some(named) = self.text(fields, "team_name") else {
            return;
        };
        if let Some(kept) = team(&self.context.metadata)
            && kept != named
        {
            self.add("team_name", named, format!("this session has {kept:?}"));
        }
    }

    fn mission(&mut self, fields: &Map<String, Value>) {
        let Some(named) = self.text(fields, "mission_id") else {
            return;
        };
        let joined = self
            .context
            .missions
            .iter()
            .find(|one| one.mission == named);
        match joined {
            None => self.add("mission_id", named, "this session has not joined it".into()),
            Some(one) => self.participant(fields, one),
        }
    }

    fn participant(&mut self, fields: &Map<String, Value>, one: &ParticipantView) {
        let session = &self.context.session.handle;
        let expected = [
            ("participant_id", Some(one.participant_id.as_str())),
            ("role", Some(one.role.as_str())),
            ("drive_intent", Some(one.drive)),
            ("focus", one.focus.as_deref()),
        ];
        for (field, is) in expected {
            let named = self.text(fields, field);
            if named != is && fields.contains_key(field) {
                let is = is.unwrap_or("none");
                self.add(
                    field,
                    named.unwrap_or("none"),
                    format!("{session} has {is}"),
                );
            }
        }
        if let Some(named) = self.text(fields, "joined_at") {
            match named.parse::<Timestamp>() {
                Ok(at) if at == one.joined_at => {}
                Ok(_) => self.add(
                    "joined_at",
                    named,
                    format!("{session} joined at {}", one.joined_at),
                ),
                Err(error) => self.add("joined_at", named, error.why),
            }
        }
        if let Some(named) = self.text(fields, "last_activity_at") {
            match named.parse::<Timestamp>() {
                Ok(at) if at >= one.joined_at && at <= self.context.read_at => {}
                Ok(_) => {
                    let why = format!("it is not between {} and now", one.joined_at);
                    self.add("last_activity_at", named, why);
                }
                Err(error) => self.add("last_activity_at", named, error.why),
            }
        }
    }

    fn active_mission(&mut self, fields: &Map<String, Value>) {
        let Some(named) = self.text(fields, "active_mission_id") else {
            return;
        };
        let active = self.context.active.as_ref().map(|(id, _)| id.as_str());
        if active != Some(named) {
            let is = active.unwrap_or("none");
            self.add(
                "active_mission_id",
                named,
                format!("the active mission is {is}"),
            );
        }
    }

    /// Compares what tenure itself wrote about the session and its process.
    fn writer(&mut self, fields: &Map<String, Value>) {
        let Some(Value::Object(writer)) = fields.get("tenure") else {
            return;
        };
        self.known += 1;
        let session = &self.context.session;
        let process = &session.process;
        let expected = [
            ("tenure.session", "session", Value::from(session.id.clone())),
            ("tenure.life", "life", Value::from(process.life)),
            ("tenure.pid", "pid", Value::from(process.pid)),
            (
                "tenure.start_ticks",
                "start_ticks",
                Value::from(process.start_ticks),
            ),
            (
                "tenure.boot_id",
                "boot_id",
                Value::from(process.boot_id.clone()),
            ),
            (
                "tenure.host_id",
                "host_id",
                Value::from(process.host_id.clone()),
            ),
        ];
        for (field, name, is) in expected {
            let named = writer.get(name).unwrap_or(&Value::Null);
            if *named != is {
                let shown = named
                    .as_str()
                    .map_or_else(|| named.to_string(), str::to_owned);
                let is = is.as_str().map_or_else(|| is.to_string(), str::to_owned);
                self.add(field, &shown, format!("{} has {is}", session.handle));
            }
        }
    }

    fn end(&mut self, fields: &Map<String, Value>) {
        let marked = fields.get("ended_at").is_some_and(|at| !at.is_null());
        let nested = !fields
            .get("session")
            .map_or(&Value::Null, |one| &one["ended_at"])
            .is_null();
        if (marked || nested) && self.context.session.ended_at.is_none() {
            self.add("ended_at", "set", "this session has not ended".into());
        }
    }
}
