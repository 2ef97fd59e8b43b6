//! The record of a job.
//!
//! A job names what to run ([`JobSpec`]) and carries the events that ask for it. While it is queued or parked,
//! further events of the same conversation, rule and trust join it; once it is taken they are frozen.
//!
//! *Crash*: a job that is taken names its taker's process, which is looked at. *Clock jump*: the wall clock
//! decides only when a parked or delayed job may be taken, and the windows of the caps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::code::JobCode;
use crate::id::{AgentName, JobId, RunId, SessionId, WorkerRole, stored_enum};
use crate::key::Key;
use crate::process::Process;
use crate::run::Outcome;
use crate::time::Timestamp;

/// One piece of work for an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: JobId,
    pub agent: AgentName,
    pub role: WorkerRole,
    /// The item that it is for.
    pub item: Key,
    /// The item whose conversation it continues: `item`, or what that is linked to.
    pub root: Key,
    /// The rule that asked for it; none if a person or a timer did.
    pub rule: Option<String>,
    pub trust: Trust,
    /// The repository whose cap it counts for.
    pub repo: Option<String>,
    pub spec: JobSpec,
    pub state: JobState,
    /// How often it was taken; a taker names its own.
    pub attempt: u32,
    /// How often in a row it was taken and its agent did not start.
    pub failures: u32,
    /// Why it did not, the last time.
    pub failure: Option<String>,
    /// Its taker, while it is starting or begun.
    pub taken: Option<JobTaker>,
    /// Its newest run.
    pub run: Option<RunId>,
    /// Why it waits, while it is parked.
    pub parked: Option<Parked>,
    /// Not to be taken before; set after an attempt that did not begin.
    pub not_before: Option<Timestamp>,
    /// The session that asked for it.
    pub by: Option<SessionId>,
    pub created_at: Timestamp,
    pub end: Option<JobEnd>,
    /// Why the result of its run is not published and waits for a person.
    pub unpublished: Option<String>,
    /// The branch that its result was pushed to.
    pub published: Option<String>,
    /// Counts the changes of this record, for comparing and setting.
    pub revision: u64,
}

impl Job {
    /// Whether it still has to run, or runs.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, JobState::Ended | JobState::Cancelled)
    }

    /// Whether events can join it.
    pub fn takes_events(&self) -> bool {
        matches!(self.state, JobState::Queued | JobState::Parked)
    }

    /// Whether it was cancelled because what was asked for is not permitted, so that someone has to ask again.
    pub fn is_refused(&self) -> bool {
        let why = self.end.as_ref().map(|end| &end.why);
        self.state == JobState::Cancelled && why.is_some() && self.failure.as_ref() == why
    }
}

stored_enum! {
    JobState, "state of a job" {
        Queued = "queued",
        /// A runner took it; its agent was not started.
        Starting = "starting",
        Begun = "begun",
        /// It waits for a time, or for a person.
        Parked = "parked",
        Ended = "ended",
        Cancelled = "cancelled",
    }
}

stored_enum! {
    /// Whether those who wrote what the agent will read and run are permitted to trigger it.
    Trust, "trust" {
        Trusted = "trusted",
        /// Someone else wrote code or text that it works with.
        Outside = "outside",
    }
}

/// Who took a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTaker {
    /// The runner's process.
    pub by: Process,
    pub at: Timestamp,
}

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    pub reason: ParkedFor,
    /// Until when; none waits for a person.
    pub until: Option<Timestamp>,
    /// The same in a sentence.
    pub why: String,
}

stored_enum! {
    ParkedFor, "reason of a parked job" {
        /// The agent's usage limit.
        Limit = "limit",
        /// The conversation cannot be resumed.
        Unusable = "unusable",
        /// Too many runs since a person last asked.
        Breaker = "breaker",
        /// The item's cap for an hour.
        Cap = "cap",
        /// The item's budget for a day.
        Budget = "budget",
        /// Its repository may be another one than it was, or is deleted.
        Repository = "repository",
        /// It could not be started, several times.
        Attempts = "attempts",
    }
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    pub at: Timestamp,
    /// How its run ended; none if it was cancelled.
    pub outcome: Option<Outcome>,
    pub why: String,
}

/// One event that asks for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEvent {
    /// The delivery that brought it, if one did.
    pub delivery: Option<i64>,
    pub at: Timestamp,
    /// What a person reads: `issue.comment by alice`.
    pub summary: String,
    /// The event as JSON, for the prompt.
    pub data: String,
}

/// What a job runs, complete: its runner needs no other file of settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    pub ask: JobAsk,
    pub workdir: JobWorkdir,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Names of variables that the agent gets from the dispatcher; their values are never stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// What the agent runs inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrap: Vec<String>,
    #[serde(default)]
    pub exclusive: bool,
    #[serde(default)]
    pub fresh: bool,
    #[serde(default)]
    pub shares_dir: bool,
    /// In milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub caps: Caps,
    /// Whether a dispatcher asked: then the agent's environment is made, not inherited.
    #[serde(default)]
    pub dispatched: bool,
    /// Whether the repository's own instructions count.
    #[serde(default)]
    pub trusted_repo: bool,
    /// Where its code is from, and what was permitted of it.
    #[serde(default, skip_serializing_if = "JobCode::is_empty")]
    pub code: JobCode,
}

/// What an agent is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobAsk {
    /// This text.
    Text(String),
    /// A skill, with these variables.
    Skill {
        name: String,
        #[serde(default)]
        variables: BTreeMap<String, String>,
    },
}

/// Where an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobWorkdir {
    /// The directory, or the repository of the worktree.
    pub dir: String,
    /// Whether it gets a worktree of the item's own.
    #[serde(default)]
    pub worktree: bool,
}

/// How much one item may run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Caps {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_per_hour: Option<u32>,
    /// In US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_per_day: Option<f64>,
    /// Jobs of its repository that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_repo: Option<u32>,
    /// Runs without a person in between, before the item is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<u32>,
}
