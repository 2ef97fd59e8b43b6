//! Agents that a user defines: `[agents.NAME]`.

use tenure_agents::run::{Configured, ConfiguredTable};

/// Parses the table of one agent.
pub(super) fn parse(name: &str, value: &toml::Value) -> Result<Configured, String> {
    let table: ConfiguredTable = value
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    let is_known = |name: &str| tenure_agents::adapter(name).is_some();
    Configured::check(name, table, is_known).map_err(|wrong| wrong.to_string())
}
