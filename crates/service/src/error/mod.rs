//! Why a use case failed: data, not sentences.
//!
//! Each error has a class (which decides the exit code), a kind (which scripts match on), a message and hints.
//! Surfaces only render them.

mod hints;

use std::collections::BTreeSet;
use std::time::Duration;

pub use hints::{add_a_reason, end_and_kill, register_script, take_over, wait_for};

use crate::answer::Class;
use crate::claim::view::ClaimView;
use crate::conversation::view::ConversationView;
use crate::queue::QueueError;
use crate::run::RunError;
use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, Epoch, Malformed, RunId, SessionId};
use tenure_core::key::Key;
use tenure_core::liveness::Doubt;
use tenure_core::mission::check::MissionFault;
use tenure_core::process::Survivor;
use tenure_core::store::StoreError;
use tenure_core::text;
use tenure_core::time::Span;

/// Why the caller is not a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoSessionWhy {
    /// No ancestor of the caller belongs to a session.
    NotInside,
    /// The nearest agent above the caller is not registered.
    UnregisteredAgent { agent: String, pid: u32 },
    /// The nearest session above the caller has ended.
    EndedHere { handle: String, agent: AgentName },
    /// Not all ancestors of the caller could be inspected, for this reason.
    BrokenWalk(String),
    /// TENURE_SESSION is set but ignored, for this reason.
    Variable(String),
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A value is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Arguments contradict each other.
    #[error("{what}")]
    Usage {
        /// What is wrong.
        what: String,
        /// What to do.
        hint: Hint,
    },
    /// The caller is not a session.
    #[error("{}", no_session_message(.why))]
    NoSession { why: NoSessionWhy },
    /// No session has this name.
    #[error("no session is named {name:?}")]
    NoSuchSession { name: String },
    /// No such thing.
    #[error("{what}")]
    NotFound {
        /// What is missing.
        what: String,
        /// What to do.
        hint: Hint,
    },
    /// Several sessions match.
    #[error("{what}: {}", .candidates.join(", "))]
    Ambiguous {
        /// What is ambiguous.
        what: String,
        /// Whether a name was given that matches several; otherwise none was given.
        by_name: bool,
        /// The handles that match.
        candidates: Vec<String>,
    },
    /// The caller's process was superseded by a later life of its session.
    #[error("this process was {handle} (life {life}), which now runs in another process")]
    Superseded {
        handle: String,
        /// The life that the caller belongs to.
        life: u32,
    },
    /// Acting for another session needs a reason.
    #[error("{handle} is another session; acting for it needs a reason")]
    ReasonNeeded {
        /// The session that was named.
        handle: String,
    },
    /// The caller tried something that only the session itself can do.
    #[error("only {handle} itself can {what}")]
    OwnSessionOnly {
        /// The session that was named.
        handle: String,
        /// What it alone can do, as a verb.
        what: &'static str,
    },
    /// An agent tried something that only a person may do.
    #[error("only a person can {what}; agents cannot")]
    PersonOnly {
        /// What, as a verb.
        what: &'static str,
    },
    /// A session that is not open cannot do this.
    #[error("{handle} {state}")]
    NotLive {
        handle: String,
        /// Its state, as a predicate: "has ended".
        state: String,
    },
    /// A message to a session that will never read it.
    #[error("{handle} is dead and cannot be resumed ({why}); the message was not stored")]
    Unreachable {
        handle: String,
        /// Why it cannot be resumed.
        why: String,
    },
    /// A session was not cut off, or was already dismissed.
    #[error("{handle} {state}")]
    NothingToDismiss {
        handle: String,
        /// Its state, as a predicate: "has not ended".
        state: String,
    },
    /// A session has read none of the caller's messages, and there are too many.
    #[error("{handle} has not read {count} messages from this sender yet")]
    Unread { handle: String, count: usize },
    /// A live session is in the way.
    #[error("{handle} is still running{}", running_phrase(*.pid, *.running))]
    StillRunning {
        handle: String,
        /// The process that keeps it alive.
        pid: u32,
        running: Blocker,
    },
    /// Only what a session that is over left running can be ended without it.
    #[error("the process of {handle} is still running; only what a dead one left can be ended")]
    NotOver { handle: String },
    /// What a session that is over left running cannot be seen from here.
    #[error("cannot see what {handle} left running: {doubt}")]
    SurvivorsUnseen {
        handle: String,
        /// The machine that it ran on, if that is not this one.
        host: Option<String>,
        doubt: Doubt,
    },
    /// Whether a session is alive is unknown.
    #[error("cannot tell whether {handle} is alive: {doubt}")]
    CannotTell {
        handle: String,
        doubt: Doubt,
        /// The requested key, if there was one.
        key: Option<Key>,
    },
    /// Another session holds the claim.
    #[error("{key} is held by {}", holder_phrase(.claim))]
    Held {
        key: Key,
        /// The current claim.
        claim: Box<ClaimView>,
    },
    /// Not held by the session, or at the epoch, that the caller named.
    #[error("{key} changed hands: it is now at epoch {}, held by {}", .claim.epoch, holder_phrase(.claim))]
    ChangedHands {
        key: Key,
        /// The current claim.
        claim: Box<ClaimView>,
    },
    /// Another session holds an overlapping path.
    #[error("{key} overlaps {}, which is held by {}", .claim.key, holder_phrase(.claim))]
    Overlaps {
        /// The requested key.
        key: Key,
        /// The current overlapping claim.
        claim: Box<ClaimView>,
    },
    /// Processes of the dead holder still run.
    #[error("{key} is free, but {handle} left processes running that may still write: pid {}", pids(.survivors))]
    LeftRunning {
        key: Key,
        /// The dead holder.
        handle: String,
        /// What it left running.
        survivors: Vec<Survivor>,
    },
    /// The dead holder may have left processes running.
    #[error("{key} is free, but tenure cannot tell whether {handle} left processes running: {why}")]
    MaybeLeftRunning {
        key: Key,
        /// The dead holder.
        handle: String,
        why: String,
    },
    /// None of several keys is free.
    #[error("none of the {count} items is free; first: {first}")]
    NoneFree {
        /// How many were requested.
        count: usize,
        /// Why the first was refused.
        first: Box<Error>,
    },
    /// Waiting took too long.
    #[error("timed out after {}: {why}", Span(*.waited))]
    TimedOut {
        /// How long it waited.
        waited: Duration,
        /// What was in the way.
        why: Box<Error>,
    },
    /// The holder's lease expired, but the lock delay has not.
    #[error("{key} is held by {}, whose lease expired; it becomes free in {}", holder_phrase(.claim), Span(*.left))]
    Suspect {
        key: Key,
        /// The current claim.
        claim: Box<ClaimView>,
        left: Duration,
    },
    /// The item is finished.
    #[error("{key} is done")]
    Done {
        key: Key,
        /// The current claim.
        claim: Box<ClaimView>,
    },
    /// The caller holds it already and asked for a new hold only.
    #[error("{key} is already held by this session (epoch {epoch})")]
    AlreadyHeld { key: Key, epoch: Epoch },
    /// No session holds it.
    #[error("{key} is free; no session holds it")]
    Free { key: Key },
    /// Another session has the claim now.
    #[error("this session lost {key}: {}", lost_phrase(.claim))]
    Lost {
        key: Key,
        /// The epoch that the caller had.
        epoch: Epoch,
        /// The current claim.
        claim: Box<ClaimView>,
    },
    /// The caller lost these claims and has taken none since.
    #[error("this session lost {}", lost_list(.claims))]
    LostBefore {
        /// The current claims.
        claims: Vec<ClaimView>,
    },
    #[error("epoch {named} of {key} was never granted; its current epoch is {now}")]
    NoSuchEpoch {
        key: Key,
        now: Epoch,
        /// The epoch that was named.
        named: Epoch,
    },
    /// A check failed.
    #[error("{what}")]
    Invalid {
        /// What is wrong.
        what: String,
        /// What to do.
        hint: Hint,
    },
    /// A check found these faults.
    #[error("{}", fault_lines(.what, .faults).join("\n"))]
    Faulty {
        /// What was checked.
        what: String,
        /// What is wrong with it.
        faults: Vec<MissionFault>,
    },
    /// No mission was given or is active.
    #[error("{what}")]
    NoMission {
        /// What is missing.
        what: String,
        /// Pointers that were ignored.
        passed_over: Vec<MissionFault>,
    },
    /// Others work on the same focus.
    #[error("{focus} in mission {mission} is already being worked on by {}", .drivers.join(", "))]
    Collision {
        mission: String,
        /// What they work on.
        focus: String,
        /// Their handles.
        drivers: Vec<String>,
    },
    /// A conversation changed since the revision that the caller named.
    #[error(
        "the {} conversation of {} has revision {} now, not {named}; nothing was changed",
        .now.agent, .now.root, .now.revision
    )]
    Revised {
        /// The revision that was named.
        named: u64,
        /// The conversation as it is now.
        now: Box<ConversationView>,
    },
    /// A run is in the conversation.
    #[error("the {agent} conversation of {item} is in use by run {run}")]
    InRun {
        agent: AgentName,
        item: Key,
        run: RunId,
        /// Whether the request can stop the run first.
        can_stop: bool,
    },
    /// The item is linked, so it has no conversation of its own.
    #[error("{item} is linked to {root} and continues the conversations of {root}")]
    Linked { item: Key, root: Key },
    /// A run cannot be started, stopped or resumed.
    #[error(transparent)]
    Run(Box<RunError>),
    /// A job cannot be queued, taken or changed.
    #[error(transparent)]
    Queue(Box<QueueError>),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Error::Run(Box::new(error))
    }
}

