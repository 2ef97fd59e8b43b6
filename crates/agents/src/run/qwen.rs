//! Qwen Code unattended (seen with 0.24.4).
//!
//! Its stream has Claude Code's shape: `system/init` first, `result` last. It reads a prompt from its standard input
//! when it has no other. What it says that it used is the whole conversation's. It knows the conversations of one
//! directory. The error of a failed turn is text in a field of its own, `[API Error: 400 …]`: the status, then
//! Anthropic's whole answer, or OpenAI's message without its code. While it asks again, each attempt is a line of the
//! stream (`system/retry`); a usage limit is tried for more than 7 minutes, and one whose time the provider names in a
//! header shows nothing at all.
//!
//! A repository that is not trusted is kept away by folder trust, which settings of the machine switch on. That
//! switches `-y` off, so the tools that an unattended run needs are allowed by name.

use serde_json::Value;
use tenure_core::run::failure::ErrorClass;
use tenure_core::run::line::{Final, RunLine, SpentBy};

use super::field::{number, text};
use super::stderr::{self, Signs};
use super::{
    AgentRun, Inherited, Keeps, Launch, MachineSettings, RunSpec, StopSignal, Untrusted, Variables,
    body, claude, conversation_flags, has_flag, no_tail, no_totals, no_waits, words,
};

/// What may be used without a question in a repository that is not trusted.
const TOOLS: &str = "run_shell_command,monitor,edit,write_file,notebook_edit";

/// Settings with which a repository gives no orders. An editor could call it trusted, so none is asked.
const DISTRUST: &str =
    r#"{"security": {"folderTrust": {"enabled": true}}, "ide": {"enabled": false}}"#;

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
        resumes_anywhere: false,
        keeps: Keeps::File,
        untrusted: Untrusted::Machine(MachineSettings {
            file: (
                "QWEN_CODE_SYSTEM_SETTINGS_PATH",
                "/etc/qwen-code/settings.json",
            ),
            defaults: (
                "QWEN_CODE_SYSTEM_DEFAULTS_PATH",
                "/etc/qwen-code/system-defaults.json",
            ),
            text: DISTRUST,
            on: &["security", "folderTrust", "enabled"],
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
        reserved_untrusted: &["--mcp-config"],
        program_below_script: &[],
        keys: &[
            "DASHSCOPE_API_KEY",
            "OPENAI_*",
            "QWEN_CODE_SYSTEM_*",
            "QWEN_HOME",
        ],
        answered: None,
    },
    commander: command,
    variables,
    reader: read,
    waits: no_waits,
    failed: |_, text| stderr::failure(text, SIGNS),
    tail: no_tail,
    totals: no_totals,
};

fn variables(launch: &Launch<'_>, _: Inherited<'_>) -> Variables {
    let mut variables = vec![("NO_COLOR", "1".to_owned())];
    if !launch.trusted {
        // What the user trusts at a terminal; no such file means nothing.
        variables.push((
            "QWEN_CODE_TRUSTED_FOLDERS_PATH",
            "/dev/null/none".to_owned(),
        ));
    }
    variables
}

fn command(launch: &Launch<'_>) -> Vec<String> {
    let mut line = words(&["qwen"]);
    if !launch.trusted && !has_flag(launch, &["--allowed-tools", "--approval-mode"]) {
        // Before another flag, because it takes every word up to the next one.
        line.extend(words(&["--allowed-tools", TOOLS]));
    }
    line.extend(words(&["-o", "stream-json"]));
    if launch.trusted && !has_flag(launch, &["-y", "--yolo", "--approval-mode"]) {
        line.push("-y".to_owned());
    }
    line.extend(conversation_flags(launch));
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
    let delay = format!("{seconds}s");
    let why = format!("asks again in {delay}, attempt {attempt}");
    Some(RunLine::WaitsForProvider { why })
}

/// Where it begins the text of a provider's error.
const API_ERROR: &str = "[API Error: ";

/// The class of an error from its own field. OpenAI's code is not in it, so the messages that were seen to refuse a
/// history are told by their words; any other refusal leaves the conversation as it is.
fn class_of(message: &str) -> ErrorClass {
    let Some(rest) = message.strip_prefix(API_ERROR) else {
        return ErrorClass::Other;
    };
    let rest = rest.strip_suffix(']').unwrap_or(rest);
    let (status, said) = rest.split_once(' ').unwrap_or((rest, ""));
    let sign = || MESSAGES.iter().find(|(words, _)| rest.contains(words));
    match status.parse() {
        Ok(400) => body::class(said)
            .or_else(|| sign().map(|(_, class)| *class))
            .unwrap_or(ErrorClass::Other),
        Ok(status) => ErrorClass::of_status(status),
        Err(_) => sign().map_or(ErrorClass::Other, |(_, class)| *class),
    }
}

/// Parts of OpenAI's messages and of its own.
const MESSAGES: Signs = &[
    (
        "input exceeds the context window of this model",
        ErrorClass::Overflow,
    ),
    (
        "exceeds the endpoint request-body limit",
        ErrorClass::Overflow,
    ),
    ("text content must be non-empty", ErrorClass::History),
    (
        "The image data you provided is too large",
        ErrorClass::History,
    ),
    ("Connection error", ErrorClass::Network),
    ("fetch failed", ErrorClass::Network),
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
            // Words that also stand in refusals of a history.
            (
                "[API Error: 400 Unknown parameter: messages[0].name]",
                ErrorClass::Other,
            ),
            (
                "[API Error: 400 This model takes no image and no tool_calls]",
                ErrorClass::Other,
            ),
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
    fn a_retry_says_how_long_qwen_waits_for_its_provider() {
        let retry = r#"{"type":"system","subtype":"retry","data":{"reason":"retry","attempt":2,"maxRetries":10,"delayMs":120000,"discardedToolCalls":0}}"#;
        let lines = read(&serde_json::from_str(retry).unwrap());
        let why = "asks again in 120s, attempt 2".to_owned();
        assert_eq!(lines, [RunLine::WaitsForProvider { why }]);
    }
}
