//! The view of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::id::worker_name;
use tenure_core::run::{Run, RunState, Usage};
use tenure_core::time::Timestamp;

/// One run of an agent for an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    pub id: String,
    pub agent: String,
    /// The role of the agent; null by default.
    pub role: Option<String>,
    pub item: String,
    /// The item whose conversation it continues: `item`, unless that is linked.
    pub root: String,
    /// `starting`, `running` or `ended`.
    pub state: String,
    /// While it has not ended: whether its runner is `live`, `dead` or `unknown`.
    pub runner: Option<String>,
    /// `done`, `failed`, `refused`, `timeout`, `stopped`, `interrupted`, `unusable` or `parked`.
    pub outcome: Option<String>,
    /// The evidence for the outcome.
    pub why: Option<String>,
    /// The agent's exit code; 128 plus the signal number if a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether the agent did not know the conversation, so that the run continued in a new one.
    pub fell_back: bool,
    /// The handle of its agent's session.
    pub session: Option<String>,
    /// The agent's process, while it runs.
    pub pid: Option<u32>,
    /// The conversation that it resumed.
    pub before: Option<String>,
    /// The conversation that it is in, or was in at its end.
    pub native_id: Option<String>,
    pub dir: String,
    pub shares_dir: bool,
    pub exclusive: bool,
    /// `call`, `resume` or `queue`.
    pub trigger: String,
    /// The run that it continues.
    pub goes_on: Option<String>,
    pub skill: Option<String>,
    /// SHA-256 of the prompt.
    pub prompt_hash: Option<String>,
    pub created_at: Timestamp,
    /// When the agent was started.
    pub begun_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub stop_asked: Option<StopView>,
    /// Set while its agent reports that it waits for its provider; on the run's host only.
    pub waiting: Option<ProviderWait>,
    pub usage: UsageView,
    pub parked_until: Option<Timestamp>,
    /// The directory of its log.
    pub log: Option<String>,
}

/// A request to stop a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopView {
    pub at: Timestamp,
    /// The handle of the session that asked.
    pub by: Option<String>,
    pub why: String,
}

/// An agent that waits for its provider: a limit, an outage, a broken connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderWait {
    pub since: Timestamp,
    /// What the agent reports.
    pub why: String,
}

/// What a run used, as far as its agent reports it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UsageView {
    pub turns: Option<u64>,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    /// In US dollars.
    pub cost: Option<f64>,
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> Self {
        Self {
            turns: usage.turns,
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            cost: usage.cost,
        }
    }
}

/// What the view of a run needs besides its record.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub session: Option<String>,
    pub stop_by: Option<String>,
    /// `live`, `dead` or `unknown`; only for a run that has not ended.
    pub runner: Option<&'static str>,
    pub pid: Option<u32>,
}

impl RunView {
    pub(super) fn of(run: &Run, around: Around) -> Self {
        let end = run.end.as_ref();
        let state = match run.state() {
            RunState::Starting => "starting",
            RunState::Begun => "running",
            RunState::Ended => "ended",
        };
        Self {
            id: run.id.to_string(),
            agent: run.agent.to_string(),
            role: run.role.label().map(str::to_owned),
            item: run.item.to_string(),
            root: run.root.to_string(),
            state: state.to_owned(),
            runner: around.runner.map(str::to_owned),
            outcome: end.map(|end| end.outcome.as_str().to_owned()),
            why: end.map(|end| end.why.clone()),
            exit_code: end.and_then(|end| end.exit_code),
            fell_back: run.fell_back,
            session: around.session,
            pid: around.pid,
            before: run.before.as_ref().map(ToString::to_string),
            native_id: run.after.as_ref().map(ToString::to_string),
            dir: run.dir.clone(),
            shares_dir: run.shares_dir,
            exclusive: run.exclusive,
            trigger: run.trigger.as_str().to_owned(),
            goes_on: run.goes_on.as_ref().map(ToString::to_string),
            skill: run.skill.clone(),
            prompt_hash: run.prompt_hash.clone(),
            created_at: run.created_at,
            begun_at: run.begun_at,
            ended_at: end.map(|end| end.at),
            stop_asked: run.stop.as_ref().map(|stop| StopView {
                at: stop.at,
                by: around.stop_by,
                why: stop.why.clone(),
            }),
            waiting: None,
            usage: run.usage.into(),
            parked_until: end.and_then(|end| end.parked_until),
            log: run.log.clone(),
        }
    }

    /// `claude`, or `claude as reviewer`.
    pub fn worker(&self) -> String {
        worker_name(&self.agent, self.role.as_deref())
    }

    /// The state in words for people.
    pub fn shown_state(&self) -> String {
        match (&self.outcome, self.state.as_str(), self.runner.as_deref()) {
            (Some(outcome), ..) => outcome.clone(),
            (None, "running", Some("dead")) => "running, no runner".to_owned(),
            (None, "running", _) if self.waiting.is_some() && self.stop_asked.is_none() => {
                "waiting for its provider".to_owned()
            }
            (None, state, _) if self.stop_asked.is_some() => format!("{state}, stopping"),
            (None, state, _) => state.to_owned(),
        }
    }
}
