//! Codex unattended (seen with 0.166.0).
//!
//! `error` lines are retries as well as the end: only `turn.completed` and `turn.failed` end a turn. An item of type
//! `error` is a warning. The class of a failure and the end of a usage limit are in the rollout alone; the message
//! names a local time without a day. Usage is the whole thread's. Codex trusts a directory as soon as it may write
//! there, and only an entry in its config.toml keeps it from that; the same setting on the command line does not.

use serde_json::Value;
use tenure_core::run::failure::{AgentFailure, ErrorClass};
use tenure_core::run::line::{Final, RunLine, Spent, SpentBy, Tokens};
use tenure_core::run::progress::Totals;
use tenure_core::time::Timestamp;

use super::field::{count, epoch, named, number, text};
use super::stderr::{self, Signs};
use super::{
    AgentRun, Keeps, Launch, OwnFile, RunSpec, StopSignal, Untrusted, body, has_flag, no_waits,
    words,
};

/// Flags by which a user decides about permissions.
const PERMISSIONS: &[&str] = &[
    "-s",
    "--sandbox",
    "--full-auto",
    "--yolo",
    "--dangerously-bypass-approvals-and-sandbox",
];

const SIGNS: Signs = &[
    (
        "no rollout found for thread id",
        ErrorClass::UnknownConversation,
    ),
    (".jsonl is empty (code", ErrorClass::Damaged),
    ("does not start with session metadata", ErrorClass::Damaged),
    ("already has an active writer", ErrorClass::Busy),
    ("Not inside a trusted directory", ErrorClass::Untrusted),
];

/// How a message of a retry begins.
const RETRIES: &str = "Reconnecting...";

pub(crate) const RUN: AgentRun = AgentRun {
    spec: RunSpec {
        chooses_id: false,
        has_title: false,
        stop: StopSignal::Interrupt,
        compacts: true,
        resumes_anywhere: true,
        keeps: Keeps::File,
        untrusted: Untrusted::Config(OwnFile {
            variable: "CODEX_HOME",
            home: ".codex",
            name: "config.toml",
        }),
        takes_budget: false,
        tells_in_file: true,
        reserved: &[
            "--json",
            "--experimental-json",
            "-C",
            "--cd",
            "-o",
            "--output-last-message",
            "--ephemeral",
            "--last",
        ],
        reserved_untrusted: &[],
        program_below_script: &[
            "../../codex-linux-*/vendor/*/bin/codex",
            "../node_modules/@openai/codex-linux-*/vendor/*/bin/codex",
        ],
        keys: &["CODEX_API_KEY", "CODEX_HOME", "OPENAI_*"],
        answered: None,
    },
    commander: command,
    variables: |_, _| Vec::new(),
    reader: read,
    waits: no_waits,
    failed: |_, text| stderr::failure(text, SIGNS),
    tail: read_tail,
    totals,
};

fn command(launch: &Launch<'_>) -> Vec<String> {
    let mut line = words(&["codex", "exec", "--json", "--skip-git-repo-check"]);
    if !has_flag(launch, PERMISSIONS) {
        line.extend(words(&["--sandbox", "workspace-write"]));
    }
    line.extend_from_slice(launch.arguments);
    if let Some(id) = launch.resume {
        line.extend(words(&["resume", id.as_str()]));
    }
    line.push("-".to_owned());
    line
}

fn read(line: &Value) -> Vec<RunLine> {
    match text(line, "/type").unwrap_or_default() {
        "thread.started" => named(line, "/thread_id").into_iter().collect(),
        "turn.started" => vec![RunLine::TurnBegan],
        "item.started" => started(line).into_iter().collect(),
        "item.completed" => completed(line),
        "error" => error(line).into_iter().collect(),
        "turn.completed" => finished(line),
        "turn.failed" => {
            let message = text(line, "/error/message").unwrap_or("the turn failed");
            vec![RunLine::Final(Final::failed(failure(message)))]
        }
        _ => Vec::new(),
    }
}

/// Items that are calls of tools.
fn tool(line: &Value) -> Option<String> {
    let subject = match text(line, "/item/type")? {
        "command_execution" => text(line, "/item/command"),
        "mcp_tool_call" => text(line, "/item/tool"),
        "web_search" => text(line, "/item/query"),
        "file_change" => text(line, "/item/changes/0/path"),
        _ => return None,
    };
    let kind = text(line, "/item/type")?.replace('_', " ");
    Some(match subject {
        Some(subject) => format!("{kind}: {subject}"),
        None => kind,
    })
}

