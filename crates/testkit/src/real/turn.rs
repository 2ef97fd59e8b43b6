//! What came of a turn, in the words that all agents share.

use std::fmt;

use serde_json::Value;

use super::kind::Real;
use crate::output::Output;

/// A turn that is over.
#[derive(Debug, Clone)]
pub struct Turn {
    kind: Real,
    /// The exit code and everything that was said.
    pub output: Output,
    /// Every line of standard output that is JSON.
    pub events: Vec<Value>,
}

impl Turn {
    pub(super) fn new(kind: Real, output: Output) -> Turn {
        let events = events(&output.stdout);
        Turn {
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

    /// The agent's own id of the conversation.
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
        let said = match self.kind {
            Real::Claude | Real::ClaudeOld => self
                .of_type("result")
                .filter_map(|event| event["result"].as_str())
                .next_back()
                .map(str::to_owned),
            Real::Codex => self
                .of_type("item.completed")
                .filter(|event| event["item"]["type"] == "agent_message")
                .filter_map(|event| event["item"]["text"].as_str())
                .next_back()
                .map(str::to_owned),
            Real::Gemini => {
                // It comes in pieces, and a tool call stands between two texts.
                let after = self
                    .events
                    .iter()
                    .rposition(|one| one["type"] == "tool_result");
                let pieces = self.events[after.unwrap_or(0)..].iter();
                let of_model = pieces
                    .filter(|one| one["type"] == "message" && one["role"] == "assistant")
                    .filter_map(|one| one["content"].as_str());
                Some(of_model.collect())
            }
            Real::Opencode => self
                .of_type("text")
                .filter_map(|event| event["part"]["text"].as_str())
                .next_back()
                .map(str::to_owned),
        };
        match said {
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

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, version) = (self.kind.name(), self.kind.version());
        write!(f, "{name} {version}\n{}", self.output)
    }
}

/// The lines that are JSON objects; one that is still being written is none.
pub(super) fn events(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(Value::is_object)
        .collect()
}

/// The id of the conversation, where it was said already.
///
/// Claude Code's first lines can carry an id that means nothing; `init` has the right one.
pub(super) fn id(kind: Real, events: &[Value]) -> Option<String> {
    let (is, key): (fn(&Value) -> bool, &str) = match kind {
        Real::Claude | Real::ClaudeOld => (|event| event["subtype"] == "init", "session_id"),
        Real::Codex => (|event| event["type"] == "thread.started", "thread_id"),
        Real::Gemini => (|event| event["type"] == "init", "session_id"),
        Real::Opencode => (|_| true, "sessionID"),
    };
    let event = events.iter().find(|event| is(event))?;
    event[key].as_str().map(str::to_owned)
}
