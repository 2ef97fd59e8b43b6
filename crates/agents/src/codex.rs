//! Codex CLI (tested with 0.166.0).
//!
//! A node wrapper starts the real program, which outlives the wrapper; the nearest ancestor of a hook is the
//! real one. Hooks have the format of Claude Code's and get the conversation on stdin only. An unknown
//! conversation prints nothing on stdout and fires no hook; an unknown name silently starts a new conversation.
//! A turn that fails because its model fails has no end event, but a record in the transcript; so has a failed
//! `/compact`. Files are written by patches, which name them line by line: as a separate tool, or as a shell
//! command.

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::id::NativeId;
use tenure_core::witness::TurnEnd;

use crate::adapter::{Adapter, FirstEvent, TurnRequest, Waking};
use crate::event::{
    AsksModel, Attends, BUSY, EndsManual, EventSpec, FINISHED, File, IDLE, Means, ModelReads, SAME,
    WAITING, event,
};
use crate::hooks;
use crate::install::mcp::McpFormat;
use crate::install::{Format, HooksFormat, McpServers, Settings};
use crate::last_words::texts;
use crate::report::{Report, Tools};
use crate::run;
use crate::turn_records::{Record, Speech, TurnRecords, reason, seconds};

/// In seconds. It warns about more than three for an end and an interrupt.
const EVENTS: &[EventSpec] = &[
    event("SessionStart", 5, Means::Start, IDLE, &[ModelReads, File]),
    event("SessionEnd", 3, Means::End, SAME, &[File]),
    event(
        "UserPromptSubmit",
        5,
        Means::Other,
        BUSY,
        &[ModelReads, File, Attends],
    ),
    event("PreToolUse", 5, Means::BeforeTool, BUSY, &[ModelReads]),
    event("PostToolUse", 5, Means::AfterTool, BUSY, &[ModelReads]),
    event("PermissionRequest", 5, Means::Other, WAITING, &[]),
    event("PreCompact", 5, Means::Other, BUSY, &[]),
    event("PostCompact", 5, Means::Other, SAME, &[EndsManual]),
    event("SubagentStart", 5, Means::SubagentStart, SAME, &[]),
    event("SubagentStop", 5, Means::SubagentStop, SAME, &[]),
    event("Stop", 5, Means::Other, FINISHED, &[File]),
    event("Interrupt", 3, Means::Other, IDLE, &[Attends]),
    // Nothing else shows that it asks its model again.
    event("PreModelRequest", 5, Means::Other, BUSY, &[AsksModel]),
];

pub(crate) const ROW: Adapter = Adapter {
    name: "codex",
    events: EVENTS,
    notifications: &[],
    tools: Tools {
        writers: &[],
        shell: "Bash",
        shell_dir: None,
    },
    reader: read,
    answerer: hooks::answer,
    reads_before_tool: true,
    pid_variable: None,
    registry: None,
    turn_records: Some(TurnRecords {
        read: record,
        speech,
        tail: 256 << 10,
    }),
    background: None,
    first_event: FirstEvent::Prompt,
    env_file_variable: None,
    is_any_program: false,
    has_status_line: false,
    resuming_sends: false,
    wakes: Some(Waking::ByCommand {
        program: "codex",
        line: queue,
    }),
    commander: command,
    runs: Some(run::codex::RUN),
    settings: Some(Settings {
        variable: Some(("CODEX_HOME", "")),
        home: ".codex",
        project: ".codex",
        file: "hooks.json",
        format: Format::Hooks(HooksFormat {
            agent: "codex",
            events: EVENTS,
            comments: false,
            byte_order_mark: false,
            named: false,
            status_line: false,
        }),
        off: None,
        sandbox: Some("config.toml"),
        has_plugin: false,
        is_read_at_start: false,
        mcp: Some(McpServers {
            files: &["config.toml"],
            is_beside: false,
            format: McpFormat::Toml,
        }),
    }),
};

