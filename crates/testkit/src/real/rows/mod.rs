//! What is different about each real agent from outside: one file each. What tenure's own row says (its settings,
//! its events, the words of an unknown conversation) is not said again here.

pub(super) mod claude;
pub(super) mod codex;
pub(super) mod gemini;
pub(super) mod opencode;
pub(super) mod qwen;

use std::path::Path;

use serde_json::Value;

/// The key that every agent is given; Claude Code asks before it uses one that it does not know.
pub(super) const KEY: &str = "dummy-key-of-the-mock-model";

const NO_UUID: &str = "00000000-0000-4000-8000-000000000000";

/// One agent of a pinned version.
pub(super) struct Row {
    /// The name of its program, which is also what tenure calls it.
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    /// Sets up a home for these projects and a model at this address.
    pub(super) prepare: fn(&Path, &[&Path], &str),
    /// The executables of what it starts one below the other, the last of which is the agent.
    pub(super) children: &'static [&'static str],
    /// The words before a prompt, in its own sandbox or without.
    pub(super) words: fn(bool) -> Vec<&'static str>,
    /// The word before the id of a conversation to go on with.
    pub(super) resume: &'static str,
    /// An id that no conversation has.
    pub(super) nobody: &'static str,
    pub(super) prompt: fn(&str) -> Vec<&str>,
    /// Which of its events says the conversation's id, and where.
    pub(super) starts: fn(&Value) -> bool,
    pub(super) id: &'static str,
    /// Whether a turn without a person at it says its end to hooks.
    pub(super) says_end: bool,
    /// What the model said last.
    pub(super) said: fn(&[Value]) -> Option<String>,
}

/// The last text at this place in events of this type.
fn last(events: &[Value], of: &str, place: &str) -> Option<String> {
    let texts = events.iter().filter(|event| event["type"] == of);
    let mut texts = texts.filter_map(|event| event.pointer(place)?.as_str());
    texts.next_back().map(str::to_owned)
}
