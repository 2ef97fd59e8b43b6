//! Claude Code unattended (seen with 2.1.197 and 2.1.325).
//!
//! `init` comes when the conversation was found and the prompt is about to go out; a refused resume has only a
//! `result`, whose id is the one that was asked for. A `result` of a failed turn calls itself a success and has
//! `is_error`; its class is partly in the `assistant` line before it. Commands such as `/clear` end with a success
//! of no turns, said by a model called `<synthetic>`. `total_cost_usd` is the whole conversation's.

use serde_json::Value;
use tenure_core::run::failure::{AgentFailure, ErrorClass};
use tenure_core::run::line::{Final, RunLine, Spent, SpentBy, Tokens};

use super::field::{count, epoch, named, number, sum, text};
use super::stderr::{self, Signs};
use super::{
    AgentRun, Keeps, Launch, RunSpec, StopSignal, Untrusted, conversation_flags, has_flag, no_tail,
    no_totals, no_waits, words,
};

/// Variables that are set for every run, because any agent may start Claude Code: without them it reads files that a
/// prompt names into the prompt.
pub const SET_FOR_EVERY_RUN: &[(&str, &str)] = &[
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
];

/// What may be used without a question; any other tool that needs permission is refused.
const TOOLS: &str = "Bash,Edit,Write,NotebookEdit";

/// Flags by which a user decides about permissions.
const PERMISSIONS: &[&str] = &[
    "--permission-mode",
    "--dangerously-skip-permissions",
    "--permission-prompt-tool",
];

const SIGNS: Signs = &[
    (
        "No conversation found with session ID",
        ErrorClass::UnknownConversation,
    ),
    ("is already in use.", ErrorClass::Busy),
];

/// Everything that the model reads, from a cache or not.
const INPUT: &[&str] = &[
    "/input_tokens",
    "/cache_read_input_tokens",
    "/cache_creation_input_tokens",
];

/// The model of lines that no model wrote.
const NO_MODEL: &str = "<synthetic>";

pub(crate) const RUN: AgentRun = AgentRun {
    spec: RunSpec {
        chooses_id: true,
        has_title: false,
        stop: StopSignal::Terminate,
        compacts: true,
        resumes_anywhere: false,
        keeps: Keeps::File,
        untrusted: Untrusted::Switches,
        takes_budget: true,
        tells_in_file: false,
        reserved: &[
            "-p",
            "--print",
            "-c",
            "--continue",
            "-r",
            "--resume",
            "--session-id",
            "--fork-session",
            "--output-format",
            "--input-format",
            "--verbose",
            "--no-session-persistence",
            "--include-partial-messages",
        ],
        reserved_untrusted: &["--setting-sources", "--mcp-config"],
        program_below_script: &[],
        keys: &[
            "ANTHROPIC_*",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_*",
            "CLAUDE_CONFIG_DIR",
        ],
        answered: None,
    },
    commander: command,
    variables: |_, _| vec![("DISABLE_AUTOUPDATER", "1".to_owned())],
    reader: read,
    waits: no_waits,
    failed: |_, text| stderr::failure(text, SIGNS),
    tail: no_tail,
    totals: no_totals,
};

fn command(launch: &Launch<'_>) -> Vec<String> {
    let mut line = words(&["claude", "-p"]);
    line.extend(conversation_flags(launch));
    line.extend(words(&["--output-format", "stream-json", "--verbose"]));
    if !has_flag(launch, PERMISSIONS) {
        line.extend(words(&["--permission-mode", "dontAsk"]));
        if !has_flag(launch, &["--allowedTools", "--allowed-tools"]) {
            line.extend(words(&["--allowedTools", TOOLS]));
        }
    }
    if !launch.trusted {
        line.extend(words(&["--setting-sources", "user", "--strict-mcp-config"]));
    }
    if let Some(budget) = launch.budget_usd {
        line.extend(["--max-budget-usd".to_owned(), budget.to_string()]);
    }
    line.extend_from_slice(launch.arguments);
    line
}

