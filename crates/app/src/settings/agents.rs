//! Agents that a user defines: `[agents.NAME]`.

use tenure_agents::run::{Configured, ConfiguredTable};

use crate::toml_words::plain;

/// Parses the table of one agent.
pub(super) fn parse(name: &str, value: &toml::Value) -> Result<Configured, String> {
    let table: ConfiguredTable = value.clone().try_into().map_err(|error| told(&error))?;
    let is_known = |name: &str| tenure_agents::adapter(name).is_some();
    Configured::check(name, table, is_known).map_err(|wrong| wrong.to_string())
}

/// What is wrong, with the key, which the error tells only behind its message.
fn told(error: &toml::de::Error) -> String {
    let message = error.message();
    if let Some(missing) = message.strip_prefix("missing field ") {
        return format!("{} is missing", missing.trim_matches('`'));
    }
    if let Some(unknown) = message.strip_prefix("unknown field `") {
        let (key, _) = unknown.split_once('`').unwrap_or((unknown, ""));
        return format!("{key}: {}", plain(message));
    }
    let whole = error.to_string();
    let mut lines = whole.lines();
    let key = lines.find_map(|line| line.strip_prefix("in `")?.strip_suffix('`'));
    match key {
        Some(key) => format!("{key}: {}", plain(message)),
        None => plain(message),
    }
}