impl From<QueueError> for Error {
    fn from(error: QueueError) -> Self {
        Error::Queue(Box::new(error))
    }
}

impl Error {
    /// The message for people, line by line.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Error::Faulty { what, faults } => fault_lines(what, faults),
            other => vec![other.to_string()],
        }
    }

    /// The class, which decides the exit code.
    pub fn class(&self) -> Class {
        match self {
            Error::Malformed(_)
            | Error::Usage { .. }
            | Error::ReasonNeeded { .. }
            | Error::OwnSessionOnly { .. } => Class::Usage,
            Error::NoSession { .. }
            | Error::NoSuchSession { .. }
            | Error::NotFound { .. }
            | Error::NoMission { .. } => Class::NotFound,
            Error::Ambiguous { .. } | Error::Invalid { .. } | Error::Faulty { .. } => {
                Class::Invalid
            }
            Error::Superseded { .. }
            | Error::Lost { .. }
            | Error::LostBefore { .. }
            | Error::NoSuchEpoch { .. }
            | Error::Revised { .. } => Class::Lost,
            Error::NotLive { .. }
            | Error::Unreachable { .. }
            | Error::NothingToDismiss { .. }
            | Error::Unread { .. }
            | Error::PersonOnly { .. }
            | Error::Done { .. }
            | Error::AlreadyHeld { .. }
            | Error::Free { .. }
            | Error::Linked { .. } => Class::Refused,
            Error::CannotTell { .. }
            | Error::MaybeLeftRunning { .. }
            | Error::SurvivorsUnseen { .. } => Class::CannotTell,
            Error::Held { .. }
            | Error::ChangedHands { .. }
            | Error::StillRunning { .. }
            | Error::NotOver { .. }
            | Error::Suspect { .. }
            | Error::Overlaps { .. }
            | Error::Collision { .. }
            | Error::InRun { .. }
            | Error::LeftRunning { .. } => Class::Held,
            Error::NoneFree { .. } => Class::Held,
            Error::TimedOut { .. } => Class::TimedOut,
            Error::Run(error) => error.class(),
            Error::Queue(error) => error.class(),
            Error::Store(StoreError::NotOwner { .. }) => Class::Refused,
            Error::Store(_) => Class::Store,
        }
    }

    crate::kinds! {
        Error::Malformed(_) => "malformed",
        Error::Usage { .. } => "usage",
        Error::NoSession { .. } => "no_session",
        Error::NoSuchSession { .. } => "no_such_session",
        Error::NotFound { .. } => "not_found",
        Error::Ambiguous { .. } => "ambiguous",
        Error::Superseded { .. } => "superseded",
        Error::ReasonNeeded { .. } => "reason_needed",
        Error::OwnSessionOnly { .. } => "own_session_only",
        Error::PersonOnly { .. } => "person_only",
        Error::NotLive { .. } => "not_live",
        Error::Unreachable { .. } => "dead",
        Error::NothingToDismiss { .. } => "nothing_to_dismiss",
        Error::Unread { .. } => "unread",
        Error::CannotTell { .. } => "cannot_tell",
        Error::Held { .. } | Error::ChangedHands { .. } | Error::InRun { .. } => "held",
        Error::Revised { .. } => "revised",
        Error::Linked { .. } => "linked",
        Error::StillRunning { .. } | Error::NotOver { .. } => "live",
        Error::Suspect { .. } => "suspect",
        Error::Overlaps { .. } => "overlaps",
        Error::LeftRunning { .. } => "survivors",
        Error::MaybeLeftRunning { .. } | Error::SurvivorsUnseen { .. } => "survivors_unknown",
        Error::NoneFree { .. } => "none_free",
        Error::TimedOut { .. } => "timed_out",
        Error::Done { .. } => "done",
        Error::AlreadyHeld { .. } => "already_held",
        Error::Free { .. } => "free",
        Error::Lost { .. } | Error::LostBefore { .. } => "lost",
        Error::NoSuchEpoch { .. } => "no_such_epoch",
        Error::Invalid { .. } | Error::Faulty { .. } => "invalid",
        Error::NoMission { .. } => "no_mission",
        Error::Collision { .. } => "collision",
        Error::Store(StoreError::Damaged { .. }) => "store_damaged",
        Error::Store(StoreError::LogLost { .. }) => "store_log_lost",
        Error::Store(StoreError::TooNew { .. }) => "store_too_new",
        Error::Store(StoreError::Full { .. }) => "store_full",
        Error::Store(StoreError::Busy { .. } | StoreError::Conflict) => "store_busy",
        Error::Store(StoreError::Unavailable { .. } | StoreError::Interrupted { .. }) => "store_unavailable",
        Error::Store(StoreError::NotOwner { .. }) => "not_owner",
        Error::Store(StoreError::Replaced { .. }) => "store_replaced",
        Error::Store(StoreError::OutcomeUnknown { .. }) => "store_outcome_unknown",
        Error::Store(StoreError::Unmigrated { .. }) => "store_unmigrated",
        Error::Store(StoreError::InUse { .. }) => "store_in_use",
        Error::Store(StoreError::Moved { .. }) => "store_moved",
        Error::Store(StoreError::Unfinished { .. }) => "store_unfinished",
        ;
        Error::Run(error) => error.kind(),
        Error::Queue(error) => error.kind(),
    }

    /// Every kind that an error of a use case can have.
    pub fn all_kinds() -> BTreeSet<&'static str> {
        let inside = RunError::KINDS.iter().chain(QueueError::KINDS);
        Self::KINDS.iter().chain(inside).copied().collect()
    }

    /// The claim that the error is about, for scripts.
    pub fn claim(&self) -> Option<&ClaimView> {
        match self {
            Error::Held { claim, .. }
            | Error::ChangedHands { claim, .. }
            | Error::Suspect { claim, .. }
            | Error::Overlaps { claim, .. }
            | Error::Done { claim, .. }
            | Error::Lost { claim, .. } => Some(claim),
            Error::LostBefore { claims } => claims.first(),
            Error::NoneFree { first, .. } | Error::TimedOut { why: first, .. } => first.claim(),
            _ => None,
        }
    }
}

