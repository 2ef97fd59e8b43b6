//! A failure, ready for any surface.

use serde_json::{Map, Value, json};
use tenure_core::hint::Hint;
use tenure_core::id::Malformed;
use tenure_core::notice::Pending;
use tenure_core::store::StoreError;

use super::class::Class;
use super::reader::Reader;
use crate::error::Error;
use crate::transact::Failure;

/// A refusal or failure: the error body of every surface.
#[derive(Debug, Clone)]
pub struct Problem {
    pub class: Class,
    /// For scripts to match on.
    pub kind: String,
    pub message: String,
    /// The message for people, if it has several lines.
    pub lines: Vec<String>,
    pub hints: Vec<Hint>,
    /// More data for programs.
    pub data: Map<String, Value>,
    pub notices: Pending,
    pub reader: Reader,
}

impl Problem {
    /// A failure outside any use case.
    pub fn new(class: Class, kind: &str, message: impl Into<String>, hint: Hint) -> Self {
        Self {
            class,
            kind: kind.to_owned(),
            message: message.into(),
            lines: Vec::new(),
            hints: vec![hint],
            data: Map::new(),
            notices: Pending::default(),
            reader: Reader::default(),
        }
    }

    /// The hints that its reader may see.
    pub fn shown_hints(&self) -> Vec<Hint> {
        self.reader.hints(&self.hints)
    }

    /// The store that was searched, if that may explain why something was not found.
    pub fn asked_store(&self) -> Option<&str> {
        let store = self
            .data
            .get("store")
            .filter(|_| self.class == Class::NotFound);
        store.and_then(Value::as_str)
    }

    /// The body, with only what its reader may see.
    pub fn body(&self) -> Value {
        let mut parts = Map::new();
        parts.insert("error".into(), Value::Object(self.error()));
        super::body(parts, &self.notices)
    }

    /// The error object alone.
    pub fn error(&self) -> Map<String, Value> {
        let mut error = Map::new();
        error.insert("kind".into(), json!(self.kind));
        error.insert("message".into(), json!(self.message));
        error.insert("hints".into(), json!(self.shown_hints()));
        error.extend(self.data.clone());
        error
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self {
            class: error.class(),
            kind: error.kind().to_owned(),
            message: error.to_string(),
            lines: error.lines(),
            hints: error.hints(),
            data: error_data(&error),
            notices: Pending::default(),
            reader: Reader::default(),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let mut problem = Self {
            notices: failure.notices,
            reader: failure.reader,
            ..failure.error.into()
        };
        if let Some(store) = failure.store {
            problem.data.insert("store".into(), json!(store));
        }
        problem
    }
}

impl From<Malformed> for Problem {
    fn from(error: Malformed) -> Self {
        Error::from(error).into()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

/// The data that programs get besides the message.
fn error_data(error: &Error) -> Map<String, Value> {
    let mut data = Map::new();
    if let Some(claim) = error.claim() {
        data.insert("key".into(), json!(claim.key));
        data.insert("epoch".into(), json!(claim.epoch));
        data.insert("holder".into(), json!(claim.holder));
        data.insert("since".into(), json!(claim.acquired_at));
        data.insert("note".into(), json!(claim.note));
        data.insert("lease_until".into(), json!(claim.lease_until));
    }
    match error {
        Error::Store(StoreError::OutcomeUnknown { request, .. }) => {
            data.insert("outcome".into(), json!("unknown"));
            if let Some(request) = request {
                data.insert("request".into(), json!(request));
            }
        }
        Error::Store(StoreError::Moved { to, .. }) => {
            data.insert("moved_to".into(), json!(to));
        }
        Error::Lost { epoch, .. } => {
            data.insert("lost_epoch".into(), json!(epoch));
        }
        Error::Suspect { left, .. } => {
            let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            data.insert("left_ms".into(), json!(millis));
        }
        Error::AlreadyHeld { key, epoch } => {
            data.insert("key".into(), json!(key));
            data.insert("epoch".into(), json!(epoch));
        }
        Error::Free { key } => {
            data.insert("key".into(), json!(key));
        }
        Error::LeftRunning {
            key,
            handle,
            survivors,
        } => {
            data.insert("key".into(), json!(key));
            data.insert("session".into(), json!(handle));
            data.insert("survivors".into(), json!(survivors));
        }
        Error::Run(error) => data.extend(error.data()),
        Error::Queue(error) => data.extend(error.data()),
        Error::TimedOut { why, .. } => {
            data.insert("waited_for".into(), json!(why.kind()));
        }
        Error::Ambiguous { candidates, .. } => {
            data.insert("candidates".into(), json!(candidates));
        }
        Error::CannotTell { handle, key, .. } => {
            data.insert("session".into(), json!(handle));
            data.insert("key".into(), json!(key));
        }
        Error::NotLive { handle, .. }
        | Error::NothingToDismiss { handle, .. }
        | Error::Unread { handle, .. } => {
            data.insert("session".into(), json!(handle));
        }
        Error::Faulty { faults, .. } => {
            data.insert("faults".into(), json!(faults));
        }
        Error::NoMission { passed_over, .. } => {
            data.insert("passed_over".into(), json!(passed_over));
        }
        Error::Revised { named, now } => {
            data.insert("named_revision".into(), json!(named));
            data.insert("conversation".into(), json!(now));
        }
        Error::InRun {
            agent, item, run, ..
        } => {
            data.insert("agent".into(), json!(agent.as_str()));
            data.insert("item".into(), json!(item));
            data.insert("run".into(), json!(run));
        }
        Error::Linked { item, root } => {
            data.insert("item".into(), json!(item));
            data.insert("root".into(), json!(root));
        }
        Error::Collision {
            mission,
            focus,
            drivers,
        } => {
            data.insert("mission".into(), json!(mission));
            data.insert("focus".into(), json!(focus));
            data.insert("drivers".into(), json!(drivers));
        }
        _ => {}
    }
    data
}
