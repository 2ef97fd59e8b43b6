//! The row of an agent: everything that is different about it, but for what core's half says
//! ([`tenure_core::agent::AGENTS`]: looks, the variable with its id, transcripts).

use std::ffi::OsString;

use serde_json::Value;
use tenure_core::id::NativeId;
use tenure_core::process::Process;
use tenure_core::session::Doing;

use crate::background::Background;
use crate::event::Event;
use crate::install::Settings;
use crate::report::{Answer, Report, Tools};

/// One agent.
#[derive(Debug)]
pub struct Adapter {
    /// The word behind `tenure hook`, and the name in core's half.
    pub name: &'static str,
    /// Every event that means something.
    pub events: &'static [Event],
    /// Kinds of its notification event that say what the session does.
    pub(crate) notifications: &'static [(&'static str, Doing)],
    pub(crate) tools: Tools,
    pub(crate) reader: fn(&Adapter, &[u8]) -> Report,
    pub(crate) answerer: fn(&str, &Answer) -> Option<Value>,
    /// Whether the model reads the context that is answered before a tool runs.
    pub reads_before_tool: bool,
    /// The variable in which it tells its hooks its own pid.
    pub pid_variable: Option<&'static str>,
    /// Where it keeps a file for each of its live processes.
    pub registry: Option<Registry>,
    /// What its transcript says when it comes to rest without an event, where it does.
    pub rests: Option<Rests>,
    /// How it keeps sessions running without a window, where it does.
    pub background: Option<Background>,
    /// When its hooks first run.
    pub first_word: FirstWord,
    /// The variable that names a file whose lines become its tools' environment.
    pub env_file_variable: Option<&'static str>,
    /// Whether any process may speak for this agent, because it has no looks of its own.
    pub is_any_program: bool,
    /// Whether it draws a line of ours at its prompt.
    pub has_status_line: bool,
    pub(crate) commander: fn(&Turn<'_>) -> Option<Vec<OsString>>,
    pub(crate) unknown: Option<Unknown>,
    /// The settings that make it call us; none for who calls us by itself.
    pub settings: Option<Settings>,
}

impl Adapter {
    /// Reads an event.
    pub fn read(&self, event: &[u8]) -> Report {
        (self.reader)(self, event)
    }

    /// What is written to its hook's output for an answer; nothing where there is nothing to say.
    pub fn answer(&self, event: &str, answer: &Answer) -> Option<Value> {
        (self.answerer)(event, answer)
    }

    /// The command line of a turn.
    pub fn command(&self, turn: &Turn<'_>) -> Option<Vec<OsString>> {
        (self.commander)(turn)
    }

    /// Whether a turn that failed says that there is no such conversation.
    pub fn is_unknown(&self, code: i32, stderr: &str) -> bool {
        let says = |unknown: &Unknown| unknown.says.iter().any(|words| stderr.contains(words));
        let unknown = self.unknown.as_ref();
        unknown.is_some_and(|unknown| unknown.code == code && says(unknown))
    }
}

/// When an agent's hooks first run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstWord {
    /// When it starts.
    Start,
    /// At the first prompt: until then nothing tells of it.
    Prompt,
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
    /// What else a file tells; older versions of an agent leave some of it out.
    pub says: Says,
}

/// The fields of a registry's file that tell what a session does.
#[derive(Debug, Clone, Copy)]
pub struct Says {
    pub status: &'static str,
    /// What its words mean; any other says nothing.
    pub states: &'static [(&'static str, Doing)],
    /// Fields with the time of the last change, in milliseconds of the wall clock; the first that is there counts.
    pub since: &'static [&'static str],
    /// What it waits for.
    pub asks: &'static str,
    pub title: &'static str,
    /// Who made the title, and who of them means something by it.
    pub title_source: &'static str,
    pub titles: &'static [&'static str],
}

/// Records of a transcript, which has a record in JSON on each line, that no event goes with.
#[derive(Debug, Clone, Copy)]
pub struct Rests {
    /// Where the kind of a record is, as a JSON pointer.
    pub kind: &'static str,
    /// Where its text is.
    pub text: &'static str,
    /// The records after which it rests: any of these.
    pub records: &'static [Rest],
    /// The kinds of records after which it works again.
    pub begins: &'static [&'static str],
    /// Where its time is, in RFC 3339.
    pub at: &'static str,
    /// How much of the end of the file holds the last of them, in bytes.
    pub tail: u64,
}

/// A record after which an agent rests.
#[derive(Debug, Clone, Copy)]
pub struct Rest {
    pub kind: &'static str,
    pub text: Text,
    /// Whether a person is there: it was cancelled.
    pub cancelled: bool,
}

/// The text of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    Is(&'static str),
    Begins(&'static str),
    /// Whatever it is, and also where there is none.
    Any,
}

impl Text {
    /// Whether a record has this text.
    pub fn fits(self, text: Option<&str>) -> bool {
        match self {
            Text::Is(whole) => text == Some(whole),
            Text::Begins(words) => text.is_some_and(|text| text.starts_with(words)),
            Text::Any => true,
        }
    }
}

/// One turn of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn<'a> {
    /// The conversation to go on with; a new one otherwise.
    pub resume: Option<&'a NativeId>,
    /// What to ask; without it the agent is started for a person.
    pub prompt: Option<&'a str>,
    /// Flags of an earlier process of it, to be repeated.
    pub flags: &'a [String],
}

impl Turn<'_> {
    /// The program with its flags, the resumed conversation behind `flag`, then the prompt between these words.
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

/// How an agent says that there is no such conversation.
#[derive(Debug, Clone, Copy)]
pub struct Unknown {
    pub(crate) code: i32,
    /// On standard error, any of these.
    pub(crate) says: &'static [&'static str],
}
