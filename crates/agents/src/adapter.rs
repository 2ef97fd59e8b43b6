//! The row of an agent: everything specific to it, except for core's half ([`tenure_core::agent::AGENTS`]:
//! appearance, the variable with its id, transcripts).

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::id::NativeId;
use tenure_core::process::Process;
use tenure_core::run::failure::{AgentFailure, ErrorClass};
use tenure_core::session::Doing;

use crate::background::Background;
use crate::event::{EventSpec, Note};
use crate::install::Settings;
use crate::report::{EventAnswer, Report, Tools};
use crate::run::{AgentRun, Runs};
use crate::turn_records::TurnRecords;

/// One agent.
#[derive(Debug)]
pub struct Adapter {
    /// The word after `tenure hook`, and the name in core's half.
    pub name: &'static str,
    /// Every event that has a meaning.
    pub events: &'static [EventSpec],
    /// Kinds of its notification event that show what the session does.
    pub(crate) notifications: &'static [(&'static str, Doing)],
    pub(crate) tools: Tools,
    pub(crate) reader: fn(&Adapter, &[u8]) -> Report,
    pub(crate) answerer: fn(&str, &EventAnswer) -> Option<Value>,
    /// Whether the model reads context in the answer to a before-tool event.
    pub reads_before_tool: bool,
    /// The variable in which it passes its own pid to its hooks.
    pub pid_variable: Option<&'static str>,
    /// Where it keeps a file for each of its live processes.
    pub registry: Option<Registry>,
    /// How its transcript is read for what no event reports about a turn, if it has that.
    pub turn_records: Option<TurnRecords>,
    /// How it keeps sessions running without a window, if it does.
    pub background: Option<Background>,
    /// When its hooks first run.
    pub first_event: FirstEvent,
    /// The variable that names a file whose lines become its tools' environment.
    pub env_file_variable: Option<&'static str>,
    /// Whether any process may send events for this agent, because it has no known appearance.
    pub is_any_program: bool,
    /// Whether it shows our status line at its prompt.
    pub has_status_line: bool,
    /// Whether its command to resume sends the model a message, so that it runs only if a person names the session.
    pub resuming_sends: bool,
    /// How a message starts a turn in it while it is idle, if it can.
    pub wakes: Option<Waking>,
    pub(crate) commander: fn(&TurnRequest<'_>) -> Option<Vec<OsString>>,
    /// How it is run unattended; none for an agent without a command line of its own.
    pub runs: Option<AgentRun>,
    /// The settings that make it call tenure; none for a program that calls tenure by itself.
    pub settings: Option<Settings>,
}

impl Adapter {
    /// Whether a person elsewhere may answer what it asks.
    pub fn is_answerable(&self) -> bool {
        self.events.iter().any(|event| event.is(Note::Answerable))
    }

    /// Parses an event.
    pub fn read(&self, event: &[u8]) -> Report {
        (self.reader)(self, event)
    }

    /// The hook output for an answer; none if there is nothing to report.
    pub fn answer(&self, event: &str, answer: &EventAnswer) -> Option<Value> {
        (self.answerer)(event, answer)
    }

    /// The command line of a turn.
    pub fn command(&self, turn: &TurnRequest<'_>) -> Option<Vec<OsString>> {
        (self.commander)(turn)
    }

    /// Whether the error of a failed turn means that there is no such conversation.
    pub fn is_unknown(&self, code: i32, stderr: &str) -> bool {
        let told = self.runs.as_ref().map(|runs| runs.own_error(code, stderr));
        let is_unknown = |told: AgentFailure| told.class == ErrorClass::UnknownConversation;
        code != 0 && told.is_some_and(is_unknown)
    }
}

/// How a message starts a turn in an idle session.
#[derive(Debug, Clone, Copy)]
pub enum Waking {
    /// A hook that stays beside the agent: what it prints on stderr starts a turn when it exits with 2.
    ByStderr,
    /// Our plugin, which starts a turn with what the process prints that waits beside it.
    ByStdout,
    /// A command of the agent's own, which the sender runs.
    ByCommand {
        program: &'static str,
        /// Its arguments for this conversation and text.
        line: fn(&NativeId, &str) -> Vec<OsString>,
    },
}

impl Waking {
    /// Whether a process of tenure waits beside the agent for messages.
    pub fn waits(self) -> bool {
        !matches!(self, Waking::ByCommand { .. })
    }
}

/// When an agent's hooks first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstEvent {
    /// When it starts.
    Start,
    /// At the first prompt: until then nothing reports it.
    Prompt,
}

/// A folder with a file for each live process.
#[derive(Debug, Clone, Copy)]
pub struct Registry {
    /// The variable that overrides the agent's own directory.
    pub variable: &'static str,
    /// That directory below the home directory.
    pub home: &'static str,
    /// The folder in it, with a file `PID.json` for each process.
    pub folder: &'static str,
    /// The field that names the conversation.
    pub conversation: &'static str,
    /// Whether a file's text names exactly this process.
    pub names: fn(&str, &Process) -> bool,
    /// Other contents of a file; older versions of an agent omit some of it.
    pub says: Says,
}

/// The fields of a registry file that show what a session does.
#[derive(Debug, Clone, Copy)]
pub struct Says {
    pub status: &'static str,
    /// The meaning of its values; any other has none.
    pub states: &'static [(&'static str, Doing)],
    /// Fields with the time of the last change, in milliseconds of the wall clock; the first one present
    /// counts.
    pub since: &'static [&'static str],
    /// What it waits for.
    pub asks: &'static str,
    pub title: &'static str,
    /// Who made the title, and which of them counts.
    pub title_source: &'static str,
    pub titles: &'static [&'static str],
}

/// One turn of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnRequest<'a> {
    /// The conversation to continue; a new one otherwise.
    pub resume: Option<&'a NativeId>,
    /// The agent's own key for it, if it addresses conversations by keys.
    pub address: Option<&'a str>,
    /// The prompt; without it the agent is started for a person.
    pub prompt: Option<&'a str>,
    /// Flags of an earlier process of it, to repeat.
    pub flags: &'a [String],
}

impl TurnRequest<'_> {
    /// The program with its flags, the resumed conversation after `flag`, then the prompt between these words.
    pub(crate) fn line(&self, program: &str, flag: &str, prompt: [&[&str]; 2]) -> Vec<OsString> {
        let mut line = vec![program];
        line.extend(self.flags.iter().map(String::as_str));
        line.extend(self.resume.iter().flat_map(|id| [flag, id.as_str()]));
        if let Some(text) = self.prompt {
            line.extend(prompt[0].iter().chain([&text]).chain(prompt[1]));
        }
        line.into_iter().map(OsString::from).collect()
    }
}