fn started(line: &Value) -> Option<RunLine> {
    let what = tool(line)?;
    Some(RunLine::Tool { what })
}

fn completed(line: &Value) -> Vec<RunLine> {
    let kind = text(line, "/item/type").unwrap_or_default();
    match (kind, tool(line)) {
        ("agent_message", _) => text(line, "/item/text")
            .map(|text| RunLine::Text {
                text: text.to_owned(),
                part: false,
            })
            .into_iter()
            .collect(),
        ("reasoning", _) => vec![RunLine::Thought],
        (_, Some(what)) if text(line, "/item/status") == Some("declined") => {
            vec![RunLine::Denied { what }]
        }
        // Reported when it is done only.
        ("file_change", Some(what)) => vec![RunLine::Tool { what }],
        _ => Vec::new(),
    }
}

fn error(line: &Value) -> Option<RunLine> {
    let message = text(line, "/message")?;
    Some(match message.strip_prefix(RETRIES) {
        Some(why) => RunLine::WaitsForProvider {
            why: why.trim().to_owned(),
        },
        None => RunLine::Problem(failure(message)),
    })
}

/// The tokens that an object of it counts.
pub(crate) fn tokens(usage: &Value) -> Tokens {
    Tokens {
        input: count(usage, "/input_tokens"),
        output: count(usage, "/output_tokens"),
    }
}

fn finished(line: &Value) -> Vec<RunLine> {
    let spent = line.get("usage").filter(|usage| usage.is_object());
    let spent = spent.map(|usage| {
        RunLine::Spent(Spent {
            of: SpentBy::Conversation,
            tokens: Some(tokens(usage)),
            cost_usd: None,
        })
    });
    let last = RunLine::Final(Final::success(None));
    spent.into_iter().chain([last]).collect()
}

/// The class of a message, as far as it tells; the rollout knows better.
fn failure(message: &str) -> AgentFailure {
    let begins = |words: &[&str]| words.iter().any(|words| message.starts_with(words));
    let class = if let Some(class) = body::class(message) {
        class
    } else if begins(&[
        "You’ve hit your usage limit",
        "You've hit your usage limit",
        "Quota exceeded",
        "rate limit exceeded",
    ]) {
        ErrorClass::Limit
    } else if begins(&["Codex ran out of room in the model's context window"]) {
        ErrorClass::Overflow
    } else if begins(&["stream disconnected before completion", "Connection failed"]) {
        ErrorClass::Network
    } else if begins(&[
        "We’re currently experiencing high demand",
        "Selected model is at capacity",
    ]) {
        ErrorClass::Server
    } else {
        status_in(message).map_or(ErrorClass::Other, ErrorClass::of_status)
    };
    AgentFailure::new(class, message)
}

/// The HTTP status in Codex's own words.
fn status_in(message: &str) -> Option<u64> {
    let words = ["unexpected status ", "exceeded retry limit, last status: "];
    let rest = words.iter().find_map(|words| message.strip_prefix(words))?;
    rest.split(' ').next()?.parse().ok()
}

/// The records of a rollout's end, of which the first may be cut off.
fn payloads(tail: &str) -> impl DoubleEndedIterator<Item = Value> {
    let records = tail
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter_map(|mut record| Some(record.get_mut("payload")?.take()))
}

fn read_tail(tail: &str) -> Vec<RunLine> {
    let is_end = |payload: &Value| {
        matches!(
            text(payload, "/type"),
            Some("task_complete" | "turn_aborted")
        )
    };
    let Some(end) = payloads(tail).rfind(is_end) else {
        return Vec::new();
    };
    if text(&end, "/type") == Some("turn_aborted") {
        let aborted = AgentFailure::new(ErrorClass::Aborted, "the turn was aborted");
        return vec![RunLine::Problem(aborted)];
    }
    let Some(info) = end
        .pointer("/error/codex_error_info")
        .filter(|info| !info.is_null())
    else {
        return Vec::new();
    };
    let class = class_of_info(info);
    let message = text(&end, "/error/message").unwrap_or_default();
    let mut lines = vec![RunLine::Problem(AgentFailure::new(class, message))];
    if class == ErrorClass::Limit {
        let resets_at = resets_at(tail);
        lines.push(RunLine::Limit { resets_at });
    }
    lines
}

