//! Gemini CLI unattended (seen with 0.61.0).
//!
//! The exit code is 0 after a signal and after an answer that was cut off, and the HTTP status modulo 256 after an
//! error. The type of an error is always `unknown`: its message or the exit code tells. A limit may make it sleep
//! for hours, which only its standard error shows. It is started as one process, because signals to the wrapper of
//! two are lost. `--skip-trust` runs it in any directory without that directory's hooks and servers, unless folder
//! trust is switched off, or the directory is trusted before that flag is read.

use serde_json::Value;
use tenure_core::run::failure::{AgentFailure, ErrorClass};
use tenure_core::run::line::{Final, RunLine, Spent, SpentBy, Tokens};

use crate::install::OffSwitch;

use super::field::{count, named, text};
use super::stderr::{self, Signs};
use super::{
    AgentRun, Inherited, Keeps, Launch, RunSpec, StopSignal, Untrusted, Variables, body,
    conversation_flags, has_flag, no_tail, no_totals, words,
};

const SIGNS: Signs = &[
    (
        "Error resuming session: Invalid session identifier",
        ErrorClass::UnknownConversation,
    ),
    (
        "Error resuming session: No previous sessions found",
        ErrorClass::UnknownConversation,
    ),
    ("Error starting session: Session ID", ErrorClass::Busy),
    (
        "Gemini CLI is not running in a trusted directory",
        ErrorClass::Untrusted,
    ),
];

/// Beginnings and parts of its own messages.
const MESSAGES: Signs = &[
    ("exhausted your daily quota", ErrorClass::Limit),
    ("exhausted your capacity", ErrorClass::Limit),
    ("exceeded your current quota", ErrorClass::Limit),
    ("Resource has been exhausted", ErrorClass::Limit),
    ("model is overloaded", ErrorClass::Server),
    ("fetch failed", ErrorClass::Network),
    ("Incomplete JSON segment", ErrorClass::Network),
    ("stream ended without a finish reason", ErrorClass::Network),
];

pub(crate) const RUN: AgentRun = AgentRun {
    spec: RunSpec {
        chooses_id: true,
        has_title: false,
        stop: StopSignal::Terminate,
        compacts: false,
        resumes_anywhere: false,
        keeps: Keeps::File,
        untrusted: Untrusted::UnlessOff(OffSwitch {
            path: &["security", "folderTrust", "enabled"],
            value: false,
        }),
        takes_budget: false,
        tells_in_file: false,
        reserved: &[
            "-p",
            "--prompt",
            "-i",
            "--prompt-interactive",
            "-o",
            "--output-format",
            "-r",
            "--resume",
            "--session-id",
            "--skip-trust",
        ],
        reserved_untrusted: &[],
        program_below_script: &[],
        keys: &[
            "GEMINI_API_KEY",
            "GEMINI_CLI_HOME",
            "GOOGLE_API_KEY",
            "GOOGLE_CLOUD_*",
            "GOOGLE_GEMINI_*",
            "GOOGLE_GENAI_*",
        ],
        answered: Some("\"type\":\"gemini\""),
    },
    commander: command,
    variables,
    reader: read,
    waits,
    failed,
    tail: no_tail,
    totals: no_totals,
};

fn variables(launch: &Launch<'_>, _: Inherited<'_>) -> Variables {
    let mut variables = vec![
        ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
        ("NO_COLOR", "1".to_owned()),
    ];
    if !launch.trusted {
        // What the user trusts at a terminal; no such file means nothing.
        variables.push((
            "GEMINI_CLI_TRUSTED_FOLDERS_PATH",
            "/dev/null/none".to_owned(),
        ));
    }
    variables
}

fn command(launch: &Launch<'_>) -> Vec<String> {
    let mut line = words(&["gemini", "-o", "stream-json", "--skip-trust"]);
    if !has_flag(launch, &["-y", "--yolo", "--approval-mode"]) {
        line.push("-y".to_owned());
    }
    line.extend(conversation_flags(launch));
    line.extend_from_slice(launch.arguments);
    line
}

fn read(line: &Value) -> Vec<RunLine> {
    match text(line, "/type").unwrap_or_default() {
        "init" => named(line, "/session_id").into_iter().collect(),
        "message" if text(line, "/role") == Some("user") => vec![RunLine::TurnBegan],
        "message" if text(line, "/role") == Some("assistant") => {
            let part = line.get("delta") == Some(&Value::Bool(true));
            text(line, "/content")
                .map(|text| RunLine::Text {
                    text: text.to_owned(),
                    part,
                })
                .into_iter()
                .collect()
        }
        "tool_use" => {
            let name = text(line, "/tool_name").unwrap_or("tool");
            let subject = text(line, "/parameters/command").or(text(line, "/parameters/file_path"));
            let what = match subject {
                Some(subject) => format!("{name}: {subject}"),
                None => name.to_owned(),
            };
            vec![RunLine::Tool { what }]
        }
        "error" => text(line, "/message")
            .map(|message| RunLine::Problem(failure(message)))
            .into_iter()
            .collect(),
        "result" => result(line),
        _ => Vec::new(),
    }
}

fn result(line: &Value) -> Vec<RunLine> {
    let used = line.get("stats").filter(|stats| stats.is_object());
    let spent = used.map(|stats| {
        RunLine::Spent(Spent {
            of: SpentBy::Run,
            tokens: Some(Tokens {
                input: count(stats, "/input_tokens"),
                output: count(stats, "/output_tokens"),
            }),
            cost_usd: None,
        })
    });
    let last = if text(line, "/status") == Some("success") {
        Final::success(None)
    } else {
        let message = text(line, "/error/message");
        let error = message.map(failure);
        Final::failed(error.unwrap_or_else(|| AgentFailure::new(ErrorClass::Other, "")))
    };
    spent.into_iter().chain([RunLine::Final(last)]).collect()
}

/// `[API Error: …]`, with the provider's body or a sentence in it.
fn failure(message: &str) -> AgentFailure {
    let body = message.find('{').zip(message.rfind('}'));
    let body = body.and_then(|(start, end)| message.get(start..=end));
    let class = body.and_then(body::class).unwrap_or_else(|| {
        let sign = MESSAGES.iter().find(|(words, _)| message.contains(words));
        sign.map_or(ErrorClass::Other, |(_, class)| *class)
    });
    AgentFailure::new(class, message)
}

fn waits(line: &str) -> Option<RunLine> {
    let is_retry = line.starts_with("Attempt ") && line.contains(" failed");
    is_retry.then(|| RunLine::WaitsForProvider {
        why: line.to_owned(),
    })
}

fn failed(code: i32, text: &str) -> AgentFailure {
    let failure = stderr::failure(text, SIGNS);
    if failure.class != ErrorClass::Other {
        return failure;
    }
    let class = match code {
        145 | 147 => ErrorClass::Authentication,
        173 => ErrorClass::Limit,
        244..=247 => ErrorClass::Server,
        _ => ErrorClass::Other,
    };
    AgentFailure { class, ..failure }
}
