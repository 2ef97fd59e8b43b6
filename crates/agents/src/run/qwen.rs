//! Qwen Code unattended (seen with 0.24.4).
//!
//! Its stream has Claude Code's shape: `system/init` first, `result` last. It reads a prompt from its standard input
//! when it has no other. What it says that it used is the whole conversation's. It knows the conversations of one
//! directory. The error of a failed turn is text in a field of its own, `[API Error: 400 …]`: the status, and the
//! provider's message without its code. While it asks again, each attempt is a line of the stream (`system/retry`); a
//! usage limit is tried for more than 7 minutes, and one whose time the provider names in a header shows nothing at all.

use serde_json::Value;
use tenure_core::run::failure::ErrorClass;
use tenure_core::run::line::{Final, RunLine, SpentBy};

use super::field::{number, text};
use super::stderr::{self, Signs};
use super::{
    AgentRun, Keeps, Launch, RunSpec, StopSignal, Untrusted, claude, has_flag, no_tail, no_totals,
    no_waits, words,
};

const SIGNS: Signs = &[
    (
        "No saved session found with",
        ErrorClass::UnknownConversation,
    ),
    ("already exists (active or archived)", ErrorClass::Busy),
];

pub(crate) const RUN: AgentRun = AgentRun {
    spec: RunSpec {
        chooses_id: true,
        has_title: false,
        stop: StopSignal::Terminate,
        compacts: true,
        keeps: Keeps::File,
        untrusted: Untrusted::NoSwitch,
        takes_budget: false,
        tells_in_file: false,
        reserved: &[
            "-p",
            "--prompt",
            "-i",
            "--prompt-interactive",
            "-o",
            "--output-format",
            "--input-format",
            "-c",
            "--continue",
            "-r",
            "--resume",
            "--session-id",
            "--fork-session",
            "--acp",
            "--experimental-acp",
        ],
        reserved_untrusted: &[],
        program_below_script: &[],
        keys: &["DASHSCOPE_API_KEY", "OPENAI_*", "QWEN_HOME"],
        answered: None,
    },
    commander: command,
    variables: |_, _| vec![("NO_COLOR", "1".to_owned())],
    reader: read,
    waits: no_waits,
    failed: |_, text| stderr::failure(text, SIGNS),
    tail: no_tail,
    totals: no_totals,
};

fn command(launch: &Launch<'_>) -> Vec<String> {
    let mut line = words(&["qwen", "-o", "stream-json"]);
    if !has_flag(launch, &["-y", "--yolo", "--approval-mode"]) {
        line.push("-y".to_owned());
    }
    if let Some(id) = launch.resume {
        line.extend(words(&["--resume", id.as_str()]));
    } else if let Some(id) = launch.intended {
        line.extend(words(&["--session-id", id.as_str()]));
    }
    line.extend_from_slice(launch.arguments);
    line
}

fn read(line: &Value) -> Vec<RunLine> {
    if text(line, "/subtype") == Some("retry") {
        return retry(line).into_iter().collect();
    }
    let mut lines = claude::read(line);
    for line in &mut lines {
        match line {
            RunLine::Spent(spent) => spent.of = SpentBy::Conversation,
            RunLine::Final(last) => {
                if let Some(error) = &mut last.error
                    && error.class == ErrorClass::Other
                {
                    error.class = class_of(&error.text);
                }
            }
            _ => {}
        }
    }
    let limited = lines.iter().any(|line| match line {
        RunLine::Final(last) => is_limit(last),
        _ => false,
    });
    lines.extend(limited.then_some(RunLine::Limit { resets_at: None }));
    lines
}

fn is_limit(last: &Final) -> bool {
    let error = last.error.as_ref();
    error.is_some_and(|error| error.class == ErrorClass::Limit)
}

