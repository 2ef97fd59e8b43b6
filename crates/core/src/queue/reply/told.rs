//! What the person who asked is told if a run does not simply begin and end.

use super::{Notice, span};
use crate::queue::{Job, JobState};

impl Notice {
    /// Someone has to ask again. The reasons are our own sentences about items and commits.
    pub(super) fn refused(job: &Job) -> Self {
        let why = job.end.as_ref().map_or("", |end| &end.why);
        Self {
            label: "refused".to_owned(),
            is_last: true,
            starts: true,
            text: format!("{}\n\nAsk again to run what is there now.\n", span(why)),
        }
    }

    /// It was tried often and is tried again. Why is the machine's business.
    pub(super) fn not_started(job: &Job) -> Self {
        Self {
            label: "not started".to_owned(),
            is_last: false,
            starts: true,
            text: format!(
                "**{}** could not be started yet and is tried again without end. Run `tenure queue explain {}` for the reason.\n",
                job.agent, job.id
            ),
        }
    }

    /// That a reset has happened: a conversation with a run in it is reset when the run ends.
    pub(super) fn reset(job: &Job) -> Option<Self> {
        let is_on = matches!(job.state, JobState::Starting | JobState::Begun);
        (!is_on).then(|| Self {
            label: "reset".to_owned(),
            is_last: true,
            starts: true,
            text: format!(
                "The conversation of **{}** was reset. The next run begins a new one.\n",
                job.agent
            ),
        })
    }
}
