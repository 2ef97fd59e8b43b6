//! Any program: small JSON in, small JSON out.
//!
//! In: `event` (`start`, `fork`, `busy`, `waiting`, `idle`, `beat` or `end`) and, all optional, `agent` (a name
//! for the program), `pid` (its process, which must be an ancestor of the hook), `session_id` (its id of the
//! conversation), `cwd`, `subagent_id`, `reason` (of an end), `asks` (what it waits for), `transcript_path`,
//! `writes` (a file about to be written, or a list of them), `prompt` (what a person asked), `title` (of the work). Out, all
//! optional: `context` (for the model), `message` (for the person), `block` (why not to write), `env`
//! (variables for its tools). Without `pid`, `tenure_core::program` decides which process it is.

use tenure_core::agent_event::{Happening, QuestionText, Subagent};
use tenure_core::id::AgentName;
use tenure_core::session::Doing;

use crate::adapter::{Adapter, FirstEvent};
use crate::hooks::AN_ANSWER;
use crate::payload::Payload;
use crate::report::{Report, Tool, Tools, own_answer};

const FIELDS: &[&str] = &[
    "event",
    "agent",
    "pid",
    "session_id",
    "cwd",
    "subagent_id",
    "reason",
    "asks",
    "transcript_path",
    "writes",
    "prompt",
    "title",
];

const EVENTS: &[&str] = &["start", "fork", "busy", "waiting", "idle", "beat", "end"];

pub(crate) const ROW: Adapter = Adapter {
    name: "generic",
    events: &[],
    notifications: &[],
    tools: Tools {
        writers: &[],
        shell: "",
        shell_dir: None,
    },
    reader: read,
    answerer: |_, answer| own_answer(answer),
    reads_before_tool: true,
    pid_variable: None,
    registry: None,
    turn_records: None,
    background: None,
    first_event: FirstEvent::Start,
    env_file_variable: None,
    is_any_program: true,
    has_status_line: false,
    resuming_sends: false,
    wakes: None,
    commander: |_| None,
    runs: None,
    settings: None,
};

fn read(_: &Adapter, event: &[u8]) -> Report {
    let mut payload = Payload::read(event, FIELDS);
    let mut report = Report::begin(&mut payload);
    report.name = payload.words("event").unwrap_or_default();
    report.agent = payload.text("agent").and_then(|text| {
        AgentName::parse(&text)
            .map_err(|wrong| payload.problem(wrong.to_string()))
            .ok()
    });
    if !report.name.is_empty() && !EVENTS.contains(&report.name.as_str()) {
        let (name, known) = (&report.name, EVENTS.join(", "));
        let wrong =
            format!("event \"{name}\" is unknown and counts as a beat; expected one of {known}");
        payload.problem(wrong);
    }
    report.pid = payload.pid("pid");
    report.subagent = payload
        .words("subagent_id")
        .map(|id| Subagent { id, kind: None });
    report.what = match report.name.as_str() {
        "start" => Happening::Start,
        "fork" => Happening::Fork,
        "end" => Happening::End {
            ends_worker: true,
            reason: payload.words("reason").unwrap_or_default(),
        },
        _ => Happening::Other,
    };
    report.doing = match report.name.as_str() {
        "start" | "fork" => Some(Doing::Idle),
        "idle" => Some(Doing::Finished),
        "busy" => Some(Doing::Busy),
        "waiting" => Some(Doing::Waiting),
        _ => None,
    };
    if report.doing == Some(Doing::Waiting) {
        report.asks = payload.text("asks").map(QuestionText::Exactly);
        report.asks_kind = report.asks.as_ref().map(|_| AN_ANSWER.to_owned());
    }
    report.attended = matches!(report.name.as_str(), "start" | "fork");
    report.transcript = payload.path("transcript_path");
    let writes = payload.texts("writes");
    report.tool = (!writes.is_empty()).then(|| Tool {
        name: "write".into(),
        before: true,
        writes,
        command: None,
        dir: None,
    });
    report.prompt = payload.beginning("prompt");
    report.title = payload.beginning("title");
    report.reaches_model = true;
    report.finish(payload)
}
