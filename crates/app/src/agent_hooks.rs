//! How tenure's hooks stand in the settings of each agent: what `tenure install --check` says, and the command that helps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::own_command::ask;

/// The state of one whose settings cannot be read.
pub const UNREADABLE: &str = "unreadable";
/// The exit code if no agent is here.
const NOT_FOUND: i32 = 4;

/// The settings of an agent that was found here, or that tenure edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentHooks {
    /// Its name; `git` for the hooks of a repository.
    pub agent: String,
    /// `installed`; `outdated` if they are not complete, or run another tenure; `not_installed`; `not_found` if the
    /// agent is not here any more; `unreadable` if its settings cannot be read, as the note says.
    pub state: String,
    /// `user`, `project` or `plugin`; null if its settings cannot be read.
    pub scope: Option<String>,
    pub file: String,
    /// For an agent that reviews hooks: `trusted`, `off`, `changed` or `untrusted`.
    pub trust: Option<String>,
    pub notes: Vec<String>,
    /// The program that its hooks name, if it is gone.
    #[serde(default)]
    pub gone: Option<String>,
    /// The events whose hooks run twice.
    #[serde(default)]
    pub doubled: Vec<String>,
    /// The command that installs or updates them, if that is needed and can be done from anywhere.
    #[serde(default)]
    pub command: Option<String>,
}

/// Why nothing is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotChecked {
    /// The command gave no answer.
    NoAnswer(String),
    /// It refused, for this reason: a file cannot be read.
    Refused(String),
}

impl AgentHooks {
    /// Whether the agent is set up not to run them.
    pub fn is_untrusted(&self) -> bool {
        matches!(self.trust.as_deref(), Some("off" | "changed" | "untrusted"))
    }

    fn helped(mut self) -> Self {
        let needs = matches!(self.state.as_str(), "outdated" | "not_installed");
        let is_users = self.scope.as_deref() == Some("user");
        self.command = (needs && is_users).then(|| format!("tenure install {}", self.agent));
        self
    }
}

/// An agent whose settings cannot be read, while those of others can.
fn unreadable(failed: &Value) -> AgentHooks {
    let text = |name: &str| failed[name].as_str().unwrap_or_default().to_owned();
    AgentHooks {
        agent: text("agent"),
        state: UNREADABLE.to_owned(),
        scope: None,
        file: text("file"),
        trust: None,
        notes: vec![text("message")],
        gone: None,
        doubled: Vec::new(),
        command: None,
    }
}

/// Asks. Nothing if no agent is here.
pub fn check() -> Result<Vec<AgentHooks>, NotChecked> {
    let (code, mut said) = ask(&["install", "--check"]).map_err(NotChecked::NoAnswer)?;
    if code == NOT_FOUND {
        return Ok(Vec::new());
    }
    if let Some(message) = said["error"]["message"].as_str() {
        return Err(NotChecked::Refused(message.to_owned()));
    }
    let agents: Vec<AgentHooks> = serde_json::from_value(said["agents"].take())
        .map_err(|error| NotChecked::NoAnswer(error.to_string()))?;
    let mut agents: Vec<AgentHooks> = agents.into_iter().map(AgentHooks::helped).collect();
    agents.extend(
        said["failed"]
            .as_array()
            .into_iter()
            .flatten()
            .map(unreadable),
    );
    Ok(agents)
}