/// It asks its provider again. Only the lines with a number have a delay; the others say that it asks now.
fn retry(line: &Value) -> Option<RunLine> {
    let attempt = number(line, "/data/attempt")?;
    let seconds = number(line, "/data/delayMs").unwrap_or_default() / 1000;
    let why = format!("asks again in {seconds}s, attempt {attempt}");
    Some(RunLine::WaitsForProvider { why })
}

/// Where it begins the text of a provider's error.
const API_ERROR: &str = "[API Error: ";

/// The class of an error from its own field. The provider's code is not in it, so the few messages that refuse a
/// history are told by their words.
fn class_of(message: &str) -> ErrorClass {
    let Some(rest) = message.strip_prefix(API_ERROR) else {
        return ErrorClass::Other;
    };
    let (status, said) = rest.split_once(' ').unwrap_or((rest, ""));
    let said = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    match status.trim_end_matches([']', ':']).parse() {
        Ok(400) if has(OVERFLOW) => ErrorClass::Overflow,
        Ok(400) if has(HISTORY) => ErrorClass::History,
        Ok(status) => ErrorClass::of_status(status),
        Err(_) if has(&["connection error", "fetch failed"]) => ErrorClass::Network,
        Err(_) => ErrorClass::Other,
    }
}

/// Parts of messages with which providers refuse a history that is too long.
const OVERFLOW: &[&str] = &["context window", "context length", "prompt is too long"];
/// Parts of messages with which providers refuse what is in a history.
const HISTORY: &[&str] = &[
    "text content must be non-empty",
    "image",
    "messages",
    "tool_call",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_used_is_the_whole_conversations() {
        let result = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"hi","usage":{"input_tokens":40,"output_tokens":20}}"#;
        let lines = read(&serde_json::from_str(result).unwrap());
        let by_conversation =
            |line: &RunLine| matches!(line, RunLine::Spent(one) if one.of == SpentBy::Conversation);
        assert!(lines.iter().any(by_conversation), "{lines:?}");
    }

    /// Lines that 0.24.4 wrote.
    fn last_of(message: &str) -> Vec<RunLine> {
        read(&serde_json::json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 1,
            "usage": {"input_tokens": 20, "output_tokens": 10}, "permission_denials": [],
            "error": {"message": message},
        }))
    }

    #[test]
    fn a_failed_turn_has_the_class_that_its_error_tells() {
        for (message, class) in [
            (
                "[API Error: 400 Invalid value: text content must be non-empty]",
                ErrorClass::History,
            ),
            (
                "[API Error: 400 Your input exceeds the context window of this model. Please adjust your input and try again.]",
                ErrorClass::Overflow,
            ),
            ("[API Error: 400 Unknown parameter: x]", ErrorClass::Other),
            (
                "[API Error: 401 Incorrect API key provided]",
                ErrorClass::Authentication,
            ),
            (
                "[API Error: 429 You exceeded your current quota, please check your plan and billing details.]",
                ErrorClass::Limit,
            ),
            (
                "[API Error: 500 The server had an error]",
                ErrorClass::Server,
            ),
            ("something else", ErrorClass::Other),
        ] {
            let lines = last_of(message);
            let error = lines.iter().find_map(|line| match line {
                RunLine::Final(last) => last.error.as_ref(),
                _ => None,
            });
            assert_eq!(error.unwrap().class, class, "{message}");
            let limited = lines.contains(&RunLine::Limit { resets_at: None });
            assert_eq!(limited, class == ErrorClass::Limit, "{message}");
        }
    }

    #[test]
    fn it_is_seen_to_wait() {
        let retry = r#"{"type":"system","subtype":"retry","data":{"reason":"retry","attempt":2,"maxRetries":10,"delayMs":120000,"discardedToolCalls":0}}"#;
        let lines = read(&serde_json::from_str(retry).unwrap());
        let why = "asks again in 120s, attempt 2".to_owned();
        assert_eq!(lines, [RunLine::WaitsForProvider { why }]);
    }
}