/// Also Qwen Code's, whose stream has the same shape.
pub(crate) fn read(line: &Value) -> Vec<RunLine> {
    match text(line, "/type").unwrap_or_default() {
        "system" => system(line),
        "rate_limit_event" => limit(line).into_iter().collect(),
        "assistant" => assistant(line),
        "result" => result(line),
        _ => Vec::new(),
    }
}

fn system(line: &Value) -> Vec<RunLine> {
    match text(line, "/subtype").unwrap_or_default() {
        "init" => named(line, "/session_id")
            .into_iter()
            .chain([RunLine::TurnBegan])
            .collect(),
        "api_retry" => {
            let error = text(line, "/error").unwrap_or("unknown");
            let attempt = count(line, "/attempt");
            let why = match number(line, "/error_status") {
                Some(status) => format!("{error} ({status}), attempt {attempt}"),
                None => format!("{error}, attempt {attempt}"),
            };
            vec![RunLine::WaitsForProvider { why }]
        }
        "permission_denied" => {
            let what = text(line, "/tool_name").unwrap_or("tool").to_owned();
            vec![RunLine::Denied { what }]
        }
        _ => Vec::new(),
    }
}

fn limit(line: &Value) -> Option<RunLine> {
    let is_rejected = text(line, "/rate_limit_info/status") == Some("rejected");
    is_rejected.then(|| RunLine::Limit {
        resets_at: epoch(line, "/rate_limit_info/resetsAt"),
    })
}

fn assistant(line: &Value) -> Vec<RunLine> {
    let content = line.pointer("/message/content").and_then(Value::as_array);
    let content = content.map(Vec::as_slice).unwrap_or_default();
    if let Some(error) = text(line, "/error") {
        let said = content.iter().find_map(|part| text(part, "/text"));
        let said = said.unwrap_or(error);
        let class = class_of_error(error, line, said);
        return vec![RunLine::Problem(AgentFailure::new(class, said))];
    }
    if text(line, "/message/model") == Some(NO_MODEL) {
        return Vec::new();
    }
    let is_main = line.get("parent_tool_use_id").is_none_or(Value::is_null);
    let mut lines = vec![RunLine::Thought];
    for part in content {
        match text(part, "/type").unwrap_or_default() {
            "tool_use" => lines.push(RunLine::Tool { what: tool(part) }),
            "text" if is_main => lines.extend(text(part, "/text").map(|text| RunLine::Text {
                text: text.to_owned(),
                part: false,
            })),
            _ => {}
        }
    }
    lines
}

/// A tool and what it is used on.
fn tool(part: &Value) -> String {
    let name = text(part, "/name").unwrap_or("tool");
    let subject = [
        "/input/command",
        "/input/file_path",
        "/input/pattern",
        "/input/url",
    ];
    match subject.iter().find_map(|pointer| text(part, pointer)) {
        Some(subject) => format!("{name}: {subject}"),
        None => name.to_owned(),
    }
}

fn class_of_error(error: &str, line: &Value, said: &str) -> ErrorClass {
    match (error, text(line, "/api_error")) {
        (_, Some("usage_limit_reached")) | ("rate_limit", _) => ErrorClass::Limit,
        (_, Some("tool_history_mismatch")) => ErrorClass::History,
        (_, Some("connection_failed")) => ErrorClass::Network,
        ("authentication_failed", _) => ErrorClass::Authentication,
        ("billing_error", _) => ErrorClass::Billing,
        ("server_error" | "overloaded", _) => ErrorClass::Server,
        ("invalid_request", _) => ErrorClass::History,
        _ if refuses_messages(said) => ErrorClass::History,
        _ => ErrorClass::Other,
    }
}

/// The provider's own words begin with the parameter that it refuses.
fn refuses_messages(said: &str) -> bool {
    said.starts_with("API Error: 400 messages")
}

