//! What is wrong with a dispatch.toml.

use std::fmt;
use std::path::Path;

use serde_json::json;
use tenure_service::answer::{Class, Hint, Problem};

/// One fault, with its position in the file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConfigFault {
    pub line: usize,
    /// The section and the key, such as `rule 2: agent`.
    pub key: String,
    pub why: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, key, why } = self;
        if key.is_empty() {
            write!(f, "line {line}: {why}")
        } else {
            write!(f, "line {line}, {}: {why}", key.replace(": ", ", "))
        }
    }
}

/// All faults of a file as one error.
pub(super) fn problem(file: &Path, mut faults: Vec<ConfigFault>) -> Problem {
    faults.sort_by_key(|fault| fault.line);
    let count = match faults.len() {
        1 => "1 fault".to_owned(),
        more => format!("{more} faults"),
    };
    let message = format!("{} has {count}", file.display());
    let named = file.display().to_string();
    let args = ["check", "--config", &named];
    let hint = Hint::run("dispatch", args, "again after you have corrected the file");
    let mut problem = Problem::new(Class::Invalid, "dispatch_config", message, hint);
    let lines = faults.iter().map(|fault| format!("  {fault}"));
    problem.lines = std::iter::once(problem.message.clone())
        .chain(lines)
        .collect();
    problem.data.insert("file".into(), json!(file));
    problem.data.insert("dispatch_faults".into(), json!(faults));
    problem
}
