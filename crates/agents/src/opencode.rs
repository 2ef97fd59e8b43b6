//! opencode (tested with 1.18.33).
//!
//! It has no hooks, but our plugin, which sends its events in the format of the others and reads our own small
//! answer. A conversation that belongs to a subagent names its parent's. What is answered at a start waits in
//! the plugin for the first prompt. opencode unloads its plugins when it exits, and also when it reloads its
//! settings. So unloading ends nothing; it announces that the process is about to exit, in case it does. What
//! is answered before a tool waits for the tool's answer, which never comes if the tool fails, so notices that
//! are delivered once are not delivered there.

use std::ffi::OsString;

use tenure_core::agent_event::{Happening, Subagent};
use tenure_core::id::NativeId;

use crate::adapter::{Adapter, FirstEvent, TurnRequest, Waking};
use crate::event::{
    Answerable, Attends, BUSY, EventSpec, FAILED, FINISHED, IDLE, Means, ModelReads, RETRYING,
    SAME, WAITING, unasked,
};
use crate::hooks;
use crate::install::mcp::McpFormat;
use crate::install::{Format, HooksFormat, McpServers, Settings, mcp, opencode};
use crate::report::{Report, Tools, own_answer};
use crate::run;

const EVENTS: &[EventSpec] = &[
    unasked("SessionStart", Means::Start, IDLE, &[ModelReads]),
    unasked(
        "UserPromptSubmit",
        Means::Other,
        BUSY,
        &[ModelReads, Attends],
    ),
    unasked("PreToolUse", Means::BeforeTool, BUSY, &[]),
    unasked("PostToolUse", Means::AfterTool, BUSY, &[ModelReads]),
    unasked("PermissionRequest", Means::Other, WAITING, &[Answerable]),
    unasked("PermissionReply", Means::Other, BUSY, &[]),
    unasked("SessionUpdated", Means::Other, SAME, &[]),
    unasked("Stop", Means::Other, FINISHED, &[]),
    unasked("StopFailure", Means::Other, FAILED, &[]),
    unasked("Interrupt", Means::Other, IDLE, &[Attends]),
    unasked("Retry", Means::Other, RETRYING, &[]),
    unasked("ModelAnswer", Means::Other, BUSY, &[]),
    unasked("SessionEnd", Means::Leaves, SAME, &[]),
];

pub(crate) const ROW: Adapter = Adapter {
    name: "opencode",
    events: EVENTS,
    notifications: &[],
    tools: Tools {
        writers: &[
            ("write", "tool_input.filePath"),
            ("edit", "tool_input.filePath"),
        ],
        shell: "bash",
        shell_dir: Some("tool_input.workdir"),
    },
    reader: read,
    answerer: |_, answer| own_answer(answer),
    reads_before_tool: true,
    pid_variable: None,
    registry: None,
    turn_records: None,
    background: None,
    first_event: FirstEvent::Prompt,
    env_file_variable: None,
    is_any_program: false,
    has_status_line: false,
    resuming_sends: false,
    wakes: Some(Waking::ByStdout),
    commander: command,
    runs: Some(run::opencode::RUN),
    settings: Some(Settings {
        variable: Some(("XDG_CONFIG_HOME", "opencode")),
        home: ".config/opencode",
        project: ".opencode",
        file: "plugin/tenure.js",
        format: Format::Script(opencode::PLUGIN),
        off: None,
        sandbox: None,
        has_plugin: false,
        is_read_at_start: true,
        mcp: Some(McpServers {
            files: &["opencode.json", "opencode.jsonc", "config.json"],
            is_beside: false,
            format: McpFormat::Json {
                name: "mcp",
                entry: mcp::local,
                file: HooksFormat {
                    agent: "opencode",
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

fn read(row: &Adapter, event: &[u8]) -> Report {
    let (mut report, mut payload) = hooks::begin(event);
    let parent = payload.text("parent_id").and_then(|text| {
        NativeId::parse(&text)
            .map_err(|wrong| payload.problem(wrong.to_string()))
            .ok()
    });
    report.subagent = None;
    if let (Some(parent), Some(own)) = (parent, &report.native_id) {
        report.subagent = Some(Subagent {
            id: own.to_string(),
            kind: None,
        });
        report.native_id = Some(parent);
    }
    hooks::fill(row, &mut report, &mut payload);
    if report.subagent.is_some() {
        report.what = match report.name.as_str() {
            "SessionStart" => Happening::SubagentStart,
            "Stop" | "Interrupt" => Happening::SubagentStop,
            _ => Happening::Other,
        };
    }
    report.finish(payload)
}

fn command(turn: &TurnRequest<'_>) -> Option<Vec<OsString>> {
    let mut line = vec!["opencode"];
    if turn.prompt.is_some() {
        line.extend(["run", "--format", "json"]);
    }
    line.extend(turn.flags.iter().map(String::as_str));
    line.extend(turn.resume.iter().flat_map(|id| ["--session", id.as_str()]));
    line.extend(turn.prompt);
    Some(line.into_iter().map(OsString::from).collect())
}
