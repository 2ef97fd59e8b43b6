//! Codex CLI (seen with 0.166.0).
//!
//! A node wrapper starts the real program, which outlives the wrapper; the nearest ancestor of a hook is
//! the real one. Hooks have the shape of Claude Code's and carry the conversation on stdin only. An
//! unknown conversation prints nothing on stdout and fires no hook; an unknown name silently starts a new
//! conversation.

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::service::Happening;
use tenure_core::session::Doing;

use crate::adapter::{Adapter, Failed, Turn, words};
use crate::claude;
use crate::payload::Payload;
use crate::report::{Answer, COMMON, Report};

/// Codex CLI.
pub struct Codex;

impl Adapter for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn read(&self, event: &[u8]) -> Report {
        let mut payload = Payload::read(event, COMMON);
        let mut report = Report::begin(&mut payload);
        report.what = happening(&report.name, &mut payload);
        report.subagent = claude::subagent(&mut payload);
        report.doing = doing(&report.name).filter(|_| report.subagent.is_none());
        if report.subagent.is_none() && names_transcript(&report.name) {
            report.transcript = payload.path("transcript_path");
        }
        report.tool = claude::tool(&report.name, &mut payload);
        let channel = matches!(
            report.name.as_str(),
            "SessionStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse"
        );
        report.reaches_model = channel && report.subagent.is_none();
        report.finish(payload)
    }

    fn answer(&self, event: &str, answer: &Answer) -> Option<Value> {
        claude::hook_answer(event, answer)
    }

    fn command(&self, turn: &Turn<'_>) -> Option<Vec<OsString>> {
        let mut line = words(["codex"]);
        match (turn.prompt, turn.resume) {
            (None, None) => {}
            (None, Some(id)) => line.extend(words(["resume", id.as_str()])),
            (Some(prompt), None) => line.extend(words(["exec", "--json", prompt])),
            (Some(prompt), Some(id)) => {
                line.extend(words(["exec", "resume", "--json", id.as_str(), prompt]));
            }
        }
        Some(line)
    }

    fn is_unknown(&self, failed: &Failed<'_>) -> bool {
        failed.code == 1 && failed.stderr.contains("no rollout found for thread id")
    }
}

fn happening(name: &str, payload: &mut Payload) -> Happening {
    match name {
        "SessionStart" => match payload.text("source").as_deref() {
            Some("fork") => Happening::Fork,
            _ => Happening::Start,
        },
        "SessionEnd" => {
            let reason = payload.words("reason").unwrap_or_default();
            Happening::End {
                ends_worker: !matches!(reason.as_str(), "clear" | "resume"),
                reason,
            }
        }
        "SubagentStart" => Happening::SubagentStart,
        "SubagentStop" => Happening::SubagentStop,
        _ => Happening::Other,
    }
}

fn doing(name: &str) -> Option<Doing> {
    match name {
        "SessionStart" | "Stop" | "Interrupt" => Some(Doing::Idle),
        "UserPromptSubmit" | "PreModelRequest" | "PreToolUse" | "PostToolUse" | "PreCompact" => {
            Some(Doing::Busy)
        }
        "PermissionRequest" => Some(Doing::Waiting),
        _ => None,
    }
}

fn names_transcript(name: &str) -> bool {
    matches!(
        name,
        "SessionStart" | "UserPromptSubmit" | "Stop" | "SessionEnd"
    )
}
