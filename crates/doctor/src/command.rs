//! Commands of tenure that repair something.

use serde_json::Value;
use tenure_app::own_command::ask;

/// Runs one.
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