/// The first line has the count; each fault has its own line.
fn fault_lines(what: &str, faults: &[MissionFault]) -> Vec<String> {
    let head = match faults.len() {
        1 => format!("{what} is not valid"),
        n => format!("{what} is not valid ({n} faults)"),
    };
    let each = faults.iter().map(|fault| format!("  {fault}"));
    std::iter::once(head).chain(each).collect()
}

fn no_session_message(why: &NoSessionWhy) -> String {
    match why {
        NoSessionWhy::NotInside => "not running inside a tenure session".into(),
        NoSessionWhy::UnregisteredAgent { agent, pid } => {
            format!("this process belongs to {agent} (pid {pid}), which is not registered")
        }
        NoSessionWhy::EndedHere { handle, .. } => {
            format!("this process belongs to {handle}, which has ended")
        }
        NoSessionWhy::BrokenWalk(why) => {
            format!("cannot tell which session this process belongs to: {why}")
        }
        NoSessionWhy::Variable(why) => format!("not running inside a tenure session: {why}"),
    }
}

/// What keeps a session alive that is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocker {
    /// Its own process.
    Process,
    /// The same, but its window is closed: nobody can reach it.
    Unreachable,
    /// The daemon of its agent, which finishes a turn whose window is gone.
    Daemon,
}

