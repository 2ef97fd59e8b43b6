//! Why a run cannot be started, stopped or resumed.

use serde_json::{Map, Value, json};
use tenure_core::conversation::Elsewhere;
use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, NativeId, RunId};
use tenure_core::key::Key;
use tenure_core::process::Survivor;
use tenure_core::text;
use tenure_core::time::Timestamp;

use super::view::RunView;
use crate::answer::Class;

/// What only one run can have at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Conversation,
    Directory,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum RunError {
    #[error("{}", held_message(*.wanted, .run))]
    Held { wanted: Resource, run: Box<RunView> },
    /// A session that is not a run is in the conversation.
    #[error("the {agent} conversation of {item} is open in {handle} ({state}, pid {pid} in {dir})")]
    InUse {
        agent: AgentName,
        item: Key,
        handle: String,
        state: &'static str,
        pid: u32,
        dir: String,
    },
    #[error("run {run} is over, but processes of it are still running: {}", pids(.survivors))]
    Survivors {
        run: RunId,
        survivors: Vec<Survivor>,
    },
    #[error(
        "run {run} is over, but it is unknown whether processes of it are still running: {why}"
    )]
    SurvivorsUnknown { run: RunId, why: String },
    #[error("{agent} has reached its usage limit on this host and is parked until {until}: {why}")]
    Parked {
        agent: AgentName,
        until: Timestamp,
        why: String,
    },
    #[error("{why}; runs begin again at {until}")]
    OverBudget { why: String, until: Timestamp },
    #[error("the {agent} conversation of {item} is {place}: {home}")]
    Elsewhere {
        agent: AgentName,
        item: Key,
        place: Elsewhere,
        home: String,
    },
    #[error(
        "the {agent} conversation of {item} cannot be resumed: its history was refused by the provider ({native_id})"
    )]
    Unusable {
        agent: AgentName,
        item: Key,
        native_id: NativeId,
    },
    #[error(
        "{agent} did not find the conversation of {item} last time, and tenure cannot check whether it is there ({native_id})"
    )]
    NotFoundLastTime {
        agent: AgentName,
        item: Key,
        native_id: NativeId,
    },
    #[error("no run is named {name:?}")]
    NoSuchRun { name: String },
    #[error("{name:?} matches several runs: {}", .candidates.join(", "))]
    SeveralRuns {
        name: String,
        candidates: Vec<String>,
    },
    #[error("run {run} {state}")]
    NotRunning { run: RunId, state: String },
    #[error(
        "run {run} is still running and can be stopped; only a run that cannot be reached is abandoned"
    )]
    Reachable { run: RunId },
    #[error("run {run} cannot be resumed: {why}")]
    NotResumable { run: RunId, why: String },
    #[error("run {run} is on another host; tenure can only reach it there")]
    OtherHost { run: RunId },
    #[error("cannot tell whether run {run} is alive: {why}")]
    CannotTell { run: RunId, why: String },
}

impl RunError {
    pub fn class(&self) -> Class {
        match self {
            RunError::Held { .. } | RunError::InUse { .. } | RunError::Survivors { .. } => {
                Class::Held
            }
            RunError::SurvivorsUnknown { .. }
            | RunError::CannotTell { .. }
            | RunError::OtherHost { .. } => Class::CannotTell,
            RunError::Parked { .. }
            | RunError::OverBudget { .. }
            | RunError::Unusable { .. }
            | RunError::NotFoundLastTime { .. }
            | RunError::NotRunning { .. }
            | RunError::Reachable { .. }
            | RunError::NotResumable { .. } => Class::Refused,
            RunError::Elsewhere { .. } | RunError::SeveralRuns { .. } => Class::Invalid,
            RunError::NoSuchRun { .. } => Class::NotFound,
        }
    }

    crate::kinds! {
        RunError::Held { .. } | RunError::InUse { .. } => "held",
        RunError::Survivors { .. } => "survivors",
        RunError::SurvivorsUnknown { .. } => "survivors_unknown",
        RunError::Parked { .. } => "parked",
        RunError::OverBudget { .. } => "over_budget",
        RunError::Elsewhere { .. } => "elsewhere",
        RunError::Unusable { .. } => "unusable",
        RunError::NotFoundLastTime { .. } => "unknown_conversation",
        RunError::NoSuchRun { .. } => "no_such_run",
        RunError::SeveralRuns { .. } => "ambiguous",
        RunError::NotRunning { .. } => "not_running",
        RunError::Reachable { .. } => "running",
        RunError::NotResumable { .. } => "not_resumable",
        RunError::OtherHost { .. } => "other_host",
        RunError::CannotTell { .. } => "cannot_tell",
    }

