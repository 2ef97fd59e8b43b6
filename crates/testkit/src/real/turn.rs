//! The result of a turn, in terms that all agents share.

use std::fmt;

use serde_json::Value;

use super::kind::Real;
use crate::output::Output;

/// A turn that is over.
#[derive(Debug, Clone)]
pub struct FinishedTurn {
    kind: Real,
    /// The exit code and all output.
    pub output: Output,
    /// Every line of standard output that is JSON.
    pub events: Vec<Value>,
}

impl FinishedTurn {
    pub(super) fn new(kind: Real, output: Output) -> FinishedTurn {
        let events = events(&output.stdout);
        FinishedTurn {
            kind,
            output,
            events,
        }
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.output.code == 0, "expected success\n{self}");
        self
    }

    /// Asserts that it failed with this code.
    #[track_caller]
    pub fn fails(self, code: i32) -> Self {
        assert!(
            self.output.code == code,
            "expected exit code {code}\n{self}"
        );
        self
    }

    /// The agent's own id for the conversation.
    #[track_caller]
    pub fn id(&self) -> String {
        match id(self.kind, &self.events) {
            Some(id) => id,
            None => panic!("no id of a conversation was said\n{self}"),
        }
    }

    /// What the model said last.
    #[track_caller]
    pub fn said(&self) -> String {
        match (self.kind.row().said)(&self.events) {
            Some(text) => text,
            None => panic!("the model said nothing\n{self}"),
        }
    }

    /// The events of this type, in order.
    pub fn of_type<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
        self.events
            .iter()
            .filter(move |event| event["type"] == name)
    }
}

impl fmt::Display for FinishedTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, version) = (self.kind.name(), self.kind.version());
        write!(f, "{name} {version}\n{}", self.output)
    }
}

/// The lines that are JSON objects; an incomplete line is skipped.
pub(super) fn events(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(Value::is_object)
        .collect()
}

/// The id of the conversation, if it was reported already.
pub(super) fn id(kind: Real, events: &[Value]) -> Option<String> {
    let row = kind.row();
    let event = events.iter().find(|event| (row.starts)(event))?;
    event[row.id].as_str().map(str::to_owned)
}