/// Hands a message to the window that has the conversation open, as if it had been typed there.
fn queue(native_id: &NativeId, text: &str) -> Vec<OsString> {
    let words = ["queue", "--thread", native_id.as_str(), "--message", text];
    words.map(OsString::from).into()
}

fn read(row: &Adapter, event: &[u8]) -> Report {
    let (mut report, mut payload) = hooks::begin(event);
    hooks::fill(row, &mut report, &mut payload);
    if let Some(tool) = &mut report.tool {
        let patch = match tool.name.as_str() {
            "apply_patch" => payload
                .text("tool_input.command")
                .or_else(|| payload.text("tool_input.input")),
            _ => tool.command.clone(),
        };
        if let Some(patch) = patch.filter(|text| text.contains("*** Begin Patch")) {
            tool.writes.extend(patched(&patch));
        }
    }
    report.finish(payload)
}

/// A turn that fails ends with its error; when the provider accepts requests again is counted before that.
fn record(fields: &Value) -> Option<Record> {
    const ANSWERS: [&str; 5] = [
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "reasoning",
        "web_search_call",
    ];
    let payload = &fields["payload"];
    let kind = payload["type"].as_str()?;
    if fields["type"] == "response_item" {
        let answers = ANSWERS.contains(&kind) || payload["role"] == "assistant";
        return answers.then_some(Record::Answers);
    }
    match kind {
        "task_started" => Some(Record::Begins),
        "turn_aborted" => Some(Record::Ends(TurnEnd::ByPerson)),
        "task_complete" => {
            let error = &payload["error"];
            let why = error["message"].as_str().and_then(reason::of_failure);
            Some(match error["codex_error_info"].as_str() {
                _ if error.is_null() => Record::Ends(TurnEnd::ByItself),
                Some("usage_limit_exceeded") => Record::Limited(why, None),
                _ => Record::Fails(why),
            })
        }
        "token_count" => {
            let limits = &payload["rate_limits"];
            let windows = ["primary", "secondary"].map(|name| &limits[name]);
            let used_up = |window: &&&Value| window["used_percent"].as_f64() >= Some(100.0);
            let resets = windows.iter().filter(used_up);
            let resets = resets.filter_map(|window| seconds(&window["resets_at"]));
            resets.max().map(Record::ResetsAt)
        }
        _ => None,
    }
}

fn speech(fields: &Value) -> Option<Speech> {
    let item = &fields["payload"]["item"];
    match item["type"].as_str()? {
        "UserMessage" => Some(Speech::Prompt(texts(&item["content"]))),
        "AgentMessage" => Some(Speech::Words(texts(&item["content"]))),
        _ => None,
    }
}

fn command(turn: &TurnRequest<'_>) -> Option<Vec<OsString>> {
    let id = turn.resume.map(|id| id.as_str());
    let (verbs, words) = match (turn.prompt, id) {
        (None, None) => (&[][..], vec![]),
        (None, Some(id)) => (&["resume"][..], vec![id]),
        (Some(prompt), None) => (&["exec"][..], vec!["--json", prompt]),
        (Some(prompt), Some(id)) => (&["exec", "resume"][..], vec!["--json", id, prompt]),
    };
    let flags = turn.flags.iter().map(String::as_str);
    let line = ["codex"].iter().chain(verbs).copied();
    let line = line.chain(flags).chain(words);
    Some(line.map(OsString::from).collect())
}

/// The files that a patch names, without duplicates.
pub(crate) fn patched(patch: &str) -> Vec<String> {
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
    use serde_json::{Value, json};

    use super::*;
    use crate::report::Tool;

    const PATCH: &str = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-x\n\
                         +*** Add File: no.rs\n*** Add File: c d.rs\n+y\n*** Delete File: e.rs\n\
                         *** Update File: src/a.rs\n*** End Patch";

    fn read(tool: &str, input: &Value) -> Tool {
        let event = json!({
            "hook_event_name": "PreToolUse", "session_id": "t1", "cwd": "/w",
            "tool_name": tool, "tool_input": input,
        });
        let report = ROW.read(event.to_string().as_bytes());
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
