//! Claude Code (tested with 2.1.325 and 2.1.197).
//!
//! `/clear` changes the conversation of a live process: an end of the old one, then a start of the new one.
//! Resuming an unknown conversation sends an end without a start. At the start of a resumed conversation the
//! transcript's path may be wrong (it is derived from the current directory); from the first prompt on it is
//! right. The registry of live processes survives kill -9, so it identifies the process, but does not show that
//! it is alive.

use serde_json::Value;
use tenure_core::process::Process;
use tenure_core::session::Doing;

use crate::adapter::{Adapter, FirstEvent, Registry, Says, Waking};
use crate::claude_background::BACKGROUND;
use crate::event::{
    Answerable, Attends, BUSY, EndsManual, EventSpec, FAILED, FINISHED, File, FreshFile, IDLE,
    Means, ModelReads, SAME, WAITING, Waits, event, unasked,
};
use crate::hooks;
use crate::install::mcp::McpFormat;
use crate::install::{Format, HooksFormat, McpServers, OffSwitch, Settings, mcp};
use crate::last_words::texts;
use crate::report::Tools;
use crate::run;
use crate::turn_records::{CONTINUES, Record, Speech, TurnRecords, reason, seconds};

const OWN_DIR: &str = "CLAUDE_CONFIG_DIR";

/// In seconds. An explicit limit also extends the 1.5 s that all session-end hooks share.
const EVENTS: &[EventSpec] = &[
    event(
        "SessionStart",
        5,
        Means::Start,
        IDLE,
        &[ModelReads, FreshFile, Waits],
    ),
    event("SessionEnd", 5, Means::End, SAME, &[File]),
    event(
        "UserPromptSubmit",
        5,
        Means::Other,
        BUSY,
        &[ModelReads, File, Attends],
    ),
    event("PreToolUse", 5, Means::BeforeTool, BUSY, &[ModelReads]),
    event("PostToolUse", 5, Means::AfterTool, BUSY, &[ModelReads]),
    event("PostToolUseFailure", 5, Means::Other, BUSY, &[]),
    event("PermissionRequest", 5, Means::Other, WAITING, &[Answerable]),
    event("Notification", 5, Means::Other, SAME, &[]),
    event("Stop", 5, Means::Other, FINISHED, &[File, Waits]),
    event("StopFailure", 5, Means::Other, FAILED, &[File]),
    event("SubagentStart", 5, Means::SubagentStart, SAME, &[]),
    event("SubagentStop", 5, Means::SubagentStop, SAME, &[]),
    event("PreCompact", 5, Means::Other, BUSY, &[]),
    event("PostCompact", 5, Means::Other, SAME, &[EndsManual]),
    unasked("PostToolBatch", Means::Other, BUSY, &[]),
    unasked("PermissionDenied", Means::Other, BUSY, &[]),
    unasked("Elicitation", Means::Other, WAITING, &[]),
];

pub(crate) const ROW: Adapter = Adapter {
    name: "claude",
    events: EVENTS,
    notifications: &[
        ("idle_prompt", Doing::Idle),
        ("permission_prompt", Doing::Waiting),
        ("elicitation_dialog", Doing::Waiting),
        ("elicitation_url_dialog", Doing::Waiting),
        ("agent_needs_input", Doing::Waiting),
    ],
    tools: Tools {
        writers: &[
            ("Write", "tool_input.file_path"),
            ("Edit", "tool_input.file_path"),
            ("MultiEdit", "tool_input.file_path"),
            ("NotebookEdit", "tool_input.notebook_path"),
        ],
        shell: "Bash",
        shell_dir: None,
    },
    reader: hooks::read,
    answerer: hooks::answer,
    reads_before_tool: true,
    pid_variable: Some("CLAUDE_PID"),
    registry: Some(Registry {
        variable: OWN_DIR,
        home: ".claude",
        folder: "sessions",
        conversation: "sessionId",
        names,
        says: Says {
            status: "status",
            states: &[
                ("busy", Doing::Busy),
                ("waiting", Doing::Waiting),
                ("idle", Doing::Idle),
                // It accepts input while a command runs in the background.
                ("shell", Doing::Idle),
            ],
            since: &["statusUpdatedAt", "updatedAt"],
            asks: "waitingFor",
            title: "name",
            title_source: "nameSource",
            titles: &["user", "auto", "peer"],
        },
    }),
    turn_records: Some(TurnRecords {
        read: record,
        speech,
        tail: 64 << 10,
    }),
    background: Some(BACKGROUND),
    first_event: FirstEvent::Start,
    env_file_variable: Some("CLAUDE_ENV_FILE"),
    is_any_program: false,
    has_status_line: true,
    resuming_sends: false,
    wakes: Some(Waking::ByStderr),
    commander: |turn| {
        let ends = ["--output-format", "stream-json", "--verbose"];
        Some(turn.line("claude", "--resume", [&["-p"], &ends]))
    },
    runs: Some(run::claude::RUN),
    settings: Some(Settings {
        variable: Some((OWN_DIR, "")),
        home: ".claude",
        project: ".claude",
        file: "settings.json",
        format: Format::Hooks(HooksFormat {
            agent: "claude",
            events: EVENTS,
            comments: false,
            byte_order_mark: true,
            named: false,
            status_line: true,
        }),
        off: Some(OffSwitch {
            path: &["disableAllHooks"],
            value: true,
        }),
        sandbox: None,
        has_plugin: true,
        is_read_at_start: false,
        mcp: Some(McpServers {
            files: &[".claude.json"],
            is_beside: true,
            format: McpFormat::Json {
                name: "mcpServers",
                entry: mcp::stdio,
                file: HooksFormat {
                    agent: "claude",
                    events: &[],
                    comments: false,
                    byte_order_mark: true,
                    named: false,
                    status_line: false,
                },
            },
        }),
    }),
};

/// A failed turn is an answer of its own. Each request to the model is a record, and one that adds nothing to the one
/// before is another attempt.
fn record(fields: &Value) -> Option<Record> {
    match fields["type"].as_str()? {
        "assistant" if fields["isApiErrorMessage"] == true => {
            let text = fields["message"]["content"][0]["text"].as_str();
            let why = text.and_then(reason::of_failure);
            Some(match fields["error"].as_str() {
                Some("rate_limit") => {
                    let until = seconds(&fields["quotaLimits"]["resetsAt"]);
                    let goes_on = |why: String| match until {
                        // It waits for that time, and then sends the prompt again.
                        Some(_) => format!("{why}; {CONTINUES}"),
                        None => why,
                    };
                    Record::Limited(why.map(goes_on), until)
                }
                _ => Record::Fails(why),
            })
        }
        "assistant" => Some(Record::Answers),
        "user" => Some(Record::Begins),
        "api-request" if fields["tail"].as_array()?.is_empty() => Some(Record::Retries(None)),
        "api-request" => Some(Record::Begins),
        _ => None,
    }
}

/// What a person typed, or the agent said; its subagents and its own notes are nobody's words.
fn speech(fields: &Value) -> Option<Speech> {
    match fields["type"].as_str()? {
        "last-prompt" => Some(Speech::Prompt(fields["lastPrompt"].as_str()?.to_owned())),
        _ if fields["isSidechain"] == true || fields["isMeta"] == true => None,
        "user" => {
            let said = fields["message"]["content"].as_str()?;
            // Its commands and their output are in tags.
            (!said.starts_with('<')).then(|| Speech::Prompt(said.to_owned()))
        }
        "assistant" if fields["isApiErrorMessage"] != true => {
            Some(Speech::Words(texts(&fields["message"]["content"])))
        }
        _ => None,
    }
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
