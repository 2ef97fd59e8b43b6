//! How each agent is run unattended: its command line and environment, what its stream means, how it is told to
//! stop, and where its conversations are looked for.
//!
//! Pure: nothing here starts a process or opens a file. The prompt always goes to the agent's standard input, or
//! into a file for an agent that is configured so, never onto a command line. An error of the agent is read from
//! structured fields, or from its standard error after a failed exit; the model's text and the output of tools are
//! never searched for one. A line that cannot be read is reported as such and never means success.

pub(crate) mod body;
pub(crate) mod claude;
pub(crate) mod codex;
mod configured;
pub(crate) mod field;
pub(crate) mod gemini;
pub(crate) mod opencode;
pub(crate) mod qwen;
mod split;
pub(crate) mod stderr;

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::NativeId;
use tenure_core::run::failure::AgentFailure;
use tenure_core::run::line::RunLine;
use tenure_core::run::progress::Totals;

use crate::install::OffSwitch;
pub use claude::SET_FOR_EVERY_RUN;
pub use configured::{Configured, ConfiguredTable, PromptBy, WrongTable};

pub use split::{MAX_LINE, Piece, Splitter};

/// What one start of an agent depends on.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The conversation to continue; a new one otherwise.
    pub resume: Option<&'a NativeId>,
    /// The id for a new conversation, for an agent that lets us choose.
    pub intended: Option<&'a NativeId>,
    /// By what a new conversation is found that has not named itself.
    pub title: &'a str,
    /// The directory of the conversation. The process is started there as well.
    pub dir: &'a str,
    /// Whether the repository may give the agent orders: hooks, servers, commands, settings.
    pub trusted: bool,
    pub budget_usd: Option<f64>,
    /// The user's own arguments.
    pub arguments: &'a [String],
    /// Where the prompt is, for an agent that reads it from a file.
    pub prompt_file: Option<&'a str>,
}

/// The signal that makes an agent end its turn and itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    Terminate,
    Interrupt,
}

/// How it is found out whether an agent has a conversation.
#[derive(Debug, Clone, Copy)]
pub enum Keeps {
    /// By its file, on the directory of core's row.
    File,
    /// By a command that lists the conversations of the directory that it is run in.
    Listed {
        command: &'static [&'static str],
        /// Variables that name directories in which the command may leave something behind, such as a lock: it
        /// gets others.
        apart: &'static [&'static str],
        /// Variables that the command does without.
        without: &'static [&'static str],
        /// The variable that names where it keeps them.
        variable: &'static str,
        /// The same below the user's home, without that variable.
        home: &'static str,
        /// Whether a conversation is in what it printed with success.
        found: fn(&str, &NativeId) -> Existence,
        /// The conversation with a title, in what it printed.
        titled: fn(&str, &str) -> Option<NativeId>,
    },
    /// It cannot be told.
    CannotTell,
}

/// How a repository that is not trusted is kept from giving the agent orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untrusted {
    /// By arguments and variables, which [`Runs::command`] and [`Runs::environment`] have.
    Switches,
    /// By an entry in this file of the agent's own, before its first start in the directory.
    Config(OwnFile),
    /// By switches, which do nothing where the user's own settings have this.
    UnlessOff(OffSwitch),
    /// By switches, and by settings of the machine, which count before the user's.
    Machine(MachineSettings),
    /// No way is known.
    NoSwitch,
}

/// Settings of the machine that an agent reads from a file of ours during one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineSettings {
    /// The variable that names the file, and the file that counts without it.
    pub file: (&'static str, &'static str),
    /// The same for the machine's defaults, which it looks for beside that file.
    pub defaults: (&'static str, &'static str),
    /// The file's content.
    pub text: &'static str,
    /// What must be true in a file that the machine has already: that one is used then.
    pub on: &'static [&'static str],
}

/// A file in an agent's own directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnFile {
    /// The variable that names the directory.
    pub variable: &'static str,
    /// The directory below the user's home, without that variable.
    pub home: &'static str,
    pub name: &'static str,
}

/// What is different about an agent's unattended runs, but for its command line and its stream.
#[derive(Debug, Clone, Copy)]
pub struct RunSpec {
    /// Whether a new conversation gets an id of our choice.
    pub chooses_id: bool,
    /// Whether a new conversation can be found by its title.
    pub has_title: bool,
    pub stop: StopSignal,
    /// Whether it shortens a history by itself that is too long for the model.
    pub compacts: bool,
    /// Whether every version resumes a conversation from any directory, not only from the one where it began.
    pub resumes_anywhere: bool,
    pub keeps: Keeps,
    pub untrusted: Untrusted,
    /// Whether it ends by itself when it has cost as much as it was given, or reports what each step costs, so that its
    /// runner ends it.
    pub takes_budget: bool,
    /// Whether the end of the conversation's file has what [`Runs::read_tail`] and [`Runs::totals`] read.
    pub tells_in_file: bool,
    /// Arguments that a run sets itself.
    pub reserved: &'static [&'static str],
    /// Arguments that would give a repository back what it must not have while it is untrusted.
    pub reserved_untrusted: &'static [&'static str],
    /// Where the real program is that a script starts, from the script's directory; `*` is any one name, or the rest of one.
    pub program_below_script: &'static [&'static str],
    /// Variables with its keys and directories, which every run of it needs; `*` stands for the rest of a name.
    pub keys: &'static [&'static str],
    /// What the file of a conversation has in which the model answered, for an agent that does not find the others.
    pub answered: Option<&'static str>,
}

