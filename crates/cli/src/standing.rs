//! How a session stands, in the words that people read: what it does, what it asks, who else is in its
//! conversation, and on what evidence.

use std::fmt::Write as _;

use tenure_core::text;
use tenure_core::time::{Span, Timestamp};
use tenure_core::witness::TerminalPlace;
use tenure_service::view::{CutOffView, SessionView};

/// How old something is, in a column.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    match at.age_at(now) {
        young if young.as_secs() == 0 => "now".into(),
        age => Span(age).to_string(),
    }
}

/// The word that says most: what a live session does, the state of any other.
pub fn word(session: &SessionView) -> &'static str {
    if session.finished {
        return "finished";
    }
    session
        .activity
        .filter(|_| session.state == "live")
        .unwrap_or(session.state)
}

/// The same with what a person must know: whether it is sure, who else is in its conversation, what it asks.
pub fn doing(session: &SessionView, now: Timestamp) -> String {
    let mut said = word(session).to_owned();
    let is_activity = session.state == "live" && session.activity.is_some();
    if is_activity && session.activity_by.as_ref().is_some_and(|by| !by.certain) {
        said.push('?');
    }
    if let Some(lacking) = session.place.as_deref().filter(|place| is_none(place)) {
        let _infallible = write!(said, ", {lacking}");
    }
    for twin in session.twins.iter().flatten() {
        let _infallible = write!(said, ", twin of {twin}");
    }
    if session.waits_for_a_person() {
        match &session.asks {
            Some(asks) => said.push_str(&format!(": {}", text::line(asks))),
            None => said.push_str(" for you"),
        }
        if let Some(since) = session.activity_since {
            let _infallible = write!(said, ", {}", age(since, now));
        }
    }
    said
}

/// The same with the reason of any state but `live`, and with all evidence if that is wanted.
pub fn words(session: &SessionView, now: Timestamp, verbose: bool) -> String {
    let mut said = doing(session, now);
    if verbose {
        said.push_str(&evidence(session, now));
    }
    match &session.resume {
        Some(left) => said.push_str(&cut_off(session, left, now)),
        None if verbose || session.state != "live" => {
            let _infallible = write!(said, ": {}", session.why);
        }
        None => {}
    }
    said
}

/// How long ago it was cut off, and the command that takes it up again.
fn cut_off(session: &SessionView, left: &CutOffView, now: Timestamp) -> String {
    let ago = session.ended_at.map(|at| format!(" {}", age(at, now)));
    let ago = ago.unwrap_or_default();
    match (&left.command, &left.problem) {
        (Some(command), _) => format!("{ago}: {command}"),
        (None, Some(problem)) => format!(": {}; {problem}", session.why),
        (None, None) => format!(": {}", session.why),
    }
}

/// Whether the witness means that there is no window, or none any more.
fn is_none(place: &str) -> bool {
    let lacking = [TerminalPlace::NoWindow, TerminalPlace::Gone];
    lacking.iter().any(|none| none.to_string() == place)
}

/// Where a person finds the window of a live session.
pub fn window(session: &SessionView) -> Option<&str> {
    let place = session.place.as_deref();
    place.filter(|place| session.state == "live" && !is_none(place))
}

/// Who says what it does, and how long ago.
fn evidence(session: &SessionView, now: Timestamp) -> String {
    let by = session.activity_by.as_ref();
    match by.filter(|_| session.state == "live") {
        Some(by) => format!(" (by {}, {} ago)", by.source, age(by.at, now)),
        None => String::new(),
    }
}
