//! Claude Code (seen with 2.1.325 and 2.1.197).
//!
//! `/clear` changes the conversation of a live process: an end of the old one, then a start of the new
//! one. Resuming an unknown conversation sends an end without a start. A subagent's events carry the
//! session's own id and an `agent_id`. At the start of a resumed conversation the transcript's path may be
//! wrong (it is formed from the present directory); from the first prompt on it is right. The
//! registry of live processes survives kill -9, so it says which process it was, not that it lives.

use std::ffi::OsString;

use serde_json::{Value, json};
use tenure_core::agent_event::{Happening, Subagent};
use tenure_core::process::Process;
use tenure_core::session::Doing;

use crate::adapter::{Adapter, Failed, Registry, Turn, words};
use crate::payload::Payload;
use crate::report::{Answer, COMMON, Report, Tool, Tools};

const TOOLS: Tools = Tools {
    writers: &[
        ("Write", "tool_input.file_path"),
        ("Edit", "tool_input.file_path"),
        ("MultiEdit", "tool_input.file_path"),
        ("NotebookEdit", "tool_input.notebook_path"),
    ],
    shell: "Bash",
};

pub struct Claude;

impl Adapter for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn read(&self, event: &[u8]) -> Report {
        let mut payload = Payload::read(event, COMMON);
        let mut report = Report::begin(&mut payload);
        report.what = happening(&report.name, &mut payload);
        report.subagent = subagent(&mut payload);
        report.doing = doing(&report.name, &mut payload).filter(|_| report.subagent.is_none());
        let starts_resumed = payload.text("source").as_deref() == Some("resume");
        if !starts_resumed && report.subagent.is_none() && names_transcript(&report.name) {
            report.transcript = payload.path("transcript_path");
        }
        report.tool = tool(&report.name, &mut payload);
        let channel = matches!(
            report.name.as_str(),
            "SessionStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse"
        );
        report.reaches_model = channel && report.subagent.is_none();
        report.finish(payload)
    }

    fn answer(&self, event: &str, answer: &Answer) -> Option<Value> {
        hook_answer(event, answer)
    }

    fn pid_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_PID")
    }

    fn registry(&self) -> Option<Registry> {
        Some(Registry {
            variable: "CLAUDE_CONFIG_DIR",
            home: ".claude",
            folder: "sessions",
            conversation: "sessionId",
            names,
        })
    }

    fn env_file_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_ENV_FILE")
    }

    fn command(&self, turn: &Turn<'_>) -> Option<Vec<OsString>> {
        let mut line = words(["claude"]);
        if let Some(id) = turn.resume {
            line.extend(words(["--resume", id.as_str()]));
        }
        if let Some(prompt) = turn.prompt {
            line.extend(words(["-p", prompt, "--output-format", "stream-json"]));
            line.extend(words(["--verbose"]));
        }
        Some(line)
    }

    fn is_unknown(&self, failed: &Failed<'_>) -> bool {
        failed.code == 1
            && failed
                .stderr
                .contains("No conversation found with session ID:")
    }
}

pub(crate) fn happening(name: &str, payload: &mut Payload) -> Happening {
    match name {
        "SessionStart" => match payload.text("source").as_deref() {
            Some("fork") => Happening::Fork,
            _ => Happening::Start,
        },
        "SessionEnd" => {
            let reason = payload.words("reason").unwrap_or_default();
            Happening::End {
                // These go on in the same process with another conversation.
                ends_worker: !matches!(reason.as_str(), "clear" | "resume"),
                reason,
            }
        }
        "SubagentStart" => Happening::SubagentStart,
        "SubagentStop" => Happening::SubagentStop,
        _ => Happening::Other,
    }
}

/// `agent_type` alone is also there for a session that was started as a certain kind of agent.
pub(crate) fn subagent(payload: &mut Payload) -> Option<Subagent> {
    let id = payload.words("agent_id")?;
    let kind = payload.words("agent_type");
    Some(Subagent { id, kind })
}

fn doing(name: &str, payload: &mut Payload) -> Option<Doing> {
    match name {
        "SessionStart" => match payload.text("source").as_deref() {
            Some("compact") => None,
            _ => Some(Doing::Idle),
        },
        "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure"
        | "PostToolBatch" | "PermissionDenied" | "PreCompact" => Some(Doing::Busy),
        "PermissionRequest" | "Elicitation" => Some(Doing::Waiting),
        "Notification" => match payload.text("notification_type").as_deref() {
            Some("idle_prompt") => Some(Doing::Idle),
            Some("permission_prompt" | "elicitation_dialog") => Some(Doing::Waiting),
            _ => None,
        },
        "Stop" | "StopFailure" => Some(Doing::Idle),
        _ => None,
    }
}

pub(crate) fn names_transcript(name: &str) -> bool {
    matches!(
        name,
        "SessionStart" | "UserPromptSubmit" | "Stop" | "SessionEnd"
    )
}

pub(crate) fn tool(event: &str, payload: &mut Payload) -> Option<Tool> {
    let before = match event {
        "PreToolUse" => true,
        "PostToolUse" => false,
        _ => return None,
    };
    Tool::read(payload, before, &TOOLS)
}

/// The answer in the shape that Claude Code and Codex share.
pub(crate) fn hook_answer(event: &str, answer: &Answer) -> Option<Value> {
    let mut said = serde_json::Map::new();
    let mut specific = serde_json::Map::new();
    if let Some(reason) = answer.block.as_ref().filter(|_| event == "PreToolUse") {
        specific.insert("permissionDecision".into(), json!("deny"));
        specific.insert("permissionDecisionReason".into(), json!(reason));
    }
    if let Some(context) = &answer.context {
        specific.insert("additionalContext".into(), json!(context));
    }
    if !specific.is_empty() {
        specific.insert("hookEventName".into(), json!(event));
        said.insert("hookSpecificOutput".into(), Value::Object(specific));
    }
    if let Some(message) = &answer.message {
        said.insert("systemMessage".into(), json!(message));
    }
    (!said.is_empty()).then_some(Value::Object(said))
}

/// `procStart` is the process's start in ticks, as text.
fn names(text: &str, process: &Process) -> bool {
    let Ok(entry) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    let start = match &entry["procStart"] {
        Value::String(start) => start.parse::<u64>().ok(),
        other => other.as_u64(),
    };
    let same_start =
        start.is_some_and(|start| process.start.shifted || start == process.start.ticks);
    entry["pid"].as_u64() == Some(u64::from(process.pid)) && same_start
}