fn class_of_info(info: &Value) -> ErrorClass {
    if let Some(kind) = info.as_str() {
        return match kind {
            "usage_limit_exceeded" | "rate_limit_exceeded" => ErrorClass::Limit,
            "context_window_exceeded" => ErrorClass::Overflow,
            "server_overloaded" | "internal_server_error" => ErrorClass::Server,
            "unauthorized" => ErrorClass::Authentication,
            _ => ErrorClass::Other,
        };
    }
    let kinds = info.as_object();
    let Some((kind, detail)) = kinds.and_then(|kinds| kinds.iter().next()) else {
        return ErrorClass::Other;
    };
    match number(detail, "/http_status_code") {
        Some(status) => ErrorClass::of_status(status),
        None if kind.contains("connection") || kind.contains("stream") => ErrorClass::Network,
        None => ErrorClass::Other,
    }
}

/// The counts of tokens in a rollout's end, the last one first.
fn counts(tail: &str) -> impl Iterator<Item = Value> {
    let is_count = |payload: &Value| text(payload, "/type") == Some("token_count");
    payloads(tail).rev().filter(is_count)
}

/// When the last limits of a rollout are over: the latest of those that are used up, else the first one's.
fn resets_at(tail: &str) -> Option<Timestamp> {
    let limits = counts(tail).find_map(|mut count| {
        let limits = count.get_mut("rate_limits")?.take();
        limits.is_object().then_some(limits)
    })?;
    let window = |name: &str| {
        let at = epoch(&limits, &format!("/{name}/resets_at"))?;
        let used = limits.pointer(&format!("/{name}/used_percent"));
        Some((
            at,
            used.and_then(Value::as_f64)
                .is_some_and(|used| used >= 100.0),
        ))
    };
    let windows = [window("primary"), window("secondary")];
    let used_up = windows.iter().flatten().filter(|(_, used_up)| *used_up);
    let latest = used_up.map(|(at, _)| *at).max();
    latest.or(windows[0].map(|(at, _)| at))
}

/// What a thread has used in all, by the last count in its rollout.
fn totals(tail: &str) -> Option<Totals> {
    let pointer = "/info/total_token_usage";
    let has_totals = |count: &Value| count.pointer(pointer).is_some_and(Value::is_object);
    let last = counts(tail).find(has_totals)?;
    Some(Totals {
        tokens: last.pointer(pointer).map(tokens),
        cost_usd: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLOUT: &str = concat!(
        "off\":1}}\n",
        r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":30,"output_tokens":5}},"rate_limits":{"primary":{"used_percent":100.0,"resets_at":1794742143},"secondary":{"used_percent":40.0,"resets_at":1795000000}}}}"#,
        "\n",
        r#"{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"hit","codex_error_info":"usage_limit_exceeded"}}}"#,
        "\n{\"half",
    );

    #[test]
    fn a_rollout_tells_the_class_and_when_a_limit_ends() {
        let limit = AgentFailure::new(ErrorClass::Limit, "hit");
        let resets_at = Some(Timestamp(1_794_742_143_000));
        assert_eq!(
            read_tail(ROLLOUT),
            [RunLine::Problem(limit), RunLine::Limit { resets_at }]
        );
        let weekly = ROLLOUT.replace("40.0", "100.0");
        let resets_at = Some(Timestamp(1_795_000_000_000));
        assert!(read_tail(&weekly).contains(&RunLine::Limit { resets_at }));
        assert_eq!(read_tail(""), []);
    }

    #[test]
    fn a_class_may_be_a_word_or_carry_a_status() {
        let of = |info: &str| class_of_info(&serde_json::from_str(info).unwrap());
        let failed = r#"{"http_connection_failed":{"http_status_code":401}}"#;
        assert_eq!(of(failed), ErrorClass::Authentication);
        let failed = r#"{"http_connection_failed":{"http_status_code":null}}"#;
        assert_eq!(of(failed), ErrorClass::Network);
        let many = r#"{"response_too_many_failed_attempts":{"http_status_code":429}}"#;
        assert_eq!(of(many), ErrorClass::Limit);
        assert_eq!(of(r#""context_window_exceeded""#), ErrorClass::Overflow);
        assert_eq!(of(r#""other""#), ErrorClass::Other);
        assert_eq!(of("7"), ErrorClass::Other);
    }

    #[test]
    fn a_rollout_tells_what_the_thread_has_used() {
        let tokens = Some(Tokens {
            input: 30,
            output: 5,
        });
        let used = Totals {
            tokens,
            cost_usd: None,
        };
        assert_eq!(totals(ROLLOUT), Some(used));
        assert_eq!(totals(""), None);
    }
}
