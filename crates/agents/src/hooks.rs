//! Hooks in the format of Claude Code's, which most agents share: their input and their answers.
//!
//! Agents differ in the names of their events and tools, which are in their rows. Events of a subagent have the
//! session's own id and an `agent_id`.

use serde_json::{Value, json};
use tenure_core::agent_event::{Happening, QuestionText, Subagent};
use tenure_core::session::Doing;
use tenure_core::wake;

use crate::adapter::Adapter;
use crate::event::{
    AsksModel, Attends, BUSY, EndsManual, EventSpec, FAILED, FailsIfEmpty, File, FreshFile, IDLE,
    Means, ModelReads, RETRYING, Recaps, SAME,
};
use crate::payload::Payload;
use crate::report::{EventAnswer, Report, Tool};
use crate::turn_records::reason;

const FIELDS: &[&str] = &[
    "hook_event_name",
    "session_id",
    "session_key",
    "parent_id",
    "cwd",
    "transcript_path",
    "source",
    "trigger",
    "reason",
    "agent_id",
    "agent_type",
    "tool_name",
    "tool_input.file_path",
    "tool_input.filePath",
    "tool_input.notebook_path",
    "tool_input.command",
    "tool_input.dir_path",
    "tool_input.directory",
    "tool_input.workdir",
    "tool_input.input",
    "tool_input.questions.question",
    "notification_type",
    "message",
    "details.command",
    "details.filePath",
    "prompt",
    "title",
    "error",
    "error_details",
    "last_assistant_message",
    "prompt_response",
    "next_at",
];

/// How prompts begin that an agent makes by itself.
const NO_PERSONS: &[&str] = &["<task-notification>", "<cross-session-message "];
/// What a question asks for, without its text.
pub(crate) const AN_ANSWER: &str = "an answer to its question";
/// Tools that ask a person something, and what they ask for.
const ASKING_TOOLS: &[(&str, &str)] = &[
    ("AskUserQuestion", AN_ANSWER),
    ("ask_user", AN_ANSWER),
    ("question", AN_ANSWER),
    ("ExitPlanMode", "approval of its plan"),
    ("exit_plan_mode", "approval of its plan"),
];

/// What a tool asks a person for, if that is what it does.
pub(crate) fn asks_for(tool: &str) -> Option<&'static str> {
    let found = ASKING_TOOLS.iter().find(|(name, _)| *name == tool);
    found.map(|(_, asks)| *asks)
}

/// Parses an event.
pub(crate) fn read(row: &Adapter, event: &[u8]) -> Report {
    let (mut report, mut payload) = begin(event);
    fill(row, &mut report, &mut payload);
    report.finish(payload)
}

/// The conversation, and the subagent in it.
pub(crate) fn begin(event: &[u8]) -> (Report, Payload) {
    let mut payload = Payload::read(event, FIELDS);
    let mut report = Report::begin(&mut payload);
    // `agent_type` alone is also present for a session that was started as a specific kind of agent.
    report.subagent = payload.words("agent_id").map(|id| Subagent {
        id,
        kind: payload.words("agent_type"),
    });
    (report, payload)
}

/// The meaning of the event, from the row.
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
        _ if event.is(EndsManual) && payload.text("trigger").as_deref() == Some("manual") => IDLE,
        _ => event.doing,
    };
    if report.name == "Notification" {
        let kind = payload.text("notification_type").unwrap_or_default();
        let known = row.notifications.iter().find(|(name, _)| *name == kind);
        report.doing = known.map(|(_, doing)| *doing);
    }
    fail(event, report, payload);
    report.asks_model = event.is(AsksModel);
    (report.asks, report.asks_kind) = asked(row, report, payload).unzip();
    // Some agents submit an empty prompt by themselves after each round of tools.
    report.attended = match event.means {
        Means::Start => report.doing.is_some(),
        _ => event.is(Attends) && !payload.is_blank("prompt"),
    };
    if event.is(Attends) {
        let prompt = payload.text("prompt").unwrap_or_default();
        report.woken_by = wake::marked(&prompt);
        // A message, the end of a command in the background, or another agent, but no person.
        if !report.woken_by.is_empty() || NO_PERSONS.iter().any(|tag| prompt.starts_with(tag)) {
            report.attended = false;
        }
    }
    if event.is(File) || (event.is(FreshFile) && source != "resume") {
        report.transcript = payload.path("transcript_path");
    }
    // Gemini repeats the prompt when the turn is over.
    if report.doing == BUSY && report.woken_by.is_empty() {
        report.prompt = payload.beginning("prompt");
    }
    // A notification's title is not the session's: "Authentication successful".
    if report.name != "Notification" {
        report.title = payload.beginning("title");
    }
    report.reaches_model = event.is(ModelReads);
    report.recaps = event.is(Recaps);
}