/// An argument that a user may not pass through a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongArgument {
    #[error("{0} is set by `tenure run` itself")]
    Reserved(String),
    #[error("{0} cannot be used in a repository that is not trusted")]
    Untrusted(String),
    #[error("remove `--`; the arguments after it would become a prompt")]
    Separator,
}

/// The value of a variable that is inherited.
pub type Inherited<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Names and values.
pub type Variables = Vec<(&'static str, String)>;

/// An agent that can be run unattended.
pub trait Runs {
    fn spec(&self) -> &RunSpec;

    /// The program and its arguments.
    fn command(&self, launch: &Launch<'_>) -> Vec<OsString>;

    /// Variables to set, given those that are inherited.
    fn environment(&self, launch: &Launch<'_>, inherited: Inherited<'_>) -> Variables;

    /// What one line of its stream says.
    fn read(&self, line: &[u8]) -> Vec<RunLine>;

    /// What a line on its standard error says while it runs: at most that it waits for its provider.
    fn read_stderr(&self, line: &str) -> Option<RunLine>;

    /// The error that its standard error tells after an exit with this code, which is not 0.
    fn own_error(&self, code: i32, stderr: &str) -> AgentFailure;

    /// What the end of the conversation's file says about the turn that failed last. The text may begin in the
    /// middle of a line.
    fn read_tail(&self, tail: &str) -> Vec<RunLine>;

    /// What the conversation has used in all, by the end of its file before it is resumed.
    fn totals(&self, tail: &str) -> Option<Totals>;
}

/// One agent's row.
#[derive(Debug)]
pub struct AgentRun {
    pub(crate) spec: RunSpec,
    pub(crate) commander: fn(&Launch<'_>) -> Vec<String>,
    pub(crate) variables: fn(&Launch<'_>, Inherited<'_>) -> Variables,
    pub(crate) reader: fn(&Value) -> Vec<RunLine>,
    pub(crate) waits: fn(&str) -> Option<RunLine>,
    pub(crate) failed: fn(i32, &str) -> AgentFailure,
    pub(crate) tail: fn(&str) -> Vec<RunLine>,
    pub(crate) totals: fn(&str) -> Option<Totals>,
}

impl Runs for AgentRun {
    fn spec(&self) -> &RunSpec {
        &self.spec
    }

    fn command(&self, launch: &Launch<'_>) -> Vec<OsString> {
        let line = (self.commander)(launch);
        line.into_iter().map(OsString::from).collect()
    }

    fn environment(&self, launch: &Launch<'_>, inherited: Inherited<'_>) -> Variables {
        (self.variables)(launch, inherited)
    }

    fn read(&self, line: &[u8]) -> Vec<RunLine> {
        read_json(line, self.reader)
    }

    fn read_stderr(&self, line: &str) -> Option<RunLine> {
        (self.waits)(&stderr::plain(line))
    }

    fn own_error(&self, code: i32, stderr: &str) -> AgentFailure {
        (self.failed)(code, &stderr::plain(stderr))
    }

    fn read_tail(&self, tail: &str) -> Vec<RunLine> {
        (self.tail)(tail)
    }

    fn totals(&self, tail: &str) -> Option<Totals> {
        (self.totals)(tail)
    }
}

/// Reads a line that is one JSON object; a blank line says nothing.
pub(crate) fn read_json(line: &[u8], reader: impl Fn(&Value) -> Vec<RunLine>) -> Vec<RunLine> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(value) if value.is_object() => reader(&value),
        _ => vec![RunLine::Unreadable],
    }
}

/// Checks the user's own arguments.
pub fn check_arguments(spec: &RunSpec, launch: &Launch<'_>) -> Result<(), WrongArgument> {
    for argument in launch.arguments {
        if argument == "--" {
            return Err(WrongArgument::Separator);
        }
        let is_one = |names: &[&str]| names.iter().any(|name| is_flag(argument, name));
        if is_one(spec.reserved) {
            return Err(WrongArgument::Reserved(argument.clone()));
        }
        if !launch.trusted && is_one(spec.reserved_untrusted) {
            return Err(WrongArgument::Untrusted(argument.clone()));
        }
    }
    Ok(())
}

/// Whether an argument is this flag, alone or with a value behind `=`.
fn is_flag(argument: &str, flag: &str) -> bool {
    let rest = argument.strip_prefix(flag);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// Whether the user's own arguments have any of these flags.
pub(crate) fn has_flag(launch: &Launch<'_>, flags: &[&str]) -> bool {
    let is_one = |argument: &String| flags.iter().any(|flag| is_flag(argument, flag));
    launch.arguments.iter().any(is_one)
}

/// Words of a command line, as the row writes them.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The flags for the conversation that a run resumes or begins, of agents that take its id.
pub(crate) fn conversation_flags(launch: &Launch<'_>) -> Vec<String> {
    match (launch.resume, launch.intended) {
        (Some(id), _) => words(&["--resume", id.as_str()]),
        (None, Some(id)) => words(&["--session-id", id.as_str()]),
        (None, None) => Vec::new(),
    }
}

/// For an agent that says nothing there.
pub(crate) fn no_waits(_: &str) -> Option<RunLine> {
    None
}

/// For an agent that says nothing there.
pub(crate) fn no_tail(_: &str) -> Vec<RunLine> {
    Vec::new()
}

/// For an agent that says nothing there.
pub(crate) fn no_totals(_: &str) -> Option<Totals> {
    None
}
