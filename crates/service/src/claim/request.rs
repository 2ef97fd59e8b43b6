//! Requests about claims, and their answers.

use std::time::Duration;

use crate::answer::Reader;
use crate::claim::view::ClaimView;
use crate::error::Error;
use crate::session::view::SessionView;
use tenure_core::id::{AgentName, Epoch, RequestId, SessionToken, Ticket};
use tenure_core::key::Key;
use tenure_core::process::{Ancestor, Process};
use tenure_core::reason::Reason;
use tenure_core::session::Workdir;
use tenure_core::store::WaitTopic;
use tenure_core::text;

/// Which of several keys are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The first that is free.
    Any,
    /// All of them, or none.
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    pub keys: Vec<Key>,
    pub pick: Pick,
    /// The caller's own id for the request.
    pub request: Option<RequestId>,
    /// Refuse what the session already holds.
    pub once: bool,
    /// Claim an item that is done.
    pub reopen: bool,
    pub note: Option<String>,
    /// Refuse while processes of a dead holder still run.
    pub require_quiet: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCaller {
    pub process: Process,
    pub ticket: Option<Ticket>,
    /// Whether it was not told what became of an earlier check: it may be in line, or hold what it waits for.
    pub unconfirmed: bool,
}

/// What a waiter found when it checked its keys.
#[derive(Debug, Clone)]
pub enum CheckOutcome {
    Granted(Vec<Grant>),
    Wait(Wait),
}

#[derive(Debug, Clone)]
pub struct Wait {
    pub ticket: Ticket,
    /// Processes whose exit may free a key, including the one of the caller's own session.
    pub watch: Vec<Process>,
    pub about: Vec<WaitTopic>,
    /// Check again after this long, whatever happens.
    pub at_most: Option<Duration>,
    pub why: Box<Error>,
    /// Who reads the timeout error.
    pub reader: Reader,
}

/// A command that holds a key while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildRequest {
    pub claim: ClaimRequest,
    /// The command's process and its ancestors.
    pub chain: Vec<Ancestor>,
    pub agent: AgentName,
    pub title: String,
    pub workdir: Workdir,
}

/// The outcome for a command that wants to hold a key.
#[derive(Debug, Clone)]
pub enum ChildTurn {
    /// The caller, or an ancestor of it, holds the key, and the command runs under that hold.
    Covered {
        holder: String,
    },
    /// The command is a session of its own and holds the key.
    Granted {
        session: Box<SessionView>,
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
    /// Logged, and sent to the holder.
    pub reason: Reason,
}

/// A question whether the caller may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardRequest {
    pub key: Key,
    /// The epoch that the caller believes it holds.
    pub epoch: Option<Epoch>,
}

pub type Grant = ClaimView;

/// Refuses a note that is too long to show.
pub(super) fn check_note(note: Option<&str>) -> Result<(), Error> {
    match note {
        Some(note) => Ok(text::check_length("note", note, text::MAX_NOTE)?),
        None => Ok(()),
    }
}
