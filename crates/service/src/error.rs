//! Why a use case did not do what was asked: data, not sentences.
//!
//! Each error has a class (which decides the exit code), a kind (which scripts match on), a message and
//! hints. Surfaces only render them.

use std::time::Duration;

use crate::answer::Class;
use crate::view::ClaimView;
use tenure_core::hint::Hint;
use tenure_core::id::{AgentName, Epoch, Malformed, SessionId};
use tenure_core::key::Key;
use tenure_core::liveness::Doubt;
use tenure_core::mission::check::Fault;
use tenure_core::process::Survivor;
use tenure_core::store::StoreError;
use tenure_core::text;
use tenure_core::time::Span;

/// Why the caller is nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NobodyWhy {
    /// No process above the caller is a session's.
    NoSession,
    /// The nearest agent above the caller is not registered.
    UnregisteredAgent { agent: String, pid: u32 },
    /// The nearest session above the caller has ended.
    EndedHere { handle: String, agent: AgentName },
    /// The processes above the caller could not all be looked at, for this reason.
    BrokenWalk(String),
    /// TENURE_SESSION is set and does not count, for this reason.
    Variable(String),
}

/// Why a use case did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A value is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Arguments do not go together.
    #[error("{what}")]
    Usage {
        /// What is wrong.
        what: String,
        /// What to do.
        hint: Hint,
    },
    /// The caller is no session.
    #[error("{}", nobody_message(.why))]
    Nobody {
        /// Why not.
        why: NobodyWhy,
    },
    /// No session has this name.
    #[error("no session is called {name:?}")]
    NoSuchSession {
        /// The name as given.
        name: String,
    },
    /// There is no such thing.
    #[error("{what}")]
    NotFound {
        /// What is missing.
        what: String,
        /// What to do.
        hint: Hint,
    },
    /// Several sessions fit.
    #[error("{what}: {}", .candidates.join(", "))]
    Ambiguous {
        /// What is ambiguous.
        what: String,
        /// The handles that fit.
        candidates: Vec<String>,
    },
    /// The caller's process was superseded by a later life of its session.
    #[error(
        "this process was {handle} in life {life}, and {handle} goes on in another process now"
    )]
    Superseded {
        /// The session.
        handle: String,
        /// The life that the caller belongs to.
        life: u32,
    },
    /// Acting for another session takes a reason.
    #[error("{handle} is neither this session nor a child of it; acting for it takes a reason")]
    ReasonNeeded {
        /// The session that was named.
        handle: String,
    },
    /// Somebody else did what only the session itself can do.
    #[error("only {handle} itself can {what}")]
    OnlyItself {
        /// The session that was named.
        handle: String,
        /// What it alone can do, as a verb.
        what: &'static str,
    },
    /// A session that is not open cannot do this.
    #[error("{handle} {state}")]
    NotLive {
        /// The session.
        handle: String,
        /// How it stands, as a verb: "has ended".
        state: String,
    },
    /// A session that lives is in the way.
    #[error("{handle} lives (pid {pid}) and is in that conversation")]
    Lives {
        /// The session.
        handle: String,
        /// Its process.
        pid: u32,
    },
    /// It cannot be told whether a session lives.
    #[error("cannot tell whether {handle} lives: {doubt}")]
    CannotTell {
        /// The session.
        handle: String,
        /// Why not.
        doubt: Doubt,
        /// The key that was asked for, if one was.
        key: Option<Key>,
    },
    /// Another session has the claim.
    #[error("{key} is held by {}", holder_phrase(.claim))]
    Held {
        key: Key,
        /// The claim as it stands.
        claim: Box<ClaimView>,
    },
    /// Another session has an overlapping path.
    #[error("{key} overlaps {}, which is held by {}", .claim.key, holder_phrase(.claim))]
    Overlaps {
        /// The key that was asked for.
        key: Key,
        /// The overlapping claim as it stands.
        claim: Box<ClaimView>,
    },
    /// The dead holder's processes still run.
    #[error("{key} is free, but {handle} left processes behind that may still write: {}", pids(.survivors))]
    Noisy {
        key: Key,
        /// The dead holder.
        handle: String,
        /// What it left behind.
        survivors: Vec<Survivor>,
    },
    /// It is not certain that the dead holder left nothing behind.
    #[error("{key} is free, but cannot tell whether {handle} left processes behind: {why}")]
    MaybeNoisy {
        key: Key,
        /// The dead holder.
        handle: String,
        /// Why not.
        why: String,
    },
    /// None of several keys could be had.
    #[error("none of {count} items is free; the first: {first}")]
    NoneFree {
        /// How many were asked for.
        count: usize,
        /// Why the first was refused.
        first: Box<Error>,
    },
    /// Waiting took too long.
    #[error("still waiting after {}: {why}", Span(*.waited))]
    TimedOut {
        /// How long it waited.
        waited: Duration,
        /// What stood in the way.
        why: Box<Error>,
    },
    /// The holder's lease is over, the lock-delay is not.
    #[error("{key} is held by {}, whose lease is over; free in {}", holder_phrase(.claim), Span(*.left))]
    Suspect {
        key: Key,
        /// The claim as it stands.
        claim: Box<ClaimView>,
        /// The time left.
        left: Duration,
    },
    /// The item is finished.
    #[error("{key} is done")]
    Done {
        key: Key,
        /// The claim as it stands.
        claim: Box<ClaimView>,
    },
    /// The caller has it and asked only for what it does not have.
    #[error("{key} is already held by this session (epoch {epoch})")]
    AlreadyHeld {
        key: Key,
        /// The epoch that it holds.
        epoch: Epoch,
    },
    /// Nobody has it.
    #[error("{key} is free: nobody holds it")]
    Free { key: Key },
    /// The claim is another's now.
    #[error("{key} was lost: {}", lost_phrase(.claim))]
    Lost {
        key: Key,
        /// The epoch that the caller had.
        epoch: Epoch,
        /// The claim as it stands.
        claim: Box<ClaimView>,
    },
    /// Claims of the caller are others' now, and it has taken none since.
    #[error("this session lost {}", lost_list(.claims))]
    LostBefore {
        /// The claims as they stand.
        claims: Vec<ClaimView>,
    },
    /// The epoch that was named was never granted.
    #[error("{key} has epoch {now}; epoch {named} was never granted")]
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
    /// A check found faults: all of them.
    #[error("{}", fault_lines(.what, .faults).join("\n"))]
    Faulty {
        /// What was checked.
        what: String,
        /// What is wrong with it.
        faults: Vec<Fault>,
    },
    /// No mission is meant.
    #[error("{what}")]
    NoMission {
        /// What is missing.
        what: String,
        /// Pointers that are not followed.
        passed_over: Vec<Fault>,
    },
    /// Others drive the same focus.
    #[error("{focus} in mission {mission} is already driven by {}", .drivers.join(", "))]
    Collision {
        mission: String,
        /// What they drive.
        focus: String,
        /// Their handles.
        drivers: Vec<String>,
    },
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// The message as people read it, line by line.
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
            | Error::OnlyItself { .. } => Class::Usage,
            Error::Nobody { .. }
            | Error::NoSuchSession { .. }
            | Error::NotFound { .. }
            | Error::NoMission { .. } => Class::NotFound,
            Error::Ambiguous { .. } | Error::Invalid { .. } | Error::Faulty { .. } => {
                Class::Invalid
            }
            Error::Superseded { .. }
            | Error::Lost { .. }
            | Error::LostBefore { .. }
            | Error::NoSuchEpoch { .. } => Class::Lost,
            Error::NotLive { .. }
            | Error::Done { .. }
            | Error::AlreadyHeld { .. }
            | Error::Free { .. } => Class::Refused,
            Error::CannotTell { .. } | Error::MaybeNoisy { .. } => Class::CannotTell,
            Error::Held { .. }
            | Error::Lives { .. }
            | Error::Suspect { .. }
            | Error::Overlaps { .. }
            | Error::Collision { .. }
            | Error::Noisy { .. } => Class::Held,
            Error::NoneFree { .. } => Class::Held,
            Error::TimedOut { .. } => Class::TimedOut,
            Error::Store(_) => Class::Store,
        }
    }

    /// The kind, for scripts.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Malformed(_) => "malformed",
            Error::Usage { .. } => "usage",
            Error::Nobody { .. } => "nobody",
            Error::NoSuchSession { .. } => "no_such_session",
            Error::NotFound { .. } => "not_found",
            Error::Ambiguous { .. } => "ambiguous",
            Error::Superseded { .. } => "superseded",
            Error::ReasonNeeded { .. } => "reason_needed",
            Error::OnlyItself { .. } => "only_itself",
            Error::NotLive { .. } => "not_live",
            Error::CannotTell { .. } => "cannot_tell",
            Error::Held { .. } => "held",
            Error::Lives { .. } => "live",
            Error::Suspect { .. } => "suspect",
            Error::Overlaps { .. } => "overlaps",
            Error::Noisy { .. } => "survivors",
            Error::MaybeNoisy { .. } => "survivors_unknown",
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
            Error::Store(StoreError::Unavailable { .. }) => "store_unavailable",
            Error::Store(StoreError::Replaced { .. }) => "store_replaced",
        }
    }

    /// What to do about it.
    pub fn hints(&self) -> Vec<Hint> {
        match self {
            Error::Malformed(error) => vec![malformed_hint(error.what)],
            Error::Usage { hint, .. }
            | Error::NotFound { hint, .. }
            | Error::Invalid { hint, .. } => vec![hint.clone()],
            Error::Nobody { why } => nobody_hints(why),
            Error::NoSuchSession { .. } => {
                vec![Hint::run("ps", ["--all"], "to see every session")]
            }
            Error::Ambiguous { .. } => vec![Hint::step("name one of them with --session")],
            Error::Superseded { .. } => {
                vec![Hint::verb(
                    "register",
                    "to make this process a session of its own",
                )]
            }
            Error::ReasonNeeded { .. } => vec![add_a_reason()],
            Error::OnlyItself { handle, .. } => vec![
                Hint::step(format!("run it inside {handle}, without --session")),
                Hint::run("tell", [handle, "MESSAGE"], "to ask it to"),
            ],
            Error::NotLive { handle, .. } => vec![Hint::run("show", [handle], "for details")],
            Error::Lives { handle, .. } => vec![
                Hint::run("show", [handle], "to see where it is"),
                Hint::run("tell", [handle, "MESSAGE"], "to send it a message"),
            ],
            Error::CannotTell { handle, key, .. } => {
                let mut hints = vec![Hint::run("show", [handle], "to see what is known of it")];
                if let Some(key) = key {
                    hints.push(Hint::step("run the claim outside the sandbox"));
                    hints.push(take_over(key.as_str()));
                }
                hints
            }
            Error::Held { key, .. } | Error::Suspect { key, .. } => {
                held_hints(key.as_str(), key.as_str())
            }
            Error::Overlaps { key, claim } => held_hints(key.as_str(), &claim.key),
            Error::Noisy { key, survivors, .. } => vec![
                Hint::step(format!(
                    "look at them: ps -o pid,lstart,args -p {}",
                    pids(survivors).replace(' ', "")
                )),
                allow_survivors(key),
            ],
            Error::MaybeNoisy { key, .. } => vec![
                Hint::run("why", [key.as_str()], "for details"),
                allow_survivors(key),
            ],
            Error::NoneFree { first, .. } | Error::TimedOut { why: first, .. } => first.hints(),
            Error::Done { key, .. } => vec![
                Hint::run("log", [key.as_str()], "to see who finished it"),
                Hint::run("claim", [key.as_str(), "--reopen"], "to take it up again"),
            ],
            Error::AlreadyHeld { key, .. } => {
                vec![Hint::run("release", [key.as_str()], "to give it back")]
            }
            Error::Free { key } => vec![Hint::run("claim", [key.as_str()], "to take it")],
            Error::Lost { key, .. } => vec![
                Hint::step("stop working on it: what this session writes now would collide"),
                Hint::run("log", [key.as_str()], "to see what happened"),
            ],
            Error::LostBefore { claims } => {
                let first = claims.first().map_or("KEY", |claim| claim.key.as_str());
                vec![
                    wait_for(first),
                    Hint::run("claim", ["KEY"], "to claim what you work on instead"),
                    Hint::run("log", [first], "to see what happened"),
                ]
            }
            Error::NoSuchEpoch { key, .. } => {
                vec![Hint::run("why", [key.as_str()], "to see its epoch")]
            }
            Error::Faulty { faults, .. } => fault_hints(faults),
            Error::NoMission { passed_over, .. } => {
                let join = ["join", "MISSION", "--role", "ROLE"];
                let mut hints = vec![
                    Hint::step("name one with --mission MISSION"),
                    Hint::run("mission", join, "to join one and make it the active one"),
                ];
                hints.extend(fault_hints(passed_over));
                hints
            }
            Error::Collision { mission, .. } => vec![
                Hint::run(
                    "mission",
                    ["status", "--mission", mission],
                    "to see who does what",
                ),
                Hint::step("leave out --strict to get only a warning"),
            ],
            Error::Store(error) => store_hints(error),
        }
    }

    /// The claim that the error is about, for scripts.
    pub fn claim(&self) -> Option<&ClaimView> {
        match self {
            Error::Held { claim, .. }
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

/// The first line says how many, and each fault has a line of its own.
fn fault_lines(what: &str, faults: &[Fault]) -> Vec<String> {
    let head = match faults.len() {
        1 => format!("{what} is not valid"),
        n => format!("{what} is not valid, {n} faults"),
    };
    let each = faults.iter().map(|fault| format!("  {fault}"));
    std::iter::once(head).chain(each).collect()
}

/// Each way out once.
fn fault_hints(faults: &[Fault]) -> Vec<Hint> {
    let mut hints: Vec<Hint> = Vec::new();
    for hint in faults.iter().flat_map(|fault| &fault.hints) {
        if !hints.contains(hint) {
            hints.push(hint.clone());
        }
    }
    hints
}

/// What an act takes that was given no reason.
pub fn add_a_reason() -> Hint {
    Hint::step("add --reason REASON (it is logged)")
}

/// How one waits for a key.
pub fn wait_for(key: &str) -> Hint {
    Hint::run("claim", [key, "--wait", "10m"], "to wait for it")
}

/// How a key is taken from a session that lives.
pub fn take_over(key: &str) -> Hint {
    let args = [key, "--reason", "REASON"];
    Hint::run("takeover", args, "to take it anyway (logged)")
}

/// What to do about `wanted`, where `held` is in the way.
fn held_hints(wanted: &str, held: &str) -> Vec<Hint> {
    vec![
        wait_for(wanted),
        Hint::run("why", [held], "for details"),
        take_over(held),
    ]
}

fn allow_survivors(key: &Key) -> Hint {
    let args = ["--any", key.as_str(), "--allow-survivors"];
    Hint::run("claim", args, "to take it anyway")
}

fn malformed_hint(what: &str) -> Hint {
    Hint::step(match what {
        "key" => "a key is SCHEME:NAME, such as issue:acme/web#42, #42 or path:src/**",
        "duration" => "a duration is such as 500ms, 90s, 5m, 1h30m or 2d",
        "agent name" => "an agent's name is such as claude or my-agent",
        "mission id" => "a mission's id is such as 041-login; it is never a path",
        "participant id" => "leave --participant out, and one is made",
        "role" => "a role is such as developer or reviewer",
        "focus" => "a focus is such as wp:WP01, step:42 or none",
        "drive" => "a drive is active or inactive",
        "reason" => "say why in a few words, such as --reason 'stuck since yesterday'",
        "native id" => "give the id that the agent itself uses for the conversation",
        _ => return Hint::run("help", ["VERB"], "to see how it is used"),
    })
}

fn nobody_message(why: &NobodyWhy) -> String {
    match why {
        NobodyWhy::NoSession => "this process belongs to no session".into(),
        NobodyWhy::UnregisteredAgent { agent, pid } => {
            format!("this process belongs to {agent} (pid {pid}), which is not registered")
        }
        NobodyWhy::EndedHere { handle, .. } => {
            format!("this process belongs to {handle}, which has ended")
        }
        NobodyWhy::BrokenWalk(why) => {
            format!("cannot tell which session this process belongs to: {why}")
        }
        NobodyWhy::Variable(why) => format!("this process belongs to no session: {why}"),
    }
}

fn nobody_hints(why: &NobodyWhy) -> Vec<Hint> {
    let mut hints = match why {
        NobodyWhy::UnregisteredAgent { agent, .. } => {
            vec![Hint::run("register", ["--agent", agent], "to register it")]
        }
        NobodyWhy::EndedHere { .. } => {
            vec![Hint::verb("register", "to go on as the same session")]
        }
        NobodyWhy::NoSession | NobodyWhy::BrokenWalk(_) | NobodyWhy::Variable(_) => vec![
            Hint::verb("register", "to make this shell or agent a session"),
            register_script(),
        ],
    };
    hints.push(Hint::step(
        "to act for a session that exists, add --session NAME --reason REASON",
    ));
    hints
}

/// How a script registers.
pub fn register_script() -> Hint {
    let args = ["--agent", "NAME", "--pid", "PID"];
    Hint::run("register", args, "in a script, where PID is $$")
}

fn store_hints(error: &StoreError) -> Vec<Hint> {
    let steps = match error {
        StoreError::Busy { .. } | StoreError::Conflict => {
            vec!["nothing was changed; run it again".into()]
        }
        StoreError::Full { .. } => vec!["make room on that disk, then run it again".into()],
        StoreError::Unavailable { .. } => {
            return vec![Hint::verb("config", "to see where the store is and why")];
        }
        StoreError::Damaged { store, .. } => vec![
            format!(
                "keep a copy before anything else: cp -p {}* somewhere/",
                text::shell(store)
            ),
            "then put a good copy in its place, or set TENURE_HOME to a new directory to go on \
             without it"
                .into(),
        ],
        StoreError::LogLost { store, log, .. } => vec![
            format!(
                "put {log} back as it was; a process that still has it open shows it below \
                 /proc/PID/fd"
            ),
            format!(
                "if it is gone for good, remove it: rm {}; those changes are lost, and every epoch \
                 is raised",
                text::shell(&format!("{store}-shm"))
            ),
        ],
        StoreError::Replaced { .. } => {
            vec!["run it again: it then uses the store that is there now".into()]
        }
        StoreError::TooNew { needs, .. } => vec![format!("install tenure {needs} or later")],
    };
    steps.into_iter().map(Hint::step).collect()
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
    let dir = text::name(&holder.dir);
    let mut phrase = format!("{} ({} in {dir})", holder.handle, holder.state);
    if let Some(age) = claim.age {
        phrase.push_str(&format!(" for {}", Span(age)));
    }
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
        Some(holder) => format!("{} has it now (epoch {})", holder.handle, claim.epoch),
        None => format!(
            "others had it since (epoch {}), and nobody has it now",
            claim.epoch
        ),
    }
}

/// A session named by a caller that is not allowed to stand for itself.
pub fn no_such_session(id: SessionId) -> Error {
    Error::NoSuchSession {
        name: id.to_string(),
    }
}
