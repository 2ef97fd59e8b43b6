//! Which failures a run of the tests saw: the command line and the kind of each, one a line, in the file that
//! TENURE_SEEN names.
//!
//! The pages of messages are checked against it, because no test can tell which kinds the code of a command can return.
//! Lines are appended whole, so that tests of several processes write to one file.

use std::io::Write;

use serde_json::Value;

use crate::output::Output;

/// The variable that names the file; without it nothing is noted.
pub const VARIABLE: &str = "TENURE_SEEN";

/// Notes a failure of tenure that was printed as JSON; text does not show its kind.
pub(crate) fn note(what: &str, output: &Output) {
    let Some(file) = std::env::var_os(VARIABLE) else {
        return;
    };
    let (program, words) = what.split_once(' ').unwrap_or((what, ""));
    let is_tenure = program.rsplit('/').next() == Some("tenure");
    let Some(kind) = kind_of(output).filter(|_| is_tenure) else {
        return;
    };
    let words = words.replace(['\n', '\t'], " ");
    let mut options = std::fs::OpenOptions::new();
    let file = options.create(true).append(true).open(file);
    let mut file = file.expect("the file of TENURE_SEEN can be written");
    let line = format!("{kind}\t{words}\n");
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
