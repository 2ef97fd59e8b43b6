//! What every agent has: how its events are read and answered, how its own process is told, how it is
//! started and resumed, and how it says that a conversation is unknown.

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::id::NativeId;
use tenure_core::process::Process;

use crate::report::{Answer, Report};

pub trait Adapter: Sync + std::panic::RefUnwindSafe {
    fn name(&self) -> &'static str;

    fn read(&self, event: &[u8]) -> Report;

    /// What is written to its hook's output for an answer; nothing where there is nothing to say.
    fn answer(&self, event: &str, answer: &Answer) -> Option<Value>;

    /// Whether the model reads the context that is answered before a tool runs.
    fn reads_before_tool(&self) -> bool {
        true
    }

    /// The variable in which it tells its hooks its own pid.
    fn pid_variable(&self) -> Option<&'static str> {
        None
    }

    /// Where it keeps a file for each of its live processes.
    fn registry(&self) -> Option<Registry> {
        None
    }

    /// The variable that names a file whose lines become its tools' environment.
    fn env_file_variable(&self) -> Option<&'static str> {
        None
    }

    /// Whether any process may speak for this agent, because it has no looks of its own.
    fn is_any_program(&self) -> bool {
        false
    }

    /// The command line of a turn.
    fn command(&self, turn: &Turn<'_>) -> Option<Vec<OsString>>;

    /// Whether a turn that failed says that there is no such conversation.
    fn is_unknown(&self, failed: &Failed<'_>) -> bool;
}

/// A folder with a file for each live process.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    /// The variable that moves the agent's own directory.
    pub variable: &'static str,
    /// That directory below the home directory.
    pub home: &'static str,
    /// The folder in it, with a file `PID.json` for each process.
    pub folder: &'static str,
    /// The field that names the conversation.
    pub conversation: &'static str,
    /// Whether a file's text names exactly this process.
    pub names: fn(&str, &Process) -> bool,
}

/// One turn of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn<'a> {
    /// The conversation to go on with; a new one otherwise.
    pub resume: Option<&'a NativeId>,
    /// What to ask; without it the agent is started for a person.
    pub prompt: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed<'a> {
    pub code: i32,
    /// What it wrote to stdout.
    pub stdout: &'a str,
    /// What it wrote to stderr.
    pub stderr: &'a str,
}

/// Words of a command line.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}
