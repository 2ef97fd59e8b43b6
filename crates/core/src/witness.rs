//! What agents and terminals themselves report about sessions. They are asked when someone looks, never by a hook.
//!
//! An agent's events are stored in its session's row. Some of what people want to know is in no event: that a
//! person cancelled a turn, which pane it runs in, whether someone is at that pane. Such reports are evidence
//! with an age, never stored, and they decide only what is shown.

use crate::conversation::Home;
use crate::conversation::fitness::Existence;
use crate::id::{AgentName, NativeId, SessionId};
use crate::process::Process;
use crate::session::Doing;
use crate::time::Timestamp;

/// A session to ask about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub session: SessionId,
    pub agent: AgentName,
    pub process: Process,
    pub native_id: Option<NativeId>,
    /// The agent's file for the conversation, if known.
    pub transcript: Option<String>,
    /// The daemon that runs the conversation, if the process is only its window.
    pub daemon: Option<Process>,
    /// Whether it asked a person something and sends no event when that is answered.
    pub asks_silently: bool,
    /// Whether its process is gone, so that only the files that it left can be read.
    pub is_over: bool,
}

/// How much to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// What it does: read from files.
    Activity,
    /// Also where its window is, which may require asking other programs.
    Whole,
}

/// The answer for one session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Testimony {
    /// What the agent's own files report.
    pub own: Option<OwnReport>,
    pub place: Option<TerminalPlace>,
    /// When a person was last at its pane.
    pub attended_at: Option<Timestamp>,
    /// When its newest running command began; only for sessions that ask silently.
    pub runs_since: Option<Timestamp>,
    /// When a person stopped it with the agent's own command; only for sessions that are over.
    pub stopped_at: Option<Timestamp>,
}

/// What an agent's own files report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnReport {
    pub doing: Option<Doing>,
    /// What it waits for a person to answer, on one line.
    pub asks: Option<String>,
    /// Why it failed, is limited or retries, on one line.
    pub why: Option<String>,
    /// Until when it is limited, or when it tries again.
    pub until: Option<Timestamp>,
    /// What the agent calls its work.
    pub title: Option<String>,
    /// Since when.
    pub at: Timestamp,
    /// How the turn ended whose end it reports, if it reports that.
    pub turn_end: Option<TurnEnd>,
    /// When the model last answered, or a turn began, if the file records that.
    pub answered_at: Option<Timestamp>,
    /// The source of the report, for people: `its own registry`.
    pub source: &'static str,
    /// What cannot end without this file reporting it.
    pub tells: &'static [Doing],
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    ByItself,
    /// A person ended it, or it was only a command of theirs.
    ByPerson,
}

impl OwnReport {
    /// A report without content.
    pub fn empty(source: &'static str, tells: &'static [Doing]) -> Self {
        Self {
            doing: None,
            asks: None,
            why: None,
            until: None,
            title: None,
            at: Timestamp(0),
            turn_end: None,
            answered_at: None,
            source,
            tells,
        }
    }
}

/// Where a session's window is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalPlace {
    /// A pane of tmux.
    Tmux {
        /// The server's socket.
        socket: String,
        /// The pane's own id, such as `%3`.
        pane: String,
        /// Its name for people: `session:window.pane`.
        name: String,
    },
    /// A terminal by its device.
    Terminal(String),
    /// It had one, which was closed.
    Gone,
    /// It runs without one.
    NoWindow,
}

/// A conversation that an agent keeps on this machine, for this user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoredConversation {
    pub agent: AgentName,
    pub native_id: NativeId,
    pub home: Home,
}

/// Who can be asked about live sessions.
pub trait Witness {
    /// One answer for each, in order.
    fn testify(&self, about: &[Subject], question: Question) -> Vec<Testimony>;

    /// Whether the agents still have these conversations; one answer for each, in order.
    fn have(&self, kept: &[StoredConversation]) -> Vec<Existence> {
        vec![Existence::CannotTell; kept.len()]
    }
}

impl std::fmt::Display for TerminalPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TerminalPlace::Tmux { name, .. } => f.write_str(name),
            TerminalPlace::Terminal(device) => f.write_str(device),
            TerminalPlace::Gone => f.write_str("its terminal is gone"),
            TerminalPlace::NoWindow => f.write_str("no window"),
        }
    }
}
