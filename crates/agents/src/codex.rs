//! Codex CLI (seen with 0.166.0).
//!
//! A node wrapper starts the real program, which outlives the wrapper; the nearest ancestor of a hook is
//! the real one. Hooks have the shape of Claude Code's and carry the conversation on stdin only. An
//! unknown conversation prints nothing on stdout and fires no hook; an unknown name silently starts a new
//! conversation. Files are written by patches, which name them line by line: as a tool of its own, or as a
//! command that the shell is given.

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::session::Doing;

use crate::adapter::{Adapter, Failed, Turn, words};
use crate::claude;
use crate::payload::Payload;
use crate::report::{Answer, COMMON, Report, Tool};

pub struct Codex;

impl Adapter for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn read(&self, event: &[u8]) -> Report {
        let mut payload = Payload::read(event, COMMON);
        let mut report = Report::begin(&mut payload);
        report.what = claude::happening(&report.name, &mut payload);
        report.subagent = claude::subagent(&mut payload);
        report.doing = doing(&report.name).filter(|_| report.subagent.is_none());
        if report.subagent.is_none() && claude::names_transcript(&report.name) {
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

fn tool(event: &str, payload: &mut Payload) -> Option<Tool> {
    let mut tool = claude::tool(event, payload)?;
    let patch = match tool.name.as_str() {
        "apply_patch" => payload
            .text("tool_input.command")
            .or_else(|| payload.text("tool_input.input")),
        _ => tool.command.clone(),
    };
    if let Some(patch) = patch.filter(|text| text.contains("*** Begin Patch")) {
        tool.writes.extend(patched(&patch));
    }
    Some(tool)
}

/// The files that a patch names, each once.
fn patched(patch: &str) -> Vec<String> {
    const NAMES: [&str; 4] = [
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "*** Move to: ",
    ];
    let mut files: Vec<String> = Vec::new();
    for line in patch.lines() {
        let named = NAMES.iter().find_map(|name| line.strip_prefix(name));
        let Some(file) = named.map(str::trim).filter(|file| !file.is_empty()) else {
            continue;
        };
        if !files.iter().any(|known| known == file) {
            files.push(file.to_owned());
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-x\n\
                         +*** Add File: no.rs\n*** Add File: c d.rs\n+y\n*** Delete File: e.rs\n\
                         *** Update File: src/a.rs\n*** End Patch";

    fn read(tool: &str, input: &Value) -> Tool {
        let event = json!({
            "hook_event_name": "PreToolUse", "session_id": "t1", "cwd": "/w",
            "tool_name": tool, "tool_input": input,
        });
        let report = Codex.read(event.to_string().as_bytes());
        assert_eq!(report.problems, Vec::<String>::new());
        report.tool.unwrap()
    }

    #[test]
    fn a_patch_names_the_files_that_it_writes() {
        let files = ["src/a.rs", "src/b.rs", "c d.rs", "e.rs"];
        for field in ["command", "input"] {
            let tool = read("apply_patch", &json!({field: PATCH}));
            assert_eq!(tool.writes, files);
            assert_eq!(tool.command, None);
        }
        let line = format!("apply_patch <<'EOF'\n{PATCH}\nEOF");
        assert_eq!(read("Bash", &json!({"command": line})).writes, files);
    }

    #[test]
    fn a_command_without_a_patch_writes_nothing_that_we_know_of() {
        let tool = read("Bash", &json!({"command": "grep '*** Add File: x' log"}));
        assert_eq!(tool.writes, Vec::<String>::new());
        assert!(tool.command.is_some());
        let tool = read("apply_patch", &json!({"command": "no patch"}));
        assert_eq!(tool.writes, Vec::<String>::new());
    }
}
