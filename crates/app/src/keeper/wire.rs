//! What commands and a keeper say to each other: one line of JSON each way.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::id::SessionId;
use tenure_core::policy::Policy;
use tenure_core::time::Timestamp;
use tenure_service::AgentEvent;

use crate::read_json::read_json;

/// The version of this language.
pub const VERSION: u32 = 1;
/// The longest line. An event of an agent has one MiB at most, and only parts of it are passed on.
pub const MAX_LENGTH: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperRequest {
    pub v: u32,
    pub ask: KeeperCommand,
}

/// An event, and what its hook knows of its surroundings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRequest {
    /// The agent of the hook's command line, and its own name for the event.
    pub hook: String,
    pub name: String,
    pub event: AgentEvent,
    pub policy: Policy,
    /// When the hook stops waiting, in milliseconds of the boot clock.
    pub until: u64,
    /// Whether there are files to update that show sessions.
    pub mirrors: bool,
}

/// What a hook says to its agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventReply {
    /// For the model.
    pub lines: Vec<String>,
    /// For the person.
    pub message: Option<String>,
    /// Why the tool must not run.
    pub block: Option<String>,
    /// The value for TENURE_SESSION.
    pub token: Option<String>,
    /// The item that owns the conversation, if the event named another with it.
    pub foreign_to: Option<String>,
    /// For stderr.
    pub notes: Vec<String>,
    /// Whether there are notices among the lines, which are delivered once the answer was printed.
    pub notifies: bool,
    /// For how many milliseconds the same event need not be sent again, as long as the generation is the same.
    #[serde(default)]
    pub quiet: u64,
    /// The session that the event is about, whose person its hook may notify.
    #[serde(default)]
    pub session: Option<SessionId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeeperCommand {
    Status,
    /// Something may have changed here: a session was registered. Look when this connection ends. A keeper that is
    /// older than the command ends, and its parent executes the new program.
    LookAfterwards {
        version: String,
    },
    /// Pass what follows on to the store, and its answers back.
    Store,
    /// Record an event of an agent, and say what its hook answers.
    Event(Box<EventRequest>),
    /// The answer to an agent's last event was printed, for a model or for a person.
    Printed {
        whose: String,
        for_model: bool,
    },
    /// Say when it may be this waiter's turn, until the connection ends.
    Wait {
        ticket: u64,
    },
    /// End, and remove the row.
    Stop,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    Status(Box<KeeperStatus>),
    Accepted,
    /// It may be the waiter's turn.
    Turn,
    Event(Box<EventReply>),
    /// An event was not recorded.
    Missed {
        kind: String,
        message: String,
    },
    /// From here on, the store answers.
    Reached,
    /// The store cannot be reached.
    Unreached {
        /// What the server said, as a SQLSTATE.
        code: Option<String>,
        /// None if it did not answer in time.
        why: Option<String>,
    },
    /// Why the request was not understood or is not permitted.
    Refused(String),
}

/// What a keeper says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeeperStatus {
    /// Identifies this life of it.
    pub id: String,
    pub pid: u32,
    pub version: String,
    /// The store, without its password.
    pub store: String,
    pub started_at: Timestamp,
    /// When the store last answered; none if it has not yet.
    pub renewed_at: Option<Timestamp>,
    /// Since when the store does not answer, if so.
    pub away_since: Option<Timestamp>,
    /// Why it does not, as it was said last.
    pub away_why: Option<String>,
    /// How many sessions it watches.
    pub sessions: usize,
    /// How many claims those hold.
    pub claims: usize,
}

impl KeeperRequest {
    pub fn of(ask: KeeperCommand) -> Self {
        Self { v: VERSION, ask }
    }
}

/// Sends one request.
pub fn send(stream: &UnixStream, ask: KeeperCommand, within: Duration) -> io::Result<()> {
    stream.set_write_timeout(Some(within))?;
    write_line(&mut &*stream, &KeeperRequest::of(ask))
}

/// Writes one line.
pub fn write_line(to: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(line)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Waits for the answer.
pub fn receive(stream: &UnixStream, within: Duration) -> io::Result<Response> {
    stream.set_read_timeout(Some(within))?;
    let mut line = Vec::new();
    let mut limited = BufReader::new(stream).take(MAX_LENGTH as u64);
    limited.read_until(b'\n', &mut line)?;
    read_json(&line)
}
