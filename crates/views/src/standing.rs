//! The state of a session as people read it: what it does, what it asks, who else is in its conversation, and on
//! what evidence.

use std::time::Duration;

use tenure_core::liveness::Proof;
use tenure_core::session::{Doing, EndKind, State};
use tenure_core::text;
use tenure_core::time::{Span, Timestamp};
use tenure_core::witness::TerminalPlace;
use tenure_host::clock;
use tenure_service::view::SessionView;

use crate::columns::cut;

/// What most questions begin with; in a column it only takes room.
const PERMISSION: &str = "permission for ";
/// As much of a question as a column of a terminal shows.
const ASKS: usize = 40;

/// How old something is, in a column.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    match at.age_at(now) {
        young if young.as_secs() == 0 => "now".into(),
        age => Span(age).to_string(),
    }
}

/// How long ago something happened, for people.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let age = at.age_at(now);
    if age < Duration::from_secs(1) {
        return "just now".into();
    }
    format!("{} ago", Span(age))
}

/// `day`, or `3d`.
pub fn lately(within: Duration) -> String {
    match within.as_secs() {
        86_400 => "day".to_owned(),
        3_600 => "hour".to_owned(),
        _ => Span(within).to_string(),
    }
}

/// What a live session does; the state of any other.
pub fn word(session: &SessionView) -> &'static str {
    if session.finished {
        return "finished";
    }
    if is_cut_off(session) {
        return "cut off";
    }
    session
        .activity
        .filter(|_| session.state == "live")
        .unwrap_or(session.state)
}

/// The word with which its row begins.
pub fn row_word(session: &SessionView) -> &'static str {
    if session.waits_for_a_person() && session.asks.is_some() {
        return "asks";
    }
    word(session)
}

/// The words that a list can be asked for. `lost` and `collides` stand beside another word.
pub const STATES: &[&str] = &[
    "asks",
    "waiting",
    "failed",
    "limited",
    "cut-off",
    "lost",
    "collides",
    "stalled",
    "retrying",
    "suspended",
    "finished",
    "starting",
    "busy",
    "idle",
    "live",
    "unknown",
    "ended",
    "dead",
];

/// Whether its row shows one of [`STATES`].
pub fn shows(session: &SessionView, state: &str) -> bool {
    let is_any = |all: &Option<Vec<String>>| all.as_ref().is_some_and(|all| !all.is_empty());
    match state {
        "lost" => is_any(&session.lost),
        "collides" => is_any(&session.collides_with) || is_any(&session.twins),
        "cut-off" => row_word(session) == "cut off",
        word => row_word(session) == word,
    }
}

fn is_cut_off(session: &SessionView) -> bool {
    let recorded = session.end_kind == Some(EndKind::CutOff.as_str());
    session.resume.is_some() || (recorded && session.state == State::Dead.as_str())
}

/// The same with what a person must know: whether it is sure, who else is in its conversation, what it asks.
pub fn doing(session: &SessionView, now: Timestamp) -> String {
    doing_within(session, now, None)
}

fn doing_within(session: &SessionView, now: Timestamp, asks: Option<usize>) -> String {
    let mut said = row_word(session).to_owned();
    if let Some(pid) = session.starting() {
        said.push_str(&format!(" (pid {pid})"));
    }
    let is_activity = session.state == "live" && session.activity.is_some();
    if is_activity && session.activity_by.as_ref().is_some_and(|by| !by.certain) {
        said.push('?');
    }
    if let Some(lacking) = session.place.as_deref().filter(|place| is_none(place)) {
        said.push_str(&format!(", {lacking}"));
    }
    if session.daemon.is_some() {
        said.push_str(" (the daemon finishes its turn)");
    }
    for twin in session.twins.iter().flatten() {
        said.push_str(&format!(", twin of {twin}"));
    }
    said.push_str(&collides(session));
    if session.state == State::Live.as_str() {
        said.push_str(&trouble(session, now));
    }
    match session.lost.as_deref().unwrap_or_default() {
        [] => {}
        [one] => said.push_str(&format!(", lost {one}")),
        [one, rest @ ..] => said.push_str(&format!(", lost {one} and {} more", rest.len())),
    }
    if session.waits_for_a_person() {
        match &session.asks {
            Some(text) => {
                let text = text::line(text.strip_prefix(PERMISSION).unwrap_or(text));
                said.push_str(&format!(": {}", cut(&text, asks.unwrap_or(usize::MAX))));
            }
            None => said.push_str(" for you"),
        }
        if let Some(since) = session.activity_since {
            said.push_str(&format!(", {}", age(since, now)));
        }
    }
    said
}

