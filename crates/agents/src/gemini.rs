//! Gemini CLI (tested with 0.61.0).
//!
//! It re-executes itself; the child is the agent, and the nearest ancestor of a hook. On resume the start event
//! names a transcript that is not the one in use. A turn that is cancelled while a tool runs or is asked for
//! has no end event, but a record in the transcript, and so has `/compress`. An allowed tool sends nothing
//! until it is done. Without a person, what the start event answers is put in front of the prompt, and a resume
//! leaves out a prompt that begins so. It sets CLAUDE_PROJECT_DIR for its hooks, so that variable proves nothing.

use serde_json::{Map, Value, json};
use tenure_core::session::Doing;
use tenure_core::witness::TurnEnd;

use crate::adapter::{Adapter, FirstEvent};
use crate::event::{
    AsksModel, Attends, BUSY, EventSpec, FINISHED, FailsIfEmpty, File, FreshFile, HidesPrompt,
    IDLE, Means, ModelReads, SAME, event, unasked,
};
use crate::hooks;
use crate::install::mcp::McpFormat;
use crate::install::{Format, HooksFormat, McpServers, OffSwitch, Settings, mcp};
use crate::last_words::texts;
use crate::report::{EventAnswer, Tools};
use crate::run;
use crate::turn_records::{Record, Speech, TurnRecords};

/// In milliseconds.
const EVENTS: &[EventSpec] = &[
    event(
        "SessionStart",
        5000,
        Means::Start,
        IDLE,
        &[ModelReads, FreshFile, HidesPrompt],
    ),
    event("SessionEnd", 5000, Means::End, SAME, &[File]),
    event(
        "BeforeAgent",
        5000,
        Means::Other,
        BUSY,
        &[ModelReads, Attends],
    ),
    event(
        "AfterAgent",
        5000,
        Means::Other,
        FINISHED,
        &[File, FailsIfEmpty],
    ),
    event("BeforeTool", 5000, Means::BeforeTool, BUSY, &[]),
    event("AfterTool", 5000, Means::AfterTool, BUSY, &[ModelReads]),
    event("PreCompress", 5000, Means::Other, BUSY, &[]),
    event("Notification", 5000, Means::Other, SAME, &[]),
    // Nothing else shows that it asks its model again.
    event("BeforeModel", 5000, Means::Other, BUSY, &[AsksModel]),
    unasked("AfterModel", Means::Other, BUSY, &[]),
    unasked("BeforeToolSelection", Means::Other, BUSY, &[]),
];

pub(crate) const ROW: Adapter = Adapter {
    name: "gemini",
    events: EVENTS,
    notifications: &[("ToolPermission", Doing::Waiting)],
    tools: Tools {
        writers: &[
            ("write_file", "tool_input.file_path"),
            ("replace", "tool_input.file_path"),
        ],
        shell: "run_shell_command",
        shell_dir: Some("tool_input.dir_path"),
    },
    reader: hooks::read,
    answerer: answer,
    // Before a tool it accepts only a denial; everything else goes with the tool's result.
    reads_before_tool: false,
    pid_variable: None,
    registry: None,
    turn_records: Some(TurnRecords {
        read: record,
        speech,
        // It may write the whole conversation again after the record.
        tail: 4 << 20,
    }),
    background: None,
    first_event: FirstEvent::Start,
    env_file_variable: None,
    is_any_program: false,
    has_status_line: false,
    resuming_sends: false,
    wakes: None,
    commander: |turn| Some(turn.line("gemini", "--resume", [&["-p"], &["-o", "stream-json"]])),
    runs: Some(run::gemini::RUN),
    settings: Some(Settings {
        variable: None,
        home: ".gemini",
        project: ".gemini",
        file: "settings.json",
        format: Format::Hooks(HooksFormat {
            agent: "gemini",
            events: EVENTS,
            comments: true,
            byte_order_mark: false,
            named: true,
            status_line: false,
        }),
        off: Some(OffSwitch {
            path: &["hooksConfig", "enabled"],
            value: false,
        }),
        sandbox: None,
        has_plugin: false,
        is_read_at_start: false,
        mcp: Some(McpServers {
            files: &["settings.json"],
            is_beside: false,
            format: McpFormat::Json {
                name: "mcpServers",
                entry: mcp::command_and_args,
                file: HooksFormat {
                    agent: "gemini",
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

/// What a person cancelled, and the end of `/compress`: how much it saved is not recorded. After a No it writes the
/// earlier answers once more, without their model: those are not new.
fn record(fields: &Value) -> Option<Record> {
    let text = || fields["content"].as_str();
    let by_person = match fields["type"].as_str()? {
        "gemini" => return fields["model"].is_string().then_some(Record::Answers),
        "info" => matches!(text(), Some("Request cancelled." | "")),
        "error" => text()?.starts_with("Failed to compress chat history"),
        _ => false,
    };
    by_person.then_some(Record::Ends(TurnEnd::ByPerson))
}

/// What a hook adds stands before the prompt.
fn speech(fields: &Value) -> Option<Speech> {
    const ADDED: &str = "</hook_context>";
    match fields["type"].as_str()? {
        "user" => {
            let said = texts(&fields["content"]);
            let said = said.split_once(ADDED).map_or(&*said, |(_, said)| said);
            let is_own = !said.starts_with("<session_context>");
            is_own.then(|| Speech::Prompt(said.to_owned()))
        }
        "gemini" => Some(Speech::Words(fields["content"].as_str()?.to_owned())),
        _ => None,
    }
}

fn answer(event: &str, answer: &EventAnswer) -> Option<Value> {
    let mut said = Map::new();
    if let Some(reason) = answer.block.as_ref().filter(|_| event == "BeforeTool") {
        said.insert("decision".into(), json!("deny"));
        said.insert("reason".into(), json!(reason));
    }
    hooks::said(event, answer, Map::new(), said)
}
