//! Hooks in the shape of Claude Code's, which most agents share: what they are given and what they answer.
//!
//! Agents differ in the names of their events and tools, and that is in their rows. A subagent's events carry
//! the session's own id and an `agent_id`.

use serde_json::{Value, json};
use tenure_core::agent_event::{Happening, Subagent};

use crate::adapter::Adapter;
use crate::event::{Event, File, FreshFile, Heard, Means, SAME};
use crate::payload::Payload;
use crate::report::{Answer, Report, Tool};

const FIELDS: &[&str] = &[
    "hook_event_name",
    "session_id",
    "parent_id",
    "cwd",
    "transcript_path",
    "source",
    "reason",
    "agent_id",
    "agent_type",
    "tool_name",
    "tool_input.file_path",
    "tool_input.filePath",
    "tool_input.notebook_path",
    "tool_input.command",
    "tool_input.input",
    "notification_type",
];

/// Reads an event.
pub(crate) fn read(row: &Adapter, event: &[u8]) -> Report {
    let (mut report, mut payload) = begin(event);
    fill(row, &mut report, &mut payload);
    report.finish(payload)
}

/// The conversation, and the subagent in it.
pub(crate) fn begin(event: &[u8]) -> (Report, Payload) {
    let mut payload = Payload::read(event, FIELDS);
    let mut report = Report::begin(&mut payload);
    // `agent_type` alone is also there for a session that was started as a certain kind of agent.
    report.subagent = payload.words("agent_id").map(|id| Subagent {
        id,
        kind: payload.words("agent_type"),
    });
    (report, payload)
}

/// What the event means, as the row says.
pub(crate) fn fill(row: &Adapter, report: &mut Report, payload: &mut Payload) {
    let known = row.events.iter().find(|event| event.name == report.name);
    let Some(event) = known else {
        return;
    };
    let source = payload.text("source").unwrap_or_default();
    report.what = happening(event, &source, payload);
    report.tool = tool(row, event, payload);
    if report.subagent.is_some() {
        return;
    }
    report.doing = match (event.means, source.as_str()) {
        (Means::Start, "compact") => SAME,
        _ => event.doing,
    };
    if report.name == "Notification" {
        let kind = payload.text("notification_type").unwrap_or_default();
        let known = row.notifications.iter().find(|(name, _)| *name == kind);
        report.doing = known.map(|(_, doing)| *doing);
    }
    if event.is(File) || (event.is(FreshFile) && source != "resume") {
        report.transcript = payload.path("transcript_path");
    }
    report.reaches_model = event.is(Heard);
}

fn happening(event: &Event, source: &str, payload: &mut Payload) -> Happening {
    match event.means {
        Means::Start if source == "fork" => Happening::Fork,
        Means::Start => Happening::Start,
        Means::End => {
            let reason = payload.words("reason").unwrap_or_default();
            Happening::End {
                // These go on in the same process with another conversation.
                ends_worker: !matches!(reason.as_str(), "clear" | "resume"),
                reason,
            }
        }
        Means::Leaves => Happening::Leaves,
        Means::SubagentStart => Happening::SubagentStart,
        Means::SubagentStop => Happening::SubagentStop,
        Means::BeforeTool | Means::AfterTool | Means::Other => Happening::Other,
    }
}

fn tool(row: &Adapter, event: &Event, payload: &mut Payload) -> Option<Tool> {
    let before = match event.means {
        Means::BeforeTool => true,
        Means::AfterTool => false,
        _ => return None,
    };
    Tool::read(payload, before, &row.tools)
}

/// An answer whose denial is a decision about a permission.
pub(crate) fn answer(event: &str, answer: &Answer) -> Option<Value> {
    let mut specific = serde_json::Map::new();
    if let Some(reason) = answer.block.as_ref().filter(|_| event == "PreToolUse") {
        specific.insert("permissionDecision".into(), json!("deny"));
        specific.insert("permissionDecisionReason".into(), json!(reason));
    }
    said(event, answer, specific, serde_json::Map::new())
}

/// The answer with what is said to the model and to the person.
pub(crate) fn said(
    event: &str,
    answer: &Answer,
    mut specific: serde_json::Map<String, Value>,
    mut said: serde_json::Map<String, Value>,
) -> Option<Value> {
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