fn result(line: &Value) -> Vec<RunLine> {
    let ok = line.get("is_error") == Some(&Value::Bool(false))
        && text(line, "/subtype") == Some("success");
    let turns = number(line, "/num_turns").map(|turns| u32::try_from(turns).unwrap_or(u32::MAX));
    let denials = line.get("permission_denials").and_then(Value::as_array);
    let denied = denials.map(Vec::as_slice).unwrap_or_default();
    let name = |denial: &Value| text(denial, "/tool_name").unwrap_or("tool").to_owned();
    let mut lines = usage(line);
    lines.push(RunLine::Final(Final {
        ok,
        turns,
        text: text(line, "/result").filter(|_| ok).map(str::to_owned),
        denied: denied.iter().map(name).collect(),
        error: (!ok).then(|| failure(line, turns)),
    }));
    lines
}

fn failure(line: &Value, turns: Option<u32>) -> AgentFailure {
    let errors = line.get("errors").and_then(Value::as_array);
    let errors: Vec<&str> = errors
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let told = text(line, "/result").or(text(line, "/error/message"));
    let told = told.map_or_else(|| errors.join("; "), str::to_owned);
    let is_unknown = |error: &&str| error.starts_with("No conversation found with session ID");
    let status = number(line, "/api_error_status");
    let class = match (
        text(line, "/subtype").unwrap_or_default(),
        text(line, "/terminal_reason").unwrap_or_default(),
        text(line, "/api_error").unwrap_or_default(),
    ) {
        ("error_max_turns" | "error_max_budget_usd", ..) => ErrorClass::Cap,
        (_, "prompt_too_long", _) => ErrorClass::Overflow,
        (_, "image_error", _) | (.., "tool_history_mismatch") => ErrorClass::History,
        (.., "usage_limit_reached") => ErrorClass::Limit,
        (.., "connection_failed") => ErrorClass::Network,
        (_, reason, _) if reason.starts_with("aborted") => ErrorClass::Aborted,
        _ if turns == Some(0) && errors.iter().any(is_unknown) => ErrorClass::UnknownConversation,
        _ if status == Some(400) && refuses_messages(&told) => ErrorClass::History,
        _ => status.map_or(ErrorClass::Other, ErrorClass::of_status),
    };
    AgentFailure::new(class, &told)
}

/// The tokens that an object of it counts.
pub(crate) fn tokens(usage: &Value) -> Tokens {
    Tokens {
        input: sum(usage, INPUT),
        output: count(usage, "/output_tokens"),
    }
}

fn usage(line: &Value) -> Vec<RunLine> {
    let mut lines = Vec::new();
    let models = line
        .get("model_usage_since_last_result")
        .and_then(Value::as_object);
    if let Some(models) = models {
        let all = |pointers: &[&str]| {
            let used = models.values().map(|model| sum(model, pointers));
            used.fold(0, u64::saturating_add)
        };
        let cost = |model: &Value| model.get("costUSD").and_then(Value::as_f64);
        let costs = models.values().filter_map(cost);
        lines.push(RunLine::Spent(Spent {
            of: SpentBy::Run,
            tokens: Some(Tokens {
                input: all(&[
                    "/inputTokens",
                    "/cacheReadInputTokens",
                    "/cacheCreationInputTokens",
                ]),
                output: all(&["/outputTokens"]),
            }),
            cost_usd: Some(costs.fold(0.0, |all, one| all + one)),
        }));
        return lines;
    }
    if let Some(used) = line.get("usage").filter(|used| used.is_object()) {
        lines.push(RunLine::Spent(Spent {
            of: SpentBy::Run,
            tokens: Some(tokens(used)),
            cost_usd: None,
        }));
    }
    if let Some(cost) = line.get("total_cost_usd").and_then(Value::as_f64) {
        lines.push(RunLine::Spent(Spent {
            of: SpentBy::Conversation,
            tokens: None,
            cost_usd: Some(cost),
        }));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenure_core::time::Timestamp;

    use super::*;

    #[test]
    fn only_a_rejected_request_is_a_limit() {
        let event = |status: &str| {
            let info = json!({"status": status, "resetsAt": 1_794_742_143});
            read(&json!({"type": "rate_limit_event", "rate_limit_info": info}))
        };
        let resets_at = Some(Timestamp(1_794_742_143_000));
        assert_eq!(event("rejected"), [RunLine::Limit { resets_at }]);
        for status in ["allowed", "allowed_warning", ""] {
            assert_eq!(event(status), [], "{status}");
        }
    }
}
