//! What is asked about claims, and what is answered.

use std::time::Duration;

use crate::answer::Reader;
use crate::claim::view::ClaimView;
use crate::error::Error;
use crate::session::view::SessionView;
use tenure_core::id::{AgentName, Epoch, RequestId, SessionToken, Ticket};
use tenure_core::key::Key;
use tenure_core::process::{Ancestor, Process};
use tenure_core::session::Workdir;
use tenure_core::store::Topic;
use tenure_core::text;

/// Which of several keys are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The first that is free.
    Any,
    /// All of them, or none.
    All,
}

/// A request for one or more keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    pub keys: Vec<Key>,
    /// Which of them.
    pub pick: Pick,
    /// The caller's own name for the request.
    pub request: Option<RequestId>,
    /// Refuse what the session already holds.
    pub once: bool,
    /// Take up a finished item again.
    pub reopen: bool,
    pub note: Option<String>,
    /// Refuse while a dead holder's processes still run.
    pub require_quiet: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub process: Process,
    pub ticket: Option<Ticket>,
}

/// What a waiter's look at its keys came to.
#[derive(Debug, Clone)]
pub enum Turn {
    Granted(Vec<Grant>),
    Wait(Wait),
}

#[derive(Debug, Clone)]
pub struct Wait {
    pub ticket: Ticket,
    /// Processes whose end may free a key, the caller's own session's among them.
    pub watch: Vec<Process>,
    pub about: Vec<Topic>,
    /// After this long it must look again, whatever happens.
    pub at_most: Option<Duration>,
    pub why: Box<Error>,
    /// Who reads that it took too long.
    pub reader: Reader,
}

/// A command that shall hold a key while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildRequest {
    pub claim: ClaimRequest,
    /// The command's process, and the processes above it.
    pub chain: Vec<Ancestor>,
    pub agent: AgentName,
    pub title: String,
    pub workdir: Workdir,
}

/// What a command that shall hold a key came to.
#[derive(Debug, Clone)]
pub enum ChildTurn {
    /// The caller, or an ancestor of it, has the key: the command runs under that hold.
    Covered {
        holder: String,
    },
    /// The command is a session of its own and has the key.
    Granted {
        session: Box<SessionView>,
        /// The session in this life.
        token: SessionToken,
        grants: Vec<Grant>,
    },
    Wait(Wait),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRequest {
    pub key: Key,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
    pub done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRequest {
    pub key: Key,
    pub to: String,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeoverRequest {
    pub key: Key,
    /// Only if this session holds it.
    pub from: Option<String>,
    /// Only if this is its epoch.
    pub epoch: Option<Epoch>,
    pub note: Option<String>,
}

/// A question whether the caller may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardRequest {
    pub key: Key,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
}

pub type Grant = ClaimView;

/// Refuses a note that is too long to be shown.
pub(super) fn check_note(note: Option<&str>) -> Result<(), Error> {
    match note {
        Some(note) => Ok(text::check_length("note", note, text::MAX_NOTE)?),
        None => Ok(()),
    }
}
