//! Why a job cannot be queued, taken or changed.

use serde_json::{Map, Value, json};
use tenure_core::hint::Hint;
use tenure_core::id::{JobId, RunId};
use tenure_core::queue::JobState;
use tenure_core::time::Timestamp;

use crate::answer::Class;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    #[error("no job is named {name:?}")]
    NoSuchJob { name: String },
    #[error("{name:?} matches several jobs: {}", .candidates.join(", "))]
    SeveralJobs {
        name: String,
        candidates: Vec<String>,
    },
    #[error("job {job} is {}", state_text(*.state))]
    WrongState {
        job: JobId,
        state: JobState,
        /// Its newest run.
        run: Option<RunId>,
    },
    #[error("another process has taken job {job} since")]
    Late { job: JobId },
    #[error("job {job} has to wait: {why}")]
    NotYet {
        job: JobId,
        why: String,
        until: Option<Timestamp>,
    },
    #[error("job {job} has no result that waits to be published")]
    NothingWaits { job: JobId, run: Option<RunId> },
    #[error("no delivery has the number {id}")]
    NoSuchDelivery { id: i64 },
}

/// Which job of its conversation has to end before a job may be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobAhead {
    #[error("job {0} of the same conversation is running")]
    Running(JobId),
    #[error("job {0} of the same conversation is older")]
    Older(JobId),
}

pub(super) fn state_text(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "queued",
        JobState::Starting => "starting",
        JobState::Begun => "running",
        JobState::Parked => "parked",
        JobState::Ended => "over",
        JobState::Cancelled => "cancelled",
    }
}

/// Hints for each state: stop or resume the run, or replay the delivery.
fn wrong_state(job: &JobId, state: JobState, run: Option<&RunId>) -> Vec<Hint> {
    let show = Hint::run("queue", ["show", job.as_str()], "for details");
    match (state, run) {
        (JobState::Starting | JobState::Begun, Some(run)) => {
            let stop = Hint::run("runs", ["stop", run.as_str()], "to stop its run");
            vec![stop, show]
        }
        (JobState::Ended, Some(run)) => {
            let resume = Hint::run("runs", ["resume", run.as_str()], "to continue its run");
            vec![resume, show]
        }
        (JobState::Cancelled, _) => {
            let args = ["replay", "DELIVERY"];
            let replay = Hint::run("dispatch", args, "to do again what a delivery asked for");
            let list = Hint::run("queue", ["deliveries"], "to see the deliveries");
            vec![list, replay]
        }
        _ => vec![show],
    }
}

impl QueueError {
    pub fn class(&self) -> Class {
        match self {
            QueueError::NoSuchJob { .. } | QueueError::NoSuchDelivery { .. } => Class::NotFound,
            QueueError::SeveralJobs { .. } => Class::Invalid,
            QueueError::WrongState { .. }
            | QueueError::Late { .. }
            | QueueError::NotYet { .. }
            | QueueError::NothingWaits { .. } => Class::Refused,
        }
    }

    crate::kinds! {
        QueueError::NoSuchJob { .. } => "no_such_job",
        QueueError::NoSuchDelivery { .. } => "no_such_delivery",
        QueueError::SeveralJobs { .. } => "ambiguous",
        QueueError::WrongState { .. } => "wrong_state",
        QueueError::Late { .. } => "late",
        QueueError::NotYet { .. } => "not_yet",
        QueueError::NothingWaits { .. } => "nothing_waits",
    }

    pub fn hints(&self) -> Vec<Hint> {
        let show = |job: &JobId| vec![Hint::run("queue", ["show", job.as_str()], "for details")];
        match self {
            QueueError::NoSuchJob { .. } => vec![Hint::verb("queue", "to list the jobs")],
            QueueError::SeveralJobs { .. } => vec![Hint::step("use the whole id of one of them")],
            QueueError::NoSuchDelivery { .. } => {
                vec![Hint::run("queue", ["deliveries"], "to list the deliveries")]
            }
            QueueError::WrongState { job, state, run } => wrong_state(job, *state, run.as_ref()),
            QueueError::Late { job } | QueueError::NotYet { job, .. } => show(job),
            QueueError::NothingWaits { job, .. } => {
                let list = Hint::verb("queue", "to see which results wait");
                vec![
                    list,
                    Hint::run("queue", ["show", job.as_str()], "for details"),
                ]
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
            QueueError::SeveralJobs { candidates, .. } => put("candidates", json!(candidates)),
            QueueError::WrongState { job, state, run } => {
                put("job", json!(job));
                put("state", json!(state.as_str()));
                put("run", json!(run));
            }
            QueueError::Late { job } => put("job", json!(job)),
            QueueError::NothingWaits { job, run } => {
                put("job", json!(job));
                put("run", json!(run));
            }
            QueueError::NotYet { job, until, .. } => {
                put("job", json!(job));
                put("until", json!(until));
            }
            QueueError::NoSuchJob { .. } | QueueError::NoSuchDelivery { .. } => {}
        }
        data
    }
}
