//! One session in full, and what happened to it.

use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_host::clock;

use tenure_service::view::{EventView, SessionView};
use tenure_service::{Delivery, SentMessage, Whoami};

use crate::colour::{Painted, paint};
use crate::columns::wrapped;
use crate::lines::Lines;
use crate::sessions::whereabouts;
use crate::standing::{ago, doing, end_kind};
use crate::survivors::named;

fn now() -> Timestamp {
    clock::wall()
}

/// One fact about a session.
pub fn field(name: &str, value: &str) -> String {
    format!("  {name:<13} {value}")
}

pub fn session(who: &Whoami, evidence: bool) -> Lines {
    let session = &who.session;
    let now = now();
    let mut text = Lines::default();
    let handle = Painted::from(format!("{}  ", session.handle));
    text.line(handle.and(paint(session.state, session.state)));
    let mut row = |name: &str, value: &str| text.line(field(name, value));
    row("why", &session.why);
    row("id", &session.id);
    row("agent", &session.agent);
    if let Some(title) = &session.title {
        row("title", title);
    }
    if session.activity.is_some() && session.state == "live" {
        row("doing", &doing(session, now));
    }
    row("where", &whereabouts(session));
    row("dir", &session.dir);
    if let Some(place) = &session.place {
        row("place", place);
    }
    if let Some(native_id) = &session.native_id {
        row("conversation", native_id);
    }
    let lineage = session.native_ids.as_deref().unwrap_or_default();
    if lineage.len() > 1 {
        let all: Vec<String> = lineage
            .iter()
            .map(|entry| {
                if entry.owned {
                    entry.native_id.clone()
                } else {
                    format!("{} (visited)", entry.native_id)
                }
            })
            .collect();
        row("lineage", &all.join(", "));
    }
    if let Some(parent) = &who.parent {
        row("parent", parent);
    }
    if let Some(twin) = &session.twin_of {
        row("twin of", twin);
    }
    if let Some(pid) = session.process.pid {
        let daemon = session.daemon.map_or_else(String::new, |daemon| {
            format!(", gone; its turn goes on in the daemon, pid {daemon}")
        });
        let life = life(session.process.life);
        row("process", &format!("pid {pid}{life}{daemon}"));
    }
    row("started", &ago(session.started_at, now));
    if let Some(at) = session.ended_at {
        row("ended", &format!("{}{}", ago(at, now), end_kind(session)));
    }
    row("last seen", &ago(session.last_seen_at, now));
    for held in session.claims.iter().flatten() {
        row("holds", &format!("{} (epoch {})", held.key, held.epoch));
    }
    for (key, value) in &who.metadata {
        row("meta", &format!("{key}={value}"));
    }
    if evidence {
        row(
            "found by",
            &format!("{}: {}", who.resolved.by, who.resolved.evidence),
        );
        for other in &who.resolved.disagreements {
            row("but", other);
        }
        row("store", &who.resolved.store);
    }
    text
}

/// `, third process of this session`; nothing for the first.
fn life(life: u32) -> String {
    let ordinal = match life {
        0 | 1 => return String::new(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => match (n % 10, n % 100) {
            (_, 11..=13) => format!("{n}th"),
            (1, _) => format!("{n}st"),
            (2, _) => format!("{n}nd"),
            (3, _) => format!("{n}rd"),
            _ => format!("{n}th"),
        },
    };
    format!(", {ordinal} process of this session")
}

/// How many lines each of the last words has, and how long they are where nobody says it.
const MAX_LINES: usize = 4;
const WIDE: usize = 100;

/// Adds what was said last in its conversation, in so many columns.
pub fn add_last_words(text: &mut Lines, session: &SessionView, columns: Option<usize>) {
    let Some(last) = &session.last_words else {
        return;
    };
    for (name, said) in [("asked", &last.prompt), ("said", &last.words)] {
        let Some(said) = said else { continue };
        let words: Vec<&str> = said.split_whitespace().collect();
        let room = columns.unwrap_or(WIDE).saturating_sub(field("", "").len());
        let mut lines = wrapped(&text::line(&words.join(" ")), Some(room.max(1)));
        if lines.len() > MAX_LINES {
            lines.truncate(MAX_LINES);
            lines.push("…".to_owned());
        }
        for (at, line) in lines.iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            text.line(field(name, line.trim_start()));
        }
    }
}

/// Adds what a session that is over left running.
pub fn add_survivors(text: &mut Lines, session: &SessionView) {
    let now = clock::wall();
    let survivors = session.survivors.as_deref().unwrap_or_default();
    for survivor in survivors {
        text.line(field("still runs", &named(survivor, now)));
    }
    if let Some(why) = &session.survivors_unsure {
        text.line(field("still runs", &format!("perhaps more: {why}")));
    }
    if survivors.iter().any(|one| one.can_end) {
        let command = format!("tenure end {} --kill-survivors", session.handle);
        text.line(field("", &format!("a person can end it with `{command}`")));
    }
}

/// What becomes of a message.
pub fn told(told: &SentMessage) -> String {
    let handle = &told.session.handle;
    match (&told.delivery, told.session.ended_at) {
        (Delivery::Delivered, _) => {
            format!("delivered: {handle} will see it at its next prompt or tool call")
        }
        (Delivery::Waiting, Some(_)) => {
            let state = told.session.state;
            format!("waiting: {handle} is {state}; it will see it when it is resumed")
        }
        (Delivery::Waiting, None) => format!(
            "waiting: tenure cannot tell whether {handle} is alive; it will see it when it reports again"
        ),
    }
}

/// The log, one event a line.
pub fn events(events: &[EventView]) -> Lines {
    if events.is_empty() {
        return "no events".into();
    }
    let (zone, now) = (clock::zone(), now());
    let mut text = Lines::default();
    for event in events {
        let time = zone.short(event.at, now);
        let session = event
            .session
            .as_ref()
            .map_or("-", |name| name.handle.as_str());
        let mut line = format!(
            "{:>6}  {time:<12}  {:<18}  {session}",
            event.cursor, event.kind
        );
        if let Some(key) = &event.key {
            line.push_str(&format!("  {key}"));
        }
        if let Some(epoch) = event.epoch {
            line.push_str(&format!(" (epoch {epoch})"));
        }
        line.push_str(&format!("  {}: {}", event.mechanism, event.evidence));
        if let Some(actor) = &event.actor {
            line.push_str(&format!("; by {}", actor.handle));
        }
        if let Some(reason) = &event.reason {
            line.push_str(&format!("; reason: {}", text::quoted(reason)));
        }
        text.line(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_process_of_a_session_is_counted() {
        assert_eq!(life(1), "");
        assert_eq!(life(3), ", third process of this session");
        assert_eq!(life(12), ", 12th process of this session");
        assert_eq!(life(22), ", 22nd process of this session");
    }
}
