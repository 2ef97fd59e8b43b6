//! Sessions that an agent keeps running without a window, under its own service.
//!
//! Such a service restarts a session when its process dies, so no one else may, because two processes would be
//! in one conversation. The service lists its sessions in its own file, which survives a crash and a reboot and
//! from which the next service starts. The agent's own commands open and end a session.

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::id::NativeId;
use tenure_core::time::Timestamp;

/// How an agent keeps sessions running without a window.
#[derive(Debug, Clone, Copy)]
pub struct Background {
    /// The file in the agent's own directory that lists what its service keeps running.
    pub roster: &'static str,
    /// The file in the same directory with the state of a job; NAME is the job's name.
    pub(crate) job_file: &'static str,
    pub(crate) is_over: fn(&Value) -> bool,
    /// The conversation of a job, in the same file.
    pub(crate) conversation: &'static str,
    /// When that file last changed, in the file itself.
    pub(crate) changed_at: &'static str,
    /// The service's name for people.
    pub service: &'static str,
    pub(crate) of_registry: fn(&Value) -> Option<BackgroundJob>,
    pub(crate) of_roster: fn(&Value, &NativeId) -> Option<String>,
    /// The name that the service gives to the job of a conversation.
    pub(crate) name_of: fn(&NativeId) -> Option<String>,
    pub(crate) attach: [&'static str; 2],
    pub(crate) stop: [&'static str; 2],
}

/// A session of such a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundJob {
    /// The name that the agent's own commands take.
    pub name: String,
    /// Whether it was only started in advance and has no work yet.
    pub waits_for_work: bool,
}

impl Background {
    /// The job that an entry of the agent's registry of live processes describes, if any.
    pub fn job(&self, registry_entry: &str) -> Option<BackgroundJob> {
        (self.of_registry)(&serde_json::from_str(registry_entry).ok()?)
    }

    /// The job with this conversation, if the service keeps it running.
    pub fn kept(&self, roster: &str, conversation: &NativeId) -> Option<String> {
        (self.of_roster)(&serde_json::from_str(roster).ok()?, conversation)
    }

    /// The file in the agent's own directory with the state of a job.
    pub fn job_file(&self, job: &str) -> String {
        self.job_file.replace("NAME", job)
    }

    /// Whether that file shows that someone ended the job; an outdated list then does not count.
    pub fn is_over(&self, job_file: &str) -> bool {
        serde_json::from_str(job_file).is_ok_and(|state| (self.is_over)(&state))
    }

    /// The name of the job with this conversation, whether or not the service still keeps it.
    pub fn job_of(&self, conversation: &NativeId) -> Option<String> {
        (self.name_of)(conversation)
    }

    /// When someone ended the job of this conversation, if its file shows that.
    pub fn stopped_at(&self, job_file: &str, conversation: &NativeId) -> Option<Timestamp> {
        let state: Value = serde_json::from_str(job_file).ok()?;
        let is_its = state[self.conversation] == conversation.as_str() && (self.is_over)(&state);
        let at = is_its.then(|| state[self.changed_at].as_str())?;
        at?.parse().ok()
    }

    /// The agent's own command that opens a job in the terminal where it is run.
    pub fn attach(&self, job: &str) -> Vec<OsString> {
        line(self.attach, job)
    }

    /// The agent's own command that ends a job and keeps its conversation.
    pub fn stop(&self, job: &str) -> Vec<OsString> {
        line(self.stop, job)
    }
}

fn line(verb: [&str; 2], job: &str) -> Vec<OsString> {
    verb.into_iter().chain([job]).map(OsString::from).collect()
}
