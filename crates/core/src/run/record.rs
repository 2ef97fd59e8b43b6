//! The record of a run.
//!
//! A run is written before its agent exists (`starting`), again before the agent is started (`begun`), and once
//! more at its end. While it has no end it holds its conversation, and its directory unless it shares that: a
//! second run of either is a conflict in the store.
//!
//! *Crash*: a record without an end is judged by its processes: [`Run::runner`] and the process of
//! [`Run::session`]. *Clock jump*: the wall clock decides only until when an agent is parked, because its
//! provider names one.

use crate::conversation::fitness::Left;
use crate::id::{
    AgentName, HostId, NativeId, RunId, SessionId, SessionToken, WorkerRole, stored_enum,
};
use crate::key::Key;
use crate::process::Process;
use crate::run::end::Stop;
use crate::session::EndKind;
use crate::time::Timestamp;

/// One execution of an agent for an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub id: RunId,
    pub agent: AgentName,
    pub role: WorkerRole,
    /// The item that it was started for.
    pub item: Key,
    /// The item whose conversation it continues: `item`, or what that was linked to when the run started.
    pub root: Key,
    pub host: HostId,
    /// The session that the agent's process is, in the life that the run gave it.
    pub session: Option<SessionToken>,
    /// The process that reads the agent's stream and records the end.
    pub runner: Option<Process>,
    /// The conversation that it resumed; none if it began a fresh one.
    pub before: Option<NativeId>,
    /// The id that was chosen for a fresh conversation, until the agent is seen to use it.
    pub intended: Option<NativeId>,
    /// The conversation that it is in, and at the end was in; [`RunEnd::left`] speaks of this one.
    pub after: Option<NativeId>,
    /// The directory that the agent works in, absolute.
    pub dir: String,
    /// Whether other runs may be in the same directory.
    pub shares_dir: bool,
    /// Whether it holds a claim on its item.
    pub exclusive: bool,
    pub trigger: Trigger,
    pub skill: Option<String>,
    /// SHA-256 of the prompt, in hexadecimal.
    pub prompt_hash: Option<String>,
    pub log: Option<String>,
    /// The run that it goes on from: one that was parked, interrupted or stopped.
    pub goes_on: Option<RunId>,
    pub created_at: Timestamp,
    /// When the agent was started.
    pub begun_at: Option<Timestamp>,
    /// Whether its first conversation was unknown to the agent, so that it went on in a fresh one.
    pub fell_back: bool,
    pub stop: Option<StopAsked>,
    pub usage: Usage,
    pub end: Option<RunEnd>,
    /// Counts the changes of this record, for comparing and setting.
    pub revision: u64,
}

impl Run {
    pub fn state(&self) -> RunState {
        match (&self.end, self.begun_at) {
            (Some(_), _) => RunState::Ended,
            (None, Some(_)) => RunState::Begun,
            (None, None) => RunState::Starting,
        }
    }

    /// Whether it has no recorded end.
    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// Whether it ended without its runner or its agent coming to an end of their own, so that what it started may
    /// still be running. An agent that reported success is not cut off.
    pub fn was_cut_off(&self) -> bool {
        self.end.as_ref().is_some_and(|end| match end.outcome {
            Outcome::Interrupted => true,
            Outcome::Stopped | Outcome::Timeout | Outcome::Failed => end.exit_code.is_none(),
            Outcome::Done | Outcome::Refused | Outcome::Unusable | Outcome::Parked => false,
        })
    }
}

stored_enum! {
    /// How far a run got; derived from its record.
    RunState {
        /// It is recorded; its agent was not started.
        Starting = "starting",
        Begun = "begun",
        Ended = "ended",
    }
}

stored_enum! {
    /// How a run ended.
    Outcome, "outcome" {
        /// The agent reported success after at least one turn of the model.
        Done = "done",
        Failed = "failed",
        /// Permissions were denied, and nothing was done.
        Refused = "refused",
        Timeout = "timeout",
        /// Someone asked it to stop.
        Stopped = "stopped",
        /// Its processes are dead and no end was recorded.
        Interrupted = "interrupted",
        /// The provider or the agent refuses the conversation's history.
        Unusable = "unusable",
        /// A usage limit: the agent waits on that host.
        Parked = "parked",
    }
}

impl Outcome {
    /// How the session of such a run ended.
    pub fn end_kind(self) -> EndKind {
        match self {
            Outcome::Interrupted => EndKind::CutOff,
            _ => EndKind::Left,
        }
    }

    /// Whether something went wrong that someone should look at.
    pub fn is_failure(self) -> bool {
        match self {
            Outcome::Failed
            | Outcome::Refused
            | Outcome::Timeout
            | Outcome::Interrupted
            | Outcome::Unusable => true,
            Outcome::Done | Outcome::Stopped | Outcome::Parked => false,
        }
    }
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    pub at: Timestamp,
    pub outcome: Outcome,
    /// What that rests on, in a sentence.
    pub why: String,
    /// The agent's exit code; 128 and the signal's number if a signal ended it.
    pub exit_code: Option<i32>,
    /// What the run shows about the conversation that it was in.
    pub left: Left,
    /// Until when its agent is parked on its host, if it was.
    pub parked_until: Option<Timestamp>,
}

/// A request to stop a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopAsked {
    /// If the runner dies before it records the end, this decides the outcome.
    pub cause: Stop,
    pub at: Timestamp,
    pub by: Option<SessionId>,
    pub why: String,
}

stored_enum! {
    /// What started a run.
    Trigger, "trigger" {
        /// Someone who called `run`.
        Call = "call",
        /// `runs resume`.
        Resume = "resume",
        Queue = "queue",
    }
}

/// What a run used, as far as its agent reports it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    pub turns: Option<u64>,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    /// In US dollars.
    pub cost: Option<f64>,
}

/// An agent that waits on a host for its usage limit to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Park {
    pub agent: AgentName,
    pub host: HostId,
    pub until: Timestamp,
    /// How often in a row it was parked without a time from its provider.
    pub count: u32,
    pub why: String,
    /// The run that found the limit.
    pub run: RunId,
    pub at: Timestamp,
}
