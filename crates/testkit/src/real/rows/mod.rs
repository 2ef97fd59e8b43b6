//! How the real agents differ from outside, with one file each. What tenure's own adapter knows
//! (settings, events, the message for an unknown conversation) is not repeated here.

pub(super) mod claude;
pub(super) mod codex;
pub(super) mod gemini;
pub(super) mod opencode;
pub(super) mod qwen;

use std::path::Path;

use serde_json::Value;

/// The key for every agent. Claude Code asks before it uses a key that it does not know.
pub(super) const KEY: &str = "dummy-key-of-the-mock-model";

const NO_UUID: &str = "00000000-0000-4000-8000-000000000000";

/// One agent in a pinned version.
pub(super) struct AgentCase {
    /// The name of its program, which is also tenure's name for it.
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    /// Prepares a home for these projects and a model at this address.
    pub(super) prepare: fn(&Path, &[&Path], &str),
    /// The executables that it starts, each below the previous one. The last one is the agent.
    pub(super) children: &'static [&'static str],
    /// The arguments before a prompt, with its own sandbox or without.
    pub(super) words: fn(bool) -> Vec<&'static str>,
    /// The argument before the id of a conversation to resume.
    pub(super) resume: &'static str,
    /// A valid id that no conversation has.
    pub(super) nobody: &'static str,
    pub(super) prompt: fn(&str) -> Vec<&str>,
    /// Which of its events has the conversation's id, and where.
    pub(super) starts: fn(&Value) -> bool,
    pub(super) id: &'static str,
    /// Whether a headless turn reports its end to hooks.
    pub(super) says_end: bool,
    /// Whether it keeps each conversation in a file of its own.
    pub(super) keeps_files: bool,
    /// What the model said last.
    pub(super) said: fn(&[Value]) -> Option<String>,
}

/// The last text at this path in events of this type.
fn last(events: &[Value], of: &str, place: &str) -> Option<String> {
    let texts = events.iter().filter(|event| event["type"] == of);
    let mut texts = texts.filter_map(|event| event.pointer(place)?.as_str());
    texts.next_back().map(str::to_owned)
}
