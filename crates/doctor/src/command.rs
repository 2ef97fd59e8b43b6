//! Other commands of tenure, run as processes of their own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tenure_host::env;

pub(crate) fn program() -> Result<PathBuf, String> {
    env::installed().map_err(|error| error.to_string())
}

/// The exit code and the object of a command of tenure.
pub(crate) fn ask(words: &[&str]) -> Result<(i32, Value), String> {
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
            "`tenure {}` ended with {}: {}",
            words.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Runs a command that repairs something.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, said) = ask(&words)?;
    match code {
        0 => Ok(()),
        _ => Err(text(&said["error"]["message"])),
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
