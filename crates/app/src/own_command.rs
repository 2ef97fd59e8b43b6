//! Other commands of tenure, run as processes of their own: one that crashes takes nothing along.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tenure_host::env;

/// The program that people type, also for what runs in the one beside it.
const NAME: &str = "tenure";

pub fn program() -> Result<PathBuf, String> {
    let own = env::installed().map_err(|error| error.to_string())?;
    Ok(own.with_file_name(NAME))
}

/// The exit code and the object of a command.
pub fn ask(words: &[&str]) -> Result<(i32, Value), String> {
    let output = Command::new(program()?)
        .args(words)
        .arg("--json")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let said = serde_json::from_slice(&output.stdout);
    match (output.status.code(), said) {
        (Some(code), Ok(said)) => Ok((code, said)),
        _ => Err(format!(
            "`{NAME} {}` ended with {}: {}",
            words.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