/// Why a turn failed, or a request is tried again.
fn fail(event: &EventSpec, report: &mut Report, payload: &mut Payload) {
    const NO_TEXT: &str = "[no response text]";
    if event.is(FailsIfEmpty) && payload.text("prompt_response").as_deref() == Some(NO_TEXT) {
        report.doing = FAILED;
    }
    if !matches!(report.doing, FAILED | RETRYING) {
        return;
    }
    let kind = payload.words("error");
    if report.doing == FAILED && kind.as_deref() == Some("rate_limit") {
        report.doing = Some(Doing::Limited);
    }
    let said = ["error_details", "last_assistant_message", "message"];
    let said = said.iter().find_map(|field| payload.beginning(field));
    report.why_kind = kind.map(|kind| kind.replace('_', " "));
    report.why = said.as_deref().and_then(reason::of_failure);
    report.until = payload.millis("next_at");
}

fn happening(event: &EventSpec, source: &str, payload: &mut Payload) -> Happening {
    match event.means {
        Means::Start if source == "fork" => Happening::Fork,
        Means::Start => Happening::Start,
        Means::End => {
            let reason = payload.words("reason").unwrap_or_default();
            Happening::End {
                // After these, the same process continues with another conversation.
                ends_worker: !matches!(reason.as_str(), "clear" | "resume"),
                reason,
            }
        }
        Means::Leaves => Happening::Leaves,
        Means::SubagentStart => Happening::SubagentStart,
        // Compaction ends subagents without a type that never started.
        Means::SubagentStop if payload.is_blank("agent_type") => Happening::Other,
        Means::SubagentStop => Happening::SubagentStop,
        Means::BeforeTool | Means::AfterTool | Means::Other => Happening::Other,
    }
}

/// What a session waits for, and its kind.
fn asked(row: &Adapter, report: &Report, payload: &mut Payload) -> Option<(QuestionText, String)> {
    if report.doing != Some(Doing::Waiting) {
        return None;
    }
    let exactly = |words: String, kind: String| Some((QuestionText::Exactly(words), kind));
    match report.name.as_str() {
        "Notification" => {
            if let Some(command) = payload.text("details.command") {
                let words = format!("permission for `{command}`");
                return exactly(words, "permission for a command".into());
            }
            if let Some(file) = payload.text("details.filePath") {
                let words = format!("permission to write {file}");
                return exactly(words, "permission to write a file".into());
            }
            let kind = match payload.text("notification_type").as_deref() {
                Some("permission_prompt" | "ToolPermission") => "permission",
                _ => AN_ANSWER,
            };
            let words = payload.text("message")?;
            Some((QuestionText::Roughly(words), kind.into()))
        }
        "Elicitation" => exactly(payload.text("message")?, AN_ANSWER.into()),
        _ => {
            let (words, kind) = permission(row, payload)?;
            exactly(words, kind)
        }
    }
}

