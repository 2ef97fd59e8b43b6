//! Sessions that an agent keeps running without a window, below a service of its own.
//!
//! Such a service starts a session again when its process dies, so nobody else may: two processes would be in
//! one conversation. What it keeps running stands in a file of its own, which survives a crash and a reboot and
//! is what the next service starts from. A session is opened and ended by the agent's own commands.

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::id::NativeId;

/// How an agent keeps sessions running without a window.
#[derive(Debug, Clone, Copy)]
pub struct Background {
    /// The file in the agent's own directory that lists what its service keeps running.
    pub roster: &'static str,
    /// The file in the same directory that says how a job stands; NAME is the job's.
    pub(crate) job_file: &'static str,
    pub(crate) is_over: fn(&Value) -> bool,
    /// What people call that service.
    pub service: &'static str,
    pub(crate) of_registry: fn(&Value) -> Option<Job>,
    pub(crate) of_roster: fn(&Value, &NativeId) -> Option<String>,
    pub(crate) attach: [&'static str; 2],
    pub(crate) stop: [&'static str; 2],
}

/// A session of such a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The name that the agent's own commands take.
    pub name: String,
    /// Whether it was only started in advance, and nobody has given it any work.
    pub waits_for_work: bool,
}

impl Background {
    /// The job that an entry of the agent's registry of live processes describes, if it is one.
    pub fn job(&self, registry_entry: &str) -> Option<Job> {
        (self.of_registry)(&serde_json::from_str(registry_entry).ok()?)
    }

    /// The name of the job that has this conversation, if the service keeps it running.
    pub fn kept(&self, roster: &str, conversation: &NativeId) -> Option<String> {
        (self.of_roster)(&serde_json::from_str(roster).ok()?, conversation)
    }

    /// The file in the agent's own directory that says how a job stands.
    pub fn job_file(&self, job: &str) -> String {
        self.job_file.replace("NAME", job)
    }

    /// Whether that file says that somebody ended the job: a list that was not brought up to date since does not
    /// count then.
    pub fn is_over(&self, job_file: &str) -> bool {
        serde_json::from_str(job_file).is_ok_and(|state| (self.is_over)(&state))
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