fn running_phrase(pid: u32, running: Blocker) -> String {
    match running {
        Blocker::Process => format!(" (pid {pid})"),
        Blocker::Unreachable => format!(" (pid {pid}), but its window is closed"),
        Blocker::Daemon => {
            format!(": its window is gone, and the daemon (pid {pid}) is finishing its turn")
        }
    }
}

fn pids(survivors: &[Survivor]) -> String {
    let all: Vec<String> = survivors
        .iter()
        .map(|survivor| survivor.pid.to_string())
        .collect();
    all.join(", ")
}

fn holder_phrase(claim: &ClaimView) -> String {
    let Some(holder) = &claim.holder else {
        return "another session".into();
    };
    let host = holder
        .host
        .as_deref()
        .map(|host| format!("{}:", text::name(host)));
    let dir = format!("{}{}", host.unwrap_or_default(), text::name(&holder.dir));
    let age = claim.age.map(|age| format!(", {}", Span(age)));
    let mut phrase = format!(
        "{} ({} in {dir}{})",
        holder.handle,
        holder.state,
        age.unwrap_or_default()
    );
    if let Some(note) = &claim.note {
        phrase.push_str(&format!(": {}", text::quoted(note)));
    }
    phrase
}

fn lost_list(claims: &[ClaimView]) -> String {
    let each = |claim: &ClaimView| format!("{}: {}", claim.key, lost_phrase(claim));
    claims.iter().map(each).collect::<Vec<_>>().join("; ")
}

fn lost_phrase(claim: &ClaimView) -> String {
    match &claim.holder {
        Some(holder) => format!("{} holds it now (epoch {})", holder.handle, claim.epoch),
        None => format!(
            "it was reassigned and is now {} (epoch {})",
            claim.state, claim.epoch
        ),
    }
}

/// The error for a session id that a caller may not use for itself.
pub fn no_such_session(id: SessionId) -> Error {
    Error::NoSuchSession {
        name: id.to_string(),
    }
}