/// Why a session failed, is limited or retries, and until when, after its state.
fn trouble(session: &SessionView, now: Timestamp) -> String {
    let is = |doing: Doing| session.activity == Some(doing.as_str());
    let mut said = String::new();
    if let Some(until) = session.activity_until.filter(|until| *until > now) {
        let at = clock::zone().short(until, now);
        said.push_str(&if is(Doing::Limited) {
            format!(" until {at}")
        } else {
            format!(", next at {at}")
        });
    }
    let why = session.activity_why.as_deref();
    if is(Doing::Failed) || is(Doing::Limited) || is(Doing::Retrying) {
        said.push_str(&why.map_or(String::new(), |why| format!(": {}", text::line(why))));
        let since = session.activity_since.map(|since| age(since, now));
        said.push_str(&since.map_or(String::new(), |since| format!(", {since}")));
    }
    said
}

/// The session it collides with: each of the two names the other, whatever else there is to say about it.
pub fn collides(session: &SessionView) -> String {
    let twins = session.twins.as_deref().unwrap_or_default();
    let others = session.collides_with.iter().flatten();
    let others: Vec<&str> = others
        .filter(|other| !twins.contains(other))
        .map(String::as_str)
        .collect();
    match others.as_slice() {
        [] => String::new(),
        [one] => format!(", collides with {one}"),
        [one, rest @ ..] => format!(", collides with {one} and {} more", rest.len()),
    }
}

/// How it ended, after when.
pub fn end_kind(session: &SessionView) -> &'static str {
    let is = |kind: EndKind| session.end_kind == Some(kind.as_str());
    if is(EndKind::CutOff) && session.state == State::Dead.as_str() {
        // Its process says nothing about what ended it.
        if session.why == Proof::Rebooted.to_string() {
            ", cut off by a reboot"
        } else {
            ", cut off; the cause cannot be seen"
        }
    } else if is(EndKind::CutOff) {
        ", cut off"
    } else if is(EndKind::Left) {
        ", ended by its user or by itself"
    } else if is(EndKind::Moved) {
        ", continued in another session"
    } else {
        ""
    }
}

/// The same with the reason of any state but `live`, and with all evidence if that is wanted. In a column of a
/// terminal only the beginning of a long question.
pub fn words_within(
    session: &SessionView,
    now: Timestamp,
    verbose: bool,
    room: Option<usize>,
) -> String {
    let mut said = doing_within(session, now, room.map(|_| ASKS));
    match &session.resume {
        Some(_) => {
            if let Some(at) = session.ended_at {
                said.push_str(&format!(" {}", age(at, now)));
            }
        }
        None if session.state == State::Stalled.as_str() && !verbose => {
            said.push_str(&format!(" {}", age(session.last_seen_at, now)));
        }
        None if verbose || session.state != "live" => {
            said.push_str(&format!(": {}", session.why));
        }
        None => {}
    }
    if let Some(count) = still_runs(session) {
        said.push_str(&format!(", {count}"));
    }
    said
}

/// `1 process still runs`, in the row of a session that is over.
fn still_runs(session: &SessionView) -> Option<String> {
    match session.survivors.as_deref()? {
        [] => None,
        [_] => Some("1 process still runs".to_owned()),
        all => Some(format!("{} processes still run", all.len())),
    }
}

/// What to do about a session that was cut off.
pub fn way_on(session: &SessionView) -> Option<String> {
    let left = session.resume.as_ref()?;
    let handle = &session.handle;
    let dismiss = format!("tenure dismiss {handle}");
    match (&left.command, &left.problem) {
        (Some(command), _) => Some(format!(
            "{handle} was cut off; run `{command}` to continue it, or `{dismiss}` to drop it"
        )),
        (None, Some(problem)) => Some(format!(
            "{handle} was cut off and cannot be resumed: {problem}; run `{dismiss}` to drop it"
        )),
        (None, None) => Some(format!(
            "{handle} was cut off and cannot be resumed; run `{dismiss}` to drop it"
        )),
    }
}

/// Whether the session has no window, or lost it.
fn is_none(place: &str) -> bool {
    let lacking = [TerminalPlace::NoWindow, TerminalPlace::Gone];
    lacking.iter().any(|none| none.to_string() == place)
}

/// Where a person finds the window of a live session.
pub fn window(session: &SessionView) -> Option<&str> {
    let place = session.place.as_deref();
    place.filter(|place| session.state == "live" && !is_none(place))
}
