//! Qwen Code unattended (its command line seen with 0.24.4, its failures not).
//!
//! Its stream has Claude Code's shape: `system/init` first, `result` last. It reads a prompt from its standard input
//! when it has no other. What it says that it used is the whole conversation's. It knows the conversations of one
//! directory. Which classes its errors have, and what keeps a repository from giving it orders, is not known: a
//! failure is of the class `other` unless a status tells.

use serde_json::Value;
use tenure_core::run::failure::ErrorClass;
use tenure_core::run::line::{RunLine, SpentBy};

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
        keeps: Keeps::File {
            per_directory: true,
        },
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
    let mut lines = claude::read(line);
    for line in &mut lines {
        if let RunLine::Spent(spent) = line {
            spent.of = SpentBy::Conversation;
        }
    }
    lines
}

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
}