    pub fn hints(&self) -> Vec<Hint> {
        let show = |run: &str| Hint::run("runs", ["show", run], "for details");
        match self {
            RunError::Held { wanted, run } => {
                let mut hints = vec![
                    show(&run.id),
                    Hint::step("add --wait 10m to wait until it ends"),
                ];
                if *wanted == Resource::Directory {
                    hints.push(Hint::step("add --share-dir if both may work there at once"));
                }
                hints
            }
            RunError::InUse { handle, .. } => vec![
                Hint::run("show", [handle], "for details"),
                Hint::step("add --fresh to start another conversation"),
            ],
            RunError::Survivors { survivors, .. } => vec![Hint::step(format!(
                "run `ps -o pid,lstart,args -p {}` to inspect them",
                pids(survivors).replace(' ', "")
            ))],
            RunError::SurvivorsUnknown { run, .. } => vec![show(run.as_str())],
            RunError::Parked { .. } => {
                vec![Hint::step("run the same command again after that time")]
            }
            RunError::OverBudget { .. } => {
                vec![
                    Hint::run("usage", ["--since", "1d"], "to see what was used"),
                    Hint::verb("config", "to see the budgets"),
                ]
            }
            RunError::Elsewhere { .. }
            | RunError::Unusable { .. }
            | RunError::NotFoundLastTime { .. } => {
                vec![Hint::step("add --fresh to start another conversation")]
            }
            RunError::NoSuchRun { .. } => vec![Hint::verb("runs", "to list the runs")],
            RunError::SeveralRuns { .. } => vec![Hint::step("use the whole id of one of them")],
            RunError::NotRunning { run, .. } | RunError::NotResumable { run, .. } => {
                vec![show(run.as_str())]
            }
            RunError::Reachable { run } => {
                vec![Hint::run("runs", ["stop", run.as_str()], "to stop it")]
            }
            RunError::OtherHost { run } | RunError::CannotTell { run, .. } => {
                let abandon = ["stop", run.as_str(), "--abandon", "--reason", "REASON"];
                let why = "if it is gone for good; this frees its conversation";
                vec![show(run.as_str()), Hint::run("runs", abandon, why)]
            }
        }
    }

    /// The data that programs get besides the message.
    pub fn data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        let mut put = |name: &str, value: Value| {
            data.insert(name.to_owned(), value);
        };
        match self {
            RunError::Held { run, .. } => put("run", json!(run)),
            RunError::InUse { handle, pid, .. } => {
                put("session", json!(handle));
                put("pid", json!(pid));
            }
            RunError::Survivors { run, survivors } => {
                put("run", json!(run));
                put("survivors", json!(survivors));
            }
            RunError::Parked { agent, until, .. } => {
                put("agent", json!(agent.as_str()));
                put("until", json!(until));
            }
            RunError::OverBudget { until, .. } => put("until", json!(until)),
            RunError::SeveralRuns { candidates, .. } => put("candidates", json!(candidates)),
            RunError::Unusable { native_id, .. } | RunError::NotFoundLastTime { native_id, .. } => {
                put("native_id", json!(native_id));
            }
            RunError::Elsewhere { home, .. } => put("home", json!(home)),
            RunError::SurvivorsUnknown { run, .. }
            | RunError::NotRunning { run, .. }
            | RunError::NotResumable { run, .. }
            | RunError::Reachable { run }
            | RunError::OtherHost { run }
            | RunError::CannotTell { run, .. } => put("run", json!(run)),
            RunError::NoSuchRun { .. } => {}
        }
        data
    }
}

fn held_message(wanted: Resource, run: &RunView) -> String {
    let what = match wanted {
        Resource::Conversation => format!("the {} conversation of {}", run.agent, run.root),
        Resource::Directory => format!("the directory {}", text::name(&run.dir)),
    };
    format!(
        "{what} is in use by run {} ({}, {})",
        run.id,
        run.item,
        run.shown_state()
    )
}

fn pids(survivors: &[Survivor]) -> String {
    let all: Vec<String> = survivors.iter().map(|one| one.pid.to_string()).collect();
    all.join(", ")
}
