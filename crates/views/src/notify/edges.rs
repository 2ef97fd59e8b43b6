//! Which changes are events: a state that a session was not in at the last look, and entries of the log.
//!
//! Pure: it compares what the service answered. The first look only says what is so already.

use std::collections::BTreeMap;

use tenure_core::event::EventKind;
use tenure_core::notification::Reason;
use tenure_core::time::Timestamp;
use tenure_service::view::{EventView, SessionView};

use super::event::{Notification, Subject};

/// How a claim ends that its holder did not give up and no death freed.
const TAKEN: &[&str] = &["taken", "lease"];

/// What sessions were in at the last look, by session and reason, and since when.
#[derive(Debug, Default)]
pub struct States {
    before: Option<BTreeMap<(String, Reason), String>>,
}

impl States {
    /// The events of what is new since the last look; none at the first.
    pub fn changes(&mut self, sessions: &[SessionView], at: Timestamp) -> Vec<Notification> {
        let mut now = BTreeMap::new();
        let mut events = Vec::new();
        for session in sessions {
            for (reason, since) in states(session) {
                let key = (session.id.clone(), reason);
                let is_known = |before: &BTreeMap<_, _>| before.get(&key) == Some(&since);
                if self.before.as_ref().is_some_and(|before| !is_known(before)) {
                    events.push(of_state(session, reason, at));
                }
                now.insert(key, since);
            }
        }
        self.before = Some(now);
        events
    }
}

/// The states of a session that are reasons, and what tells one such state from the next.
pub fn states(session: &SessionView) -> Vec<(Reason, String)> {
    let mut found = Vec::new();
    let since = || {
        session
            .activity_since
            .unwrap_or(session.started_at)
            .0
            .to_string()
    };
    if session.state == "live" {
        let reason = match session.activity {
            Some("waiting") => Some(Reason::Asks),
            Some("failed") => Some(Reason::Failed),
            Some("limited") => Some(Reason::Limited),
            _ => None,
        };
        found.extend(reason.map(|reason| (reason, since())));
    }
    if session.rank == Some("died_with_work") {
        found.push((Reason::Died, session.process.life.to_string()));
    }
    let others = session.collides_with.iter().flatten();
    let mut others: Vec<&str> = others.map(String::as_str).collect();
    if !others.is_empty() && session.ended_at.is_none() {
        others.sort_unstable();
        found.push((Reason::Collides, others.join(" ")));
    }
    found
}

/// The event of a state.
pub fn of_state(session: &SessionView, reason: Reason, at: Timestamp) -> Notification {
    let mut event = Notification::new(reason.as_str(), at, Some(Subject::from(session)));
    match reason {
        Reason::Asks => event.asks.clone_from(&session.asks),
        Reason::Failed | Reason::Limited => {
            event.why.clone_from(&session.activity_why);
            event.until = session.activity_until;
        }
        Reason::Died => {
            event.why.clone_from(&session.end_reason);
            if let Some(left) = &session.resume {
                event.held = left.held.iter().map(Into::into).collect();
                let handle = &session.handle;
                let resume = left.command.as_ref();
                event.resume = resume.map(|_| format!("tenure resume {handle}"));
            }
        }
        _ => event.others = session.collides_with.clone().unwrap_or_default(),
    }
    event
}

/// The reason of an entry of the log.
pub fn reason_of(entry: &EventView) -> Option<Reason> {
    let is = |kind: EventKind| entry.kind == kind.as_str();
    let found = [
        (EventKind::Granted, Reason::Claimed),
        (EventKind::Taken, Reason::Claimed),
        (EventKind::Released, Reason::Released),
        (EventKind::Done, Reason::Done),
        (EventKind::RunEnded, Reason::Run),
    ];
    let mut found = found.into_iter().filter(|(kind, _)| is(*kind));
    let is_lost = is(EventKind::Freed) && TAKEN.contains(&entry.mechanism.as_str());
    match found.next() {
        Some((_, reason)) => Some(reason),
        None => is_lost.then_some(Reason::Lost),
    }
}

/// The event of an entry of the log; `entries` has what was logged with it.
pub fn of_entry(
    entry: &EventView,
    reason: Reason,
    session: Option<Subject>,
    entries: &[EventView],
) -> Notification {
    let mut event = Notification::new(reason.as_str(), entry.at, session);
    event.key.clone_from(&entry.key);
    event.epoch = entry.epoch;
    event.cursor = Some(entry.cursor);
    match reason {
        Reason::Run => event.why = Some(entry.evidence.clone()),
        Reason::Lost => {
            let later = entries.iter().filter(|other| other.cursor > entry.cursor);
            let mut takers = later.filter(|other| {
                other.key == entry.key && reason_of(other) == Some(Reason::Claimed)
            });
            let taker = takers.next().and_then(|other| other.session.as_ref());
            event.others = taker.map(|name| name.handle.clone()).into_iter().collect();
            event.why.clone_from(&entry.reason);
        }
        _ => {}
    }
    event
}
