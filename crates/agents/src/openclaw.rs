//! OpenClaw (tested with 2026.9.6).
//!
//! Its gateway runs every session in one process and has no hooks but plugins. Ours sends the gateway's events to one
//! long-lived `tenure hook openclaw --stream`, one JSON object per line, and reads one answer per line. An event names
//! the session id (the transcript) and the session key (the address that people mean). An id belongs to the first key that
//! came with it: OpenClaw itself lets a second key take it over. `/new` and a reset keep the id, so they end nothing.
//! What is answered to a start waits in the plugin for the next prompt. Events of a subagent have the id and the key of
//! the session that spawned it, and the subagent's own key as `agent_id`.

use std::ffi::OsString;

use serde_json::{Value, json};
use tenure_core::agent_event::Happening;
use tenure_core::key::Key;

use crate::adapter::{Adapter, FirstEvent, TurnRequest};
use crate::codex::patched;
use crate::event::{
    Attends, BUSY, EventSpec, FAILED, FINISHED, IDLE, Means, ModelReads, SAME, unasked,
};
use crate::hooks;
use crate::install::{Format, Settings, openclaw};
use crate::report::{EventAnswer, Report, Tools, own_answer};

/// The scheme of the items that stand for session keys.
pub const KEY_SCHEME: &str = "session:";

const EVENTS: &[EventSpec] = &[
    unasked("session_start", Means::Start, IDLE, &[ModelReads]),
    unasked(
        "before_prompt_build",
        Means::Other,
        BUSY,
        &[ModelReads, Attends],
    ),
    unasked("before_tool_call", Means::BeforeTool, BUSY, &[]),
    unasked("after_tool_call", Means::AfterTool, BUSY, &[]),
    unasked("subagent_spawned", Means::SubagentStart, SAME, &[]),
    unasked("subagent_ended", Means::SubagentStop, SAME, &[]),
    unasked("agent_end", Means::Other, FINISHED, &[]),
    unasked("agent_failed", Means::Other, FAILED, &[]),
    unasked("gateway_stop", Means::End, SAME, &[]),
];

pub(crate) const ROW: Adapter = Adapter {
    name: "openclaw",
    events: EVENTS,
    notifications: &[],
    tools: Tools {
        writers: &[
            ("write", "tool_input.file_path"),
            ("edit", "tool_input.file_path"),
        ],
        shell: "exec",
        shell_dir: Some("tool_input.workdir"),
    },
    reader: read,
    answerer: |_, answer| answered(answer),
    reads_before_tool: false,
    pid_variable: None,
    registry: None,
    turn_records: None,
    background: None,
    first_event: FirstEvent::Prompt,
    env_file_variable: None,
    is_any_program: false,
    has_status_line: false,
    resuming_sends: true,
    wakes: None,
    commander: command,
    runs: None,
    settings: Some(Settings {
        variable: Some(("OPENCLAW_STATE_DIR", "")),
        home: ".openclaw",
        project: ".openclaw",
        file: "tenure-plugin/index.js",
        format: Format::Package(openclaw::PLUGIN),
        off: None,
        sandbox: None,
        has_plugin: false,
        is_read_at_start: true,
        mcp: None,
    }),
};

fn read(row: &Adapter, event: &[u8]) -> Report {
    let (mut report, mut payload) = hooks::begin(event);
    hooks::fill(row, &mut report, &mut payload);
    if let Some(tool) = &mut report.tool
        && tool.name == "apply_patch"
    {
        let patch = payload.text("tool_input.input").unwrap_or_default();
        tool.writes.extend(patched(&patch));
    }
    if let Some(key) = payload.text("session_key") {
        if report.what == Happening::Start {
            report.title = payload.beginning("session_key");
        }
        report.item = Key::parse(&format!("{KEY_SCHEME}{key}"))
            .map_err(|wrong| payload.problem(wrong.to_string()))
            .ok();
    }
    report.finish(payload)
}

/// Our own answer, with the key that owns the session id.
fn answered(answer: &EventAnswer) -> Option<Value> {
    let mut said = own_answer(answer);
    if let Some(owner) = &answer.foreign_to {
        let key = owner.strip_prefix(KEY_SCHEME).unwrap_or(owner);
        said.get_or_insert_with(|| json!({}))["foreign"] = json!(key);
    }
    said
}

/// Its gateway is addressed by the key; the id alone finds a session too. Without a message the command fails.
fn command(turn: &TurnRequest<'_>) -> Option<Vec<OsString>> {
    let mut line = vec!["openclaw", "agent"];
    match (turn.address, turn.resume) {
        (Some(key), _) => line.extend(["--session-key", key]),
        (None, Some(id)) => line.extend(["--session-id", id.as_str()]),
        (None, None) => {}
    }
    line.extend(["--message", turn.prompt.unwrap_or("continue")]);
    Some(line.into_iter().map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, more: &Value) -> Report {
        let mut event = json!({
            "hook_event_name": name, "session_id": "14bf80ae-4eb5-4e04-b1f9-8642c1f384a4",
            "session_key": "agent:main:main", "cwd": "/w",
        });
        let parts = more.as_object().unwrap().clone();
        event.as_object_mut().unwrap().extend(parts);
        let report = ROW.read(event.to_string().as_bytes());
        assert_eq!(report.problems, Vec::<String>::new());
        report
    }

    #[test]
    fn a_session_is_called_by_its_key() {
        let report = event("session_start", &json!({}));
        assert_eq!(report.title.as_deref(), Some("agent:main:main"));
        assert_eq!(report.item.unwrap().as_str(), "session:agent:main:main");
        assert_eq!(report.what, Happening::Start);
    }

    #[test]
    fn a_subagent_gives_its_session_no_name() {
        let below = json!({"agent_id": "agent:main:subagent:a1", "agent_type": "subagent"});
        let report = event("subagent_ended", &below);
        assert_eq!(report.what, Happening::SubagentStop);
        assert_eq!(report.title, None);
        assert!(report.item.is_some(), "its session's");
    }

    #[test]
    fn every_tool_that_writes_names_its_files() {
        let writes = |tool: &str, input: Value| {
            let called = json!({"tool_name": tool, "tool_input": input});
            let tool = event("before_tool_call", &called).tool.unwrap();
            (tool.writes, tool.command)
        };
        let file = json!({"file_path": "a.md"});
        assert_eq!(writes("write", file.clone()).0, ["a.md"]);
        assert_eq!(writes("edit", file).0, ["a.md"]);
        let patch = json!({"input": "*** Begin Patch\n*** Update File: b.md\n*** End Patch"});
        assert_eq!(writes("apply_patch", patch).0, ["b.md"]);
        let ran = writes("exec", json!({"command": "echo > c"}));
        assert_eq!(ran.1.as_deref(), Some("echo > c"));
    }
}
