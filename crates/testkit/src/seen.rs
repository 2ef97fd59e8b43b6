//! Which failures a test run produced, one per line, in the file that TENURE_SEEN names: the kind,
//! the message (if it was printed as text, which does not show the kind), and the command line.
//!
//! The pages of messages are checked against it, because no test can know which kinds the code of a
//! command can return. Lines are appended in one write, so that several test processes can share
//! the file.

use std::io::Write;

use serde_json::Value;

use crate::output::Output;

/// The variable that names the file; without it nothing is recorded.
pub const VARIABLE: &str = "TENURE_SEEN";

/// Stands in for the kind if a failure was printed as text.
pub const AS_TEXT: &str = "-";

/// Records a failure of tenure.
pub(crate) fn note(what: &str, output: &Output) {
    let Some(file) = std::env::var_os(VARIABLE) else {
        return;
    };
    let (program, words) = what.split_once(' ').unwrap_or((what, ""));
    let is_tenure = program.rsplit('/').next() == Some("tenure");
    let failure = match (kind_of(output), message_of(output)) {
        (Some(kind), _) => (kind, String::new()),
        (None, Some(message)) => (AS_TEXT.to_owned(), message),
        (None, None) => return,
    };
    if !is_tenure {
        return;
    }
    let (kind, message) = failure;
    let (words, message) = (one_line(words), one_line(&message));
    let mut options = std::fs::OpenOptions::new();
    let file = options.create(true).append(true).open(file);
    let mut file = file.expect("the file of TENURE_SEEN can be written");
    let line = format!("{kind}\t{message}\t{words}\n");
    file.write_all(line.as_bytes()).expect("there is room");
}

/// The kind of the error in the one JSON object on stdout, or in the last one on stderr.
fn kind_of(output: &Output) -> Option<String> {
    let last = output.stderr.lines().last().unwrap_or_default();
    let objects = [output.stdout.as_str(), last];
    objects.iter().find_map(|text| {
        let object: Value = serde_json::from_str(text).ok()?;
        Some(object["error"]["kind"].as_str()?.to_owned())
    })
}

/// The message of a failure that was printed as text.
fn message_of(output: &Output) -> Option<String> {
    let mut lines = output.stderr.lines().filter(|_| output.code != 0);
    lines.find_map(|line| Some(line.strip_prefix("error: ")?.to_owned()))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\t'], " ")
}
