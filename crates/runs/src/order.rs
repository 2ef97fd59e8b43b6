//! The order that a runner is started with.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::id::{AgentName, JobId, Malformed, RunId, WorkerRole};
use tenure_core::key::Key;
use tenure_core::queue::code::JobCode;
use tenure_core::queue::code::ModelSocket;
use tenure_core::run::Trigger;
use tenure_service::JobRef;

use super::files::RunFiles;
use super::template::Variables;
use tenure_app::read_json::read_json;

/// One run as ordered. Everything that can be checked before an agent starts has been checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOrder {
    pub run: String,
    pub agent: String,
    /// The role of the agent; empty by default.
    #[serde(default)]
    pub role: String,
    pub item: String,
    /// The named directory; none means the conversation's, or else the caller's.
    pub dir: Option<String>,
    /// The directory of the caller.
    pub here: String,
    pub fresh: bool,
    pub exclusive: bool,
    pub shares_dir: bool,
    /// Whether what the agent leaves running goes on after the run.
    #[serde(default)]
    pub leave: bool,
    pub trusted: bool,
    pub timeout_ms: Option<u64>,
    /// The most that it may cost, in US dollars.
    #[serde(default)]
    pub budget_usd: Option<f64>,
    /// How long it waits for the conversation, the directory and the item.
    pub wait_ms: u64,
    pub skill: Option<String>,
    /// The variables that its template was rendered with.
    pub variables: Variables,
    pub prompts: Prompts,
    /// Arguments for the agent.
    pub arguments: Vec<String>,
    pub trigger: String,
    /// The run that it continues.
    pub goes_on: Option<String>,
    /// The agent's own directory, if the caller's environment names one other than the default.
    /// Needed by a process that ends the run in place of its runner.
    #[serde(default)]
    pub agent_home: Option<String>,
    /// Whether the agent's environment is built from a list, not inherited.
    #[serde(default)]
    pub dispatched: bool,
    /// Names of additional variables for it.
    #[serde(default)]
    pub env: Vec<String>,
    /// The command that the agent runs under.
    #[serde(default)]
    pub wrap: Vec<String>,
    /// The model that the agent reaches through a socket.
    #[serde(default)]
    pub model: Option<ModelSocket>,
    /// The place that it works in, if it is a dispatcher's.
    #[serde(default)]
    pub place: Option<OrderPlace>,
    /// What the reader of its answer must know.
    #[serde(default)]
    pub note: Option<String>,
    /// The job that it is for, and the number of the attempt.
    #[serde(default)]
    pub job: Option<(String, u32)>,
}

/// A place, and what becomes of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderPlace {
    /// The name of its record.
    pub name: String,
    /// The canonical name of its repository.
    pub repo: String,
    pub code: JobCode,
}

/// The possible prompts. All are rendered before it is known which one is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    pub fresh: String,
    pub resume: String,
}

/// The longest order that is read: two prompts, and the rest.
const MAX_LENGTH: u64 = 64 << 20;

impl RunOrder {
    pub fn run(&self) -> Result<RunId, Malformed> {
        RunId::parse(&self.run)
    }

    pub fn agent(&self) -> Result<AgentName, Malformed> {
        AgentName::parse(&self.agent)
    }

    pub fn role(&self) -> Result<WorkerRole, Malformed> {
        WorkerRole::parse(&self.role)
    }

    pub fn item(&self) -> Result<Key, Malformed> {
        Key::stored(&self.item)
    }

    pub fn trigger(&self) -> Result<Trigger, Malformed> {
        Trigger::parse(&self.trigger)
    }

    pub fn goes_on(&self) -> Result<Option<RunId>, Malformed> {
        self.goes_on.as_deref().map(RunId::parse).transpose()
    }

    pub fn job(&self) -> Result<Option<JobRef>, Malformed> {
        let Some((id, attempt)) = &self.job else {
            return Ok(None);
        };
        Ok(Some(JobRef {
            id: JobId::parse(id)?,
            attempt: *attempt,
        }))
    }

    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }

    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms)
    }

    pub fn write(&self, files: &RunFiles) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        tenure_host::file::write_private(&files.order(), &text)
    }

    pub fn read(files: &RunFiles) -> io::Result<Self> {
        let text = tenure_host::read::whole(&files.order(), MAX_LENGTH)?;
        read_json(&text)
    }
}
