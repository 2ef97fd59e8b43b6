//! Registration requests and results.

use std::collections::BTreeMap;

use crate::session::view::{HeldView, SessionView};
use tenure_core::id::{AgentName, NativeId, SessionToken};
use tenure_core::process::{Ancestor, Process, ProcessAppearance};
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::{MetaKey, Session, Workdir};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The session, agent or interactive shell that the caller runs in.
    Nearest,
    /// The first process of this chain, which is the caller; the rest are its ancestors.
    Given(Vec<Ancestor>),
    /// The same for a process that the caller names and may not be.
    Named(Vec<Ancestor>),
    /// A daemon's conversation: the daemon, and its window with that window's ancestors; without a window, the
    /// daemon with its ancestors.
    Below(Process, Vec<Ancestor>),
    /// Not identified: the session depends on its lease alone.
    Unverified,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterRequest {
    pub subject: Subject,
    /// The agent, if the process does not show it.
    pub agent: Option<AgentName>,
    pub native_id: Option<NativeId>,
    pub source: RegistrationSource,
    /// Whether the process hosts several conversations.
    pub hosted: bool,
    pub workdir: Workdir,
    /// Whether the directory was given explicitly and therefore replaces the known one.
    pub place_named: bool,
    /// A title for people.
    pub title: Option<String>,
    /// Its parent, if that is not the session above it.
    pub parent: Option<String>,
    /// The reason, if one is needed.
    pub reason: Option<Reason>,
    /// The agent's file for the conversation.
    pub transcript: Option<String>,
    pub metadata: BTreeMap<MetaKey, String>,
}

/// The result of a registration, as recorded.
pub struct Enrolled {
    pub session: Session,
    /// The outcome: `new`, `same`, `resumed` and so on.
    pub word: &'static str,
    /// The session in this life, if the caller is the session itself.
    pub token: Option<SessionToken>,
    pub regranted: Vec<HeldView>,
    pub taken: Vec<String>,
}

/// The same, for display.
#[derive(Debug, Clone)]
pub struct Registered {
    pub session: SessionView,
    /// The value for TENURE_SESSION that names it in this life; shown only to the session itself.
    pub token: Option<String>,
    pub regranted: Vec<HeldView>,
    /// Claims that others have taken since, with their holders.
    pub taken: Vec<String>,
}

/// The registering process and its ancestors.
pub(super) struct Candidate {
    pub(super) process: Option<Process>,
    pub(super) daemon: Option<Process>,
    pub(super) looks: ProcessAppearance,
    pub(super) above: Vec<Ancestor>,
    pub(super) is_person: bool,
}
