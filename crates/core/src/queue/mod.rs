//! The queue: jobs that wait for a run of an agent on an item.
//!
//! A job is taken by the runner of its run, and whether that process lives is asked of the kernel: no job is
//! freed by a clock. [`step`] is the whole state machine, [`choose`] decides which job may be taken, [`breaker`]
//! stops agents that trigger each other, [`code`] which commit a job may run, [`reply`] is what is written in a forge
//! about a job, [`pull`] which pull request is opened or merged, [`identity`] whether a repository is still the one that was meant. A delivery ([`delivery`]) is an event from outside, with what became of it; [`backlog`] decides which of
//! them are stored before they are decided.

pub mod backlog;
pub mod breaker;
pub mod choose;
pub mod code;
pub mod delivery;
pub mod duty;
pub mod identity;
#[cfg(test)]
mod job_for_tests;
pub mod pull;
mod record;
pub mod reply;
pub mod step;

pub use record::{
    Caps, Job, JobAsk, JobEnd, JobEvent, JobSpec, JobState, JobTaker, JobWorkdir, Parked,
    ParkedFor, Trust,
};
