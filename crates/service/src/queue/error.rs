//! Why a job is not queued, taken or changed.

use serde_json::{Map, Value, json};
use tenure_core::hint::Hint;
use tenure_core::id::JobId;
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
    WrongState { job: JobId, state: JobState },
    #[error("another process has taken job {job} since")]
    Late { job: JobId },
    #[error("job {job} has to wait: {why}")]
    NotYet {
        job: JobId,
        why: String,
        until: Option<Timestamp>,
    },
    #[error("no delivery has the number {id}")]
    NoSuchDelivery { id: i64 },
}

fn state_text(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "queued",
        JobState::Starting => "starting",
        JobState::Begun => "running",
        JobState::Parked => "parked",
        JobState::Ended => "over",
        JobState::Cancelled => "cancelled",
    }
}

impl QueueError {
    pub fn class(&self) -> Class {
        match self {
            QueueError::NoSuchJob { .. } | QueueError::NoSuchDelivery { .. } => Class::NotFound,
            QueueError::SeveralJobs { .. } => Class::Invalid,
            QueueError::WrongState { .. } | QueueError::Late { .. } | QueueError::NotYet { .. } => {
                Class::Refused
            }
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            QueueError::NoSuchJob { .. } => "no_such_job",
            QueueError::NoSuchDelivery { .. } => "no_such_delivery",
            QueueError::SeveralJobs { .. } => "ambiguous",
            QueueError::WrongState { .. } => "wrong_state",
            QueueError::Late { .. } => "late",
            QueueError::NotYet { .. } => "not_yet",
        }
    }

    pub fn hints(&self) -> Vec<Hint> {
        let show = |job: &JobId| vec![Hint::run("queue", ["show", job.as_str()], "for details")];
        match self {
            QueueError::NoSuchJob { .. } => vec![Hint::verb("queue", "to list the jobs")],
            QueueError::SeveralJobs { .. } => vec![Hint::step("use the whole id of one of them")],
            QueueError::NoSuchDelivery { .. } => {
                vec![Hint::run("queue", ["deliveries"], "to list the deliveries")]
            }
            QueueError::WrongState {
                job,
                state: JobState::Starting | JobState::Begun,
            } => vec![
                Hint::run("queue", ["show", job.as_str()], "to see its run"),
                Hint::run("runs", ["stop", "RUN"], "to stop the run"),
            ],
            QueueError::WrongState { job, .. }
            | QueueError::Late { job }
            | QueueError::NotYet { job, .. } => show(job),
        }
    }

    /// What programs get besides the sentence.
    pub fn data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        let mut put = |name: &str, value: Value| {
            data.insert(name.to_owned(), value);
        };
        match self {
            QueueError::SeveralJobs { candidates, .. } => put("candidates", json!(candidates)),
            QueueError::WrongState { job, state } => {
                put("job", json!(job));
                put("state", json!(state.as_str()));
            }
            QueueError::Late { job } => put("job", json!(job)),
            QueueError::NotYet { job, until, .. } => {
                put("job", json!(job));
                put("until", json!(until));
            }
            QueueError::NoSuchJob { .. } | QueueError::NoSuchDelivery { .. } => {}
        }
        data
    }
}
