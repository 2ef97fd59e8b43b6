//! Qwen Code (tested with 0.24.4).
//!
//! Its launcher starts it, and it re-executes itself; the last process is the agent, the nearest ancestor of a
//! hook. Its hooks have the format of Claude Code's, with limits in milliseconds. An unattended turn reports no
//! end: the session ends with its process. After each round of tools it submits an empty prompt. Of all hook
//! answers, the person reads only those at the end of a turn. It sets CLAUDE_PROJECT_DIR and GEMINI_PROJECT_DIR
//! for its hooks, so those variables prove nothing.

use serde_json::Value;
use tenure_core::session::Doing;

use crate::adapter::{Adapter, FirstEvent};
use crate::event::{
    Attends, BUSY, EndsManual, EventSpec, FAILED, FINISHED, File, IDLE, Means, ModelReads, Recaps,
    SAME, WAITING, event, unasked,
};
use crate::hooks;
use crate::install::mcp::McpFormat;
use crate::install::{Format, HooksFormat, McpServers, OffSwitch, Settings, mcp};
use crate::last_words::texts;
use crate::report::Tools;
use crate::run;
use crate::turn_records::{Record, Speech, TurnRecords, reason};

/// In milliseconds.
const EVENTS: &[EventSpec] = &[
    event(
        "SessionStart",
        5000,
        Means::Start,
        IDLE,
        &[ModelReads, File],
    ),
    event("SessionEnd", 5000, Means::End, SAME, &[File]),
    event(
        "UserPromptSubmit",
        5000,
        Means::Other,
        BUSY,
        &[ModelReads, File, Attends],
    ),
    event("PreToolUse", 5000, Means::BeforeTool, BUSY, &[]),
    event("PostToolUse", 5000, Means::AfterTool, BUSY, &[ModelReads]),
    event("PostToolUseFailure", 5000, Means::Other, BUSY, &[]),
    event("PermissionRequest", 5000, Means::Other, WAITING, &[]),
    event("Notification", 5000, Means::Other, SAME, &[]),
    event("Stop", 5000, Means::Other, FINISHED, &[File, Recaps]),
    event("StopFailure", 5000, Means::Other, FAILED, &[]),
    event("SubagentStart", 5000, Means::SubagentStart, SAME, &[]),
    event("SubagentStop", 5000, Means::SubagentStop, SAME, &[]),
    event("PreCompact", 5000, Means::Other, BUSY, &[]),
    event("PostCompact", 5000, Means::Other, SAME, &[EndsManual]),
    unasked("PostToolBatch", Means::Other, BUSY, &[]),
    unasked("PermissionDenied", Means::Other, BUSY, &[]),
];

pub(crate) const ROW: Adapter = Adapter {
    name: "qwen",
    events: EVENTS,
    notifications: &[
        ("idle_prompt", Doing::Idle),
        ("permission_prompt", Doing::Waiting),
    ],
    tools: Tools {
        writers: &[
            ("write_file", "tool_input.file_path"),
            ("edit", "tool_input.file_path"),
            ("notebook_edit", "tool_input.notebook_path"),
        ],
        shell: "run_shell_command",
        shell_dir: Some("tool_input.directory"),
    },
    reader: hooks::read,
    answerer: hooks::answer,
    // Before a tool it accepts only a denial; everything else goes with the tool's result.
    reads_before_tool: false,
    pid_variable: None,
    registry: None,
    turn_records: Some(TurnRecords {
        read: record,
        speech,
        tail: 256 << 10,
    }),
    background: None,
    first_event: FirstEvent::Start,
    env_file_variable: None,
    is_any_program: false,
    has_status_line: false,
    resuming_sends: false,
    wakes: None,
    commander: |turn| Some(turn.line("qwen", "--resume", [&["-p"], &["-o", "stream-json"]])),
    runs: Some(run::qwen::RUN),
    settings: Some(Settings {
        variable: Some(("QWEN_HOME", "")),
        home: ".qwen",
        project: ".qwen",
        file: "settings.json",
        format: Format::Hooks(HooksFormat {
            agent: "qwen",
            events: EVENTS,
            comments: true,
            byte_order_mark: false,
            named: true,
            status_line: false,
        }),
        off: Some(OffSwitch {
            path: &["disableAllHooks"],
            value: true,
        }),
        sandbox: None,
        has_plugin: false,
        is_read_at_start: true,
        mcp: Some(McpServers {
            files: &["settings.json"],
            is_beside: false,
            format: McpFormat::Json {
                name: "mcpServers",
                entry: mcp::command_and_args,
                file: HooksFormat {
                    agent: "qwen",
                    events: &[],
                    comments: true,
                    byte_order_mark: false,
                    named: false,
                    status_line: false,
                },
            },
        }),
    }),
};

/// Each request that fails is a record.
fn record(fields: &Value) -> Option<Record> {
    match fields["type"].as_str()? {
        "assistant" => Some(Record::Answers),
        "user" => Some(Record::Begins),
        "system" => {
            let event = &fields["systemPayload"]["uiEvent"];
            let why = event["error_message"].as_str().and_then(reason::of_failure);
            (event["event.name"] == "qwen-code.api_error").then_some(Record::Retries(why))
        }
        _ => None,
    }
}

fn speech(fields: &Value) -> Option<Speech> {
    let said = || texts(&fields["message"]["parts"]);
    match fields["type"].as_str()? {
        "user" if fields["provenance"] == "real_user" => Some(Speech::Prompt(said())),
        "assistant" => Some(Speech::Words(said())),
        _ => None,
    }
}
