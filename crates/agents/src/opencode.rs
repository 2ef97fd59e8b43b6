//! opencode (seen with 1.18.33).
//!
//! It has no hooks but a plugin of ours, which sends its events in the shape of the others and reads our
//! own small answer. A conversation that belongs to a subagent names its parent's. What is said at a start
//! waits in the plugin for the first prompt. What is said before a tool waits for the tool's answer, which
//! never comes if the tool fails, so what is told once is not told there.

use std::ffi::OsString;

use serde_json::{Value, json};
use tenure_core::agent_event::{Happening, Subagent};
use tenure_core::id::NativeId;
use tenure_core::session::Doing;

use crate::adapter::{Adapter, Failed, Turn, words};
use crate::payload::Payload;
use crate::report::{Answer, Report, Tool, Tools};

const FIELDS: &[&str] = &[
    "hook_event_name",
    "session_id",
    "parent_id",
    "cwd",
    "tool_name",
    "tool_input.filePath",
    "tool_input.command",
];

const TOOLS: Tools = Tools {
    writers: &[
        ("write", "tool_input.filePath"),
        ("edit", "tool_input.filePath"),
    ],
    shell: "bash",
};

pub struct Opencode;

impl Adapter for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn read(&self, event: &[u8]) -> Report {
        let mut payload = Payload::read(event, FIELDS);
        let mut report = Report::begin(&mut payload);
        let parent = payload.text("parent_id").and_then(|text| {
            NativeId::parse(&text)
                .map_err(|wrong| payload.problem(wrong.to_string()))
                .ok()
        });
        if let (Some(parent), Some(own)) = (parent, report.native_id.take()) {
            report.native_id = Some(parent);
            report.subagent = Some(Subagent {
                id: own.to_string(),
                kind: None,
            });
        } else {
            report.native_id = payload
                .text("session_id")
                .and_then(|text| NativeId::parse(&text).ok());
        }
        let is_subagent = report.subagent.is_some();
        report.what = match (report.name.as_str(), is_subagent) {
            ("SessionStart", false) => Happening::Start,
            ("SessionStart", true) => Happening::SubagentStart,
            ("Stop", true) => Happening::SubagentStop,
            _ => Happening::Other,
        };
        report.doing = doing(&report.name).filter(|_| !is_subagent);
        report.tool = tool(&report.name, &mut payload);
        let channel = matches!(
            report.name.as_str(),
            "SessionStart" | "UserPromptSubmit" | "PostToolUse"
        );
        report.reaches_model = channel && !is_subagent;
        report.finish(payload)
    }

    fn answer(&self, _event: &str, answer: &Answer) -> Option<Value> {
        own_answer(answer)
    }

    fn command(&self, turn: &Turn<'_>) -> Option<Vec<OsString>> {
        let mut line = words(["opencode"]);
        if turn.prompt.is_some() {
            line.extend(words(["run", "--format", "json"]));
        }
        if let Some(id) = turn.resume {
            line.extend(words(["--session", id.as_str()]));
        }
        line.extend(turn.prompt.map(OsString::from));
        Some(line)
    }

    fn is_unknown(&self, failed: &Failed<'_>) -> bool {
        failed.code == 1 && failed.stderr.contains("Session not found")
    }
}

fn doing(name: &str) -> Option<Doing> {
    match name {
        "SessionStart" | "Stop" => Some(Doing::Idle),
        "UserPromptSubmit" | "PreToolUse" | "PostToolUse" => Some(Doing::Busy),
        "PermissionRequest" => Some(Doing::Waiting),
        _ => None,
    }
}

fn tool(event: &str, payload: &mut Payload) -> Option<Tool> {
    let before = match event {
        "PreToolUse" => true,
        "PostToolUse" => false,
        _ => return None,
    };
    Tool::read(payload, before, &TOOLS)
}

/// Our own small answer, for programs that were made to understand it.
pub(crate) fn own_answer(answer: &Answer) -> Option<Value> {
    let mut said = serde_json::Map::new();
    let mut put = |name: &str, text: &Option<String>| {
        if let Some(text) = text {
            said.insert(name.to_owned(), json!(text));
        }
    };
    put("context", &answer.context);
    put("message", &answer.message);
    put("block", &answer.block);
    if let Some(token) = &answer.token {
        said.insert("env".into(), json!({"TENURE_SESSION": token}));
    }
    (!said.is_empty()).then_some(Value::Object(said))
}
