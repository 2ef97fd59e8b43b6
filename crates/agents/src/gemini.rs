//! Gemini CLI (seen with 0.61.0).
//!
//! It starts itself once more; the child is the agent, and the nearest ancestor of a hook. On resume the
//! start names a transcript that is not the one in use. It sets CLAUDE_PROJECT_DIR for its hooks, so that
//! variable says nothing.

use std::ffi::OsString;

use serde_json::{Value, json};
use tenure_core::agent_event::Happening;
use tenure_core::session::Doing;

use crate::adapter::{Adapter, Failed, Turn, words};
use crate::payload::Payload;
use crate::report::{Answer, COMMON, Report, Tool, Tools};

const TOOLS: Tools = Tools {
    writers: &[
        ("write_file", "tool_input.file_path"),
        ("replace", "tool_input.file_path"),
    ],
    shell: "run_shell_command",
};

pub struct Gemini;

impl Adapter for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn read(&self, event: &[u8]) -> Report {
        let mut payload = Payload::read(event, COMMON);
        let mut report = Report::begin(&mut payload);
        report.what = happening(&report.name, &mut payload);
        report.doing = doing(&report.name, &mut payload);
        let starts_resumed = payload.text("source").as_deref() == Some("resume");
        if !starts_resumed
            && matches!(
                report.name.as_str(),
                "SessionStart" | "AfterAgent" | "SessionEnd"
            )
        {
            report.transcript = payload.path("transcript_path");
        }
        report.tool = tool(&report.name, &mut payload);
        report.reaches_model = matches!(
            report.name.as_str(),
            "SessionStart" | "BeforeAgent" | "AfterTool"
        );
        report.finish(payload)
    }

    fn answer(&self, event: &str, answer: &Answer) -> Option<Value> {
        let mut said = serde_json::Map::new();
        if let Some(reason) = answer.block.as_ref().filter(|_| event == "BeforeTool") {
            said.insert("decision".into(), json!("deny"));
            said.insert("reason".into(), json!(reason));
        }
        if let Some(context) = &answer.context {
            let specific = json!({"hookEventName": event, "additionalContext": context});
            said.insert("hookSpecificOutput".into(), specific);
        }
        if let Some(message) = &answer.message {
            said.insert("systemMessage".into(), json!(message));
        }
        (!said.is_empty()).then_some(Value::Object(said))
    }

    /// Before a tool it takes a denial only; the tool's result carries what there is to say.
    fn reads_before_tool(&self) -> bool {
        false
    }

    fn command(&self, turn: &Turn<'_>) -> Option<Vec<OsString>> {
        let mut line = words(["gemini"]);
        if let Some(id) = turn.resume {
            line.extend(words(["--resume", id.as_str()]));
        }
        if let Some(prompt) = turn.prompt {
            line.extend(words(["-p", prompt, "-o", "stream-json"]));
        }
        Some(line)
    }

    fn is_unknown(&self, failed: &Failed<'_>) -> bool {
        let said = [
            "Error resuming session: Invalid session identifier",
            "Error resuming session: No previous sessions found",
        ];
        failed.code == 42 && said.iter().any(|words| failed.stderr.contains(words))
    }
}

fn happening(name: &str, payload: &mut Payload) -> Happening {
    match name {
        "SessionStart" => Happening::Start,
        "SessionEnd" => {
            let reason = payload.words("reason").unwrap_or_default();
            Happening::End {
                ends_worker: reason != "clear",
                reason,
            }
        }
        _ => Happening::Other,
    }
}

fn doing(name: &str, payload: &mut Payload) -> Option<Doing> {
    match name {
        "SessionStart" | "AfterAgent" => Some(Doing::Idle),
        "BeforeAgent"
        | "BeforeModel"
        | "AfterModel"
        | "BeforeToolSelection"
        | "BeforeTool"
        | "AfterTool"
        | "PreCompress" => Some(Doing::Busy),
        "Notification" => {
            let asks = payload.text("notification_type").as_deref() == Some("ToolPermission");
            asks.then_some(Doing::Waiting)
        }
        _ => None,
    }
}

fn tool(event: &str, payload: &mut Payload) -> Option<Tool> {
    let before = match event {
        "BeforeTool" => true,
        "AfterTool" => false,
        _ => return None,
    };
    Tool::read(payload, before, &TOOLS)
}
