//! What is shown of an act that waits for a store that is away.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_app::keeper::{Away, RememberedSession};
use tenure_core::key::Key;
use tenure_core::time::{Span, Timestamp};
use tenure_host::clock;
use tenure_service::ReleaseRequest;
use tenure_service::answer::Problem;

use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// An act that is carried out when the store is back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SpooledView {
    /// `release`, `done` or `end`.
    pub act: &'static str,
    pub session: String,
    pub key: Option<String>,
    pub epoch: Option<u64>,
}

/// A permission to write that was given without the store.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PermittedView {
    pub key: String,
    pub epoch: u64,
    pub handle: String,
    /// The session above the caller that holds it, if it is not the caller.
    pub via: Option<String>,
    /// When the store last said so.
    pub as_of: Timestamp,
    /// Until when the permission is good.
    pub until: Timestamp,
}

/// Spools a release, if the store is away and this caller's claim is known here; else the failure stands.
pub fn release(request: &ReleaseRequest, failure: CliError) -> Outcome {
    let Some(away) = away(&failure.problem)? else {
        return Err(failure);
    };
    let Some((session, epoch)) = away.release(&request.key, request.epoch, request.done)? else {
        return Err(failure);
    };
    let view = SpooledView {
        act: if request.done { "done" } else { "release" },
        session: session.id.to_string(),
        key: Some(request.key.to_string()),
        epoch: Some(epoch.0),
    };
    let text = format!(
        "released {} (epoch {epoch}) on this machine; the store cannot be reached and is told when it answers again",
        request.key
    );
    Ok(Output::new("spooled", &view, text))
}

/// The same for the end of the caller's session.
pub fn end(failure: CliError) -> Outcome {
    let Some(away) = away(&failure.problem)? else {
        return Err(failure);
    };
    let Some(session) = away.end()? else {
        return Err(failure);
    };
    let view = SpooledView {
        act: "end",
        session: session.id.to_string(),
        key: None,
        epoch: None,
    };
    let text = "ended this session on this machine; the store cannot be reached and is told when it answers again";
    Ok(Output::new("spooled", &view, text))
}

/// What is shown of the sessions while the store is away.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RememberedView {
    /// When the store last answered.
    pub as_of: Timestamp,
    /// The sessions of this machine; with `why`, those that held the item.
    pub sessions: Vec<RememberedSession>,
    /// Why the store does not answer.
    pub problem: String,
}

/// The sessions of this machine as they were when the store last answered, if it is away; else the failure stands.
pub fn remembered(failure: CliError) -> Outcome {
    shown(failure, |_| true, "no session")
}

/// The session of this machine that held an item when the store last answered, if it is away; else the failure stands.
pub fn why(key: &Key, failure: CliError) -> Outcome {
    let holds = |one: &RememberedSession| one.claims.iter().any(|claim| claim.key == key.as_str());
    let none = format!("no session here held {key}; one on another machine may hold it");
    shown(failure, holds, &none)
}

fn shown(failure: CliError, is_meant: impl Fn(&RememberedSession) -> bool, none: &str) -> Outcome {
    let known = away(&failure.problem)?.and_then(|away| away.remembered());
    let Some((as_of, mut sessions)) = known else {
        return Err(failure);
    };
    sessions.retain(is_meant);
    let view = RememberedView {
        as_of,
        sessions,
        problem: failure.problem.message,
    };
    let age = Span(as_of.age_at(clock::wall()));
    let mut text = Lines::default();
    text.line(format!(
        "the store cannot be reached; the sessions of this machine {age} ago:"
    ));
    for one in &view.sessions {
        let held: Vec<&str> = one.claims.iter().map(|claim| claim.key.as_str()).collect();
        let held = if held.is_empty() {
            "nothing".to_owned()
        } else {
            held.join(", ")
        };
        text.line(format!("  {}  holds {held}  {}", one.handle, one.dir));
    }
    if view.sessions.is_empty() {
        text.line(format!("  {none}"));
    }
    text.line(&view.problem);
    Ok(Output::new("remembered", &view, text))
}

/// What this machine knows, if this problem is that the store on a server is away.
pub fn away(problem: &Problem) -> Result<Option<Away>, CliError> {
    if !tenure_app::keeper::is_away(problem) {
        return Ok(None);
    }
    Ok(Away::look()?)
}