/// The tool call that a person must allow, and its kind.
fn permission(row: &Adapter, payload: &mut Payload) -> Option<(String, String)> {
    let tool = payload.words("tool_name")?;
    if let Some(asks) = asks_for(&tool) {
        let question = payload.words("tool_input.questions.question");
        let words = question.filter(|_| asks == AN_ANSWER);
        return Some((words.unwrap_or_else(|| asks.to_owned()), asks.to_owned()));
    }
    let kind = format!("permission for {tool}");
    let command = (tool == row.tools.shell).then(|| payload.text("tool_input.command"));
    if let Some(command) = command.flatten() {
        return Some((format!("permission for `{command}`"), kind));
    }
    let files = [
        "tool_input.file_path",
        "tool_input.filePath",
        "tool_input.notebook_path",
    ];
    let file = files.iter().find_map(|field| payload.text(field));
    let words = file.map(|file| format!("{kind} of {file}"));
    Some((words.unwrap_or_else(|| kind.clone()), kind))
}

fn tool(row: &Adapter, event: &EventSpec, payload: &mut Payload) -> Option<Tool> {
    let before = match event.means {
        Means::BeforeTool => true,
        Means::AfterTool => false,
        _ => return None,
    };
    Tool::read(payload, before, &row.tools)
}

/// An answer whose denial is a permission decision.
pub(crate) fn answer(event: &str, answer: &EventAnswer) -> Option<Value> {
    let mut specific = serde_json::Map::new();
    if let Some(reason) = answer.block.as_ref().filter(|_| event == "PreToolUse") {
        specific.insert("permissionDecision".into(), json!("deny"));
        specific.insert("permissionDecisionReason".into(), json!(reason));
    }
    said(event, answer, specific, serde_json::Map::new())
}

/// The answer with the texts for the model and for the person.
pub(crate) fn said(
    event: &str,
    answer: &EventAnswer,
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::report::Report;
    use tenure_core::agent_event::Happening;

    fn read(agent: &str, name: &str, more: &Value) -> Report {
        let mut event = json!({"hook_event_name": name, "session_id": "c-1", "cwd": "/w"});
        let parts = more.as_object().unwrap().clone();
        event.as_object_mut().unwrap().extend(parts);
        let row = crate::adapter(agent).unwrap();
        row.read(event.to_string().as_bytes())
    }

    #[test]
    fn a_prompt_is_read_where_a_turn_begins() {
        let asked = json!({"prompt": "Fix it"});
        for (agent, name) in [
            ("claude", "UserPromptSubmit"),
            ("codex", "UserPromptSubmit"),
            ("qwen", "UserPromptSubmit"),
            ("opencode", "UserPromptSubmit"),
            ("gemini", "BeforeAgent"),
        ] {
            let report = read(agent, name, &asked);
            assert_eq!(report.prompt.as_deref(), Some("Fix it"), "{agent}");
            assert_eq!(report.title, None);
        }
        let over = read("gemini", "AfterAgent", &asked);
        assert_eq!(over.prompt, None, "it only repeats it");
        let below = json!({"prompt": "Find it", "agent_id": "a1"});
        assert_eq!(read("claude", "UserPromptSubmit", &below).prompt, None);
    }

    #[test]
    fn a_compaction_is_no_subagent() {
        let of = |kind: &str| {
            let stop = json!({"agent_id": "a1", "agent_type": kind});
            read("claude", "SubagentStop", &stop).what
        };
        assert_eq!(of(""), Happening::Other);
        assert_eq!(of("general-purpose"), Happening::SubagentStop);
    }

    #[test]
    fn a_huge_prompt_is_kept_only_in_part() {
        let huge = json!({"prompt": "é".repeat(1_000_000)});
        let report = read("claude", "UserPromptSubmit", &huge);
        assert_eq!(report.prompt.unwrap().chars().count(), 1_000);
    }

    #[test]
    fn opencode_says_what_it_calls_the_work() {
        let named = json!({"title": "Login repair"});
        let report = read("opencode", "SessionUpdated", &named);
        assert_eq!(report.title.as_deref(), Some("Login repair"));
        assert_eq!(report.doing, None, "a name is no activity");
        let told =
            json!({"title": "Authentication successful", "notification_type": "auth_success"});
        assert_eq!(read("qwen", "Notification", &told).title, None);
    }
}
