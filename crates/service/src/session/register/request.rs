//! What registers, and what comes of it.

use std::collections::BTreeMap;

use crate::session::view::{HeldView, SessionView};
use tenure_core::id::{AgentName, NativeId, SessionToken};
use tenure_core::process::{Ancestor, Looks, Process};
use tenure_core::reason::Reason;
use tenure_core::registration::Source;
use tenure_core::session::{MetaKey, Session, Workdir};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The session, the agent, or the person's shell that the caller runs in.
    Nearest,
    /// The first process of this chain, which is the one that calls; the rest are the processes above it.
    Given(Vec<Ancestor>),
    /// The same for a process that the caller names and may not be.
    Named(Vec<Ancestor>),
    /// A conversation that a daemon runs: the daemon, and its window with the processes above it; without one
    /// the daemon with those above it.
    Below(Process, Vec<Ancestor>),
    /// One that could not be established: the session lives by its lease alone.
    Unverified,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterRequest {
    pub subject: Subject,
    /// The agent, where the process does not tell.
    pub agent: Option<AgentName>,
    pub native_id: Option<NativeId>,
    pub source: Source,
    /// Whether the process speaks for several conversations.
    pub hosted: bool,
    pub workdir: Workdir,
    /// Whether the place was named, and so replaces the one that is known.
    pub place_named: bool,
    /// What people may call its work.
    pub title: Option<String>,
    /// Its parent, where that is not the session above it.
    pub parent: Option<String>,
    /// Why, where that takes a reason.
    pub reason: Option<Reason>,
    /// The file that the agent keeps the conversation in.
    pub transcript: Option<String>,
    pub metadata: BTreeMap<MetaKey, String>,
}

/// What a registration came to, as it is recorded.
pub struct Enrolled {
    pub session: Session,
    /// How: `new`, `same`, `resumed` and so on.
    pub word: &'static str,
    /// The session in this life, where the caller is the session itself.
    pub token: Option<SessionToken>,
    pub regranted: Vec<HeldView>,
    pub taken: Vec<String>,
}

/// The same as it is shown.
#[derive(Debug, Clone)]
pub struct Registered {
    pub session: SessionView,
    /// What TENURE_SESSION must be to name it in this life; shown to the session itself only.
    pub token: Option<String>,
    pub regranted: Vec<HeldView>,
    /// Claims that others took meanwhile, with who has them.
    pub taken: Vec<String>,
}

/// The process that registers, and what is above it.
pub(super) struct Candidate {
    pub(super) process: Option<Process>,
    /// The daemon that runs its conversation.
    pub(super) daemon: Option<Process>,
    pub(super) looks: Looks,
    pub(super) above: Vec<Ancestor>,
    pub(super) is_person: bool,
}
