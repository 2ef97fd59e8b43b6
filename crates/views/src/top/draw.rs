//! The lines of the screen: the counts, the table, what is below it, and the keys.
//!
//! On the first screen a person reads without a key who waits for them, what died and how to get it back, who holds
//! what since when and who waits for it, and who is in whose way. The table gets the room that it needs, as long as a
//! third is left for what is below it.

use std::collections::HashMap;
use std::time::Duration;

use tenure_core::text;
use tenure_core::time::{Span, Timestamp};
use tenure_service::view::{ClaimView, SessionView};
use unicode_width::UnicodeWidthStr;

use super::act::Act;
use super::source::{Details, Fleet};
use super::state::{Mode, Row, ShownSession, Top, question_lines};
use crate::colour::{chosen, paint};
use crate::columns::{Cell, Column, column, cut, cut_start, fitted, wrapped};
use crate::details;
use crate::lines::Lines;
use crate::screen::Size;
use crate::sessions::{counted, notes, rows};
use crate::standing::age;
use crate::timeline;
use crate::tree::Branch;

/// What stands before each row.
const GUTTER: usize = 2;
/// How much room what is typed has at least.
const TYPED: usize = 20;
/// The longest time between two drawings.
const AT_LEAST_EVERY: Duration = Duration::from_secs(60);

/// A line below the first, with the session whose row it is.
#[derive(Default)]
struct Line {
    text: String,
    id: Option<String>,
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self { text, id: None }
    }
}

/// All lines of the screen, from the top.
pub fn frame(top: &Top, size: Size, now: Timestamp) -> Vec<String> {
    let mut lines = vec![head(top, now)];
    let room = size.rows.saturating_sub(2);
    match (&top.fleet, &top.mode) {
        (None, _) => lines.push("reading the store".to_owned()),
        (Some(_), Mode::Question { question, .. }) => {
            let all = question_lines(question, size.columns);
            lines.extend(all.iter().map(|said| line(said)));
        }
        (Some(fleet), _) => {
            let body = body(top, fleet, size.columns, room, now);
            lines.extend(body.into_iter().map(|line| line.text));
        }
    }
    lines.truncate(size.rows.saturating_sub(1));
    lines.resize(size.rows.saturating_sub(1), String::new());
    lines.push(last_line(top, size.columns));
    lines
}

/// The id of the session whose row is on this row of the screen.
pub fn session_at(top: &Top, size: Size, now: Timestamp, row: usize) -> Option<String> {
    let room = size.rows.saturating_sub(2);
    let lines = body(top, top.fleet.as_ref()?, size.columns, room, now);
    lines.into_iter().nth(row.checked_sub(1)?)?.id
}

/// One line, in which nothing from outside does anything.
fn line(text: &str) -> String {
    Lines::from(text).as_str().to_owned()
}

fn lines_of(lines: &Lines) -> Vec<String> {
    lines.as_str().lines().map(str::to_owned).collect()
}

fn branches<'a>(sessions: impl IntoIterator<Item = &'a SessionView>) -> Vec<Branch<'a>> {
    let top = |session| Branch { depth: 0, session };
    sessions.into_iter().map(top).collect()
}

fn head(top: &Top, now: Timestamp) -> String {
    let Some(fleet) = &top.fleet else {
        return "tenure top".to_owned();
    };
    let mut said = counted(&branches(&fleet.sessions), &fleet.unmanaged);
    if !top.filter.is_empty() && top.mode != Mode::Filter {
        said.push_str(&format!("  filter: {}", top.filter));
    }
    if let (Some(trouble), Some(at)) = (&top.trouble, top.read_at) {
        said = format!("{} old: {trouble}  {said}", Span(at.age_at(now)));
    }
    line(&said)
}

fn body(top: &Top, fleet: &Fleet, columns: usize, room: usize, now: Timestamp) -> Vec<Line> {
    let (table, at) = table(top, fleet, columns, now);
    let below = match &top.details {
        Some(shown) => details_of(shown, columns, now),
        None => below(fleet, columns, now),
    };
    let reserved = match &top.details {
        Some(_) => room / 2,
        None => below.len().min(room / 3),
    };
    let height = table
        .len()
        .min(room.saturating_sub(reserved))
        .max(room.min(2));
    let mut lines = window(table, at, height);
    let left = room.saturating_sub(lines.len());
    lines.extend(below.into_iter().take(left).map(Line::from));
    lines
}

/// The table, and which of its lines the cursor is on.
fn table(top: &Top, fleet: &Fleet, columns: usize, now: Timestamp) -> (Vec<Line>, usize) {
    let sessions = top.branches();
    let is_whole = top.filter.is_empty();
    let unmanaged = if is_whole { &fleet.unmanaged[..] } else { &[] };
    if sessions.is_empty() && unmanaged.is_empty() {
        let why = if is_whole {
            "no sessions; run `tenure install`, then start an agent"
        } else {
            "no session matches the filter; press Esc to show all"
        };
        return (vec![line(why).into()], 0);
    }
    let width = columns.saturating_sub(GUTTER).max(1);
    let cells = rows(&sessions, unmanaged, now, false, Some(width));
    let text = fitted(COLUMNS, &cells, Some(width));
    let own = top.chosen().map(|one| one.id.as_str());
    let mut drawn = text.as_str().lines();
    let mut lines: Vec<Line> = drawn
        .next()
        .map(|head| format!("  {head}").into())
        .into_iter()
        .collect();
    let mut at = 0;
    for row in top.rows() {
        match row {
            Row::Group(name) => lines.push(line(&text::name(name)).into()),
            Row::Session(session) => {
                let row = drawn.next().unwrap_or_default();
                let text = if Some(session.id.as_str()) == own {
                    at = lines.len();
                    chosen(&format!("> {row}"))
                } else {
                    format!("  {row}")
                };
                let id = Some(session.id.clone());
                lines.push(Line { text, id });
            }
        }
    }
    lines.extend(drawn.map(|row| Line::from(format!("  {row}"))));
    if fleet.more > 0 {
        let more = fleet.more;
        lines.push(format!("  {more} more; run `tenure ps --limit 0` to see them").into());
    }
    (lines, at)
}

/// As many of these lines as fit below the first one, with the line at the cursor among them.
fn window(mut table: Vec<Line>, at: usize, height: usize) -> Vec<Line> {
    if table.len() <= height {
        return table;
    }
    let rows = height.saturating_sub(1);
    let above = (at + 1).saturating_sub(height).min(table.len() - 1);
    let hidden = table.len() - 1 - above - rows.min(table.len() - 1 - above);
    let mut shown: Vec<Line> = table.drain(..1).collect();
    shown.extend(table.into_iter().skip(above).take(rows));
    if hidden > 0 && at + 1 < height {
        shown.pop();
        shown.push(line(&format!("  … {} more", hidden + 1)).into());
    }
    shown
}

/// What to do about the dead, and who holds what.
fn below(fleet: &Fleet, columns: usize, now: Timestamp) -> Vec<String> {
    let mut lines = vec![String::new()];
    for note in notes(&branches(&fleet.sessions), &fleet.unmanaged) {
        let note = text::line(&note).into_owned();
        lines.extend(wrapped(&note, Some(columns)).iter().map(|one| line(one)));
    }
    if !fleet.claims.is_empty() {
        lines.extend(lines_of(&claims(fleet, columns, now)));
    }
    if lines.len() == 1 { Vec::new() } else { lines }
}

/// As in `ps`, but a state has room for whom it collides with, and gets it from the title.
const COLUMNS: &[Column] = &[
    column("HANDLE", 24, 0),
    column("STATE", 40, 0),
    column("TITLE", 12, 3),
    column("WHERE", 14, 4),
    column("PLACE", 5, 1),
    column("AGE", 4, 5),
    column("HOLDS", 8, 2),
];

/// On a narrow terminal STATE goes first, then WAITING.
const CLAIM_COLUMNS: &[Column] = &[
    column("CLAIM", 20, 0),
    column("STATE", 7, 2),
    column("HOLDER", 14, 0),
    column("SINCE", 5, 0),
    column("WAITING", 14, 1),
];

/// Who holds what since when, and who waits for it; those that somebody waits for first.
fn claims(fleet: &Fleet, columns: usize, now: Timestamp) -> Lines {
    let mut waiting: HashMap<&str, Vec<String>> = HashMap::new();
    for session in &fleet.sessions {
        for wait in session.waits_for.iter().flatten() {
            let said = format!("{} {}", session.handle, age(wait.since, now));
            waiting.entry(&wait.key).or_default().push(said);
        }
    }
    let mut claims: Vec<&ClaimView> = fleet.claims.iter().collect();
    claims.sort_by_key(|claim| !waiting.contains_key(claim.key.as_str()));
    let dash = || "-".to_owned();
    let row = |claim: &&ClaimView| {
        let holder = claim
            .holder
            .as_ref()
            .map_or_else(dash, |one| one.handle.clone());
        let since = claim.acquired_at.map_or_else(dash, |at| age(at, now));
        let waits = waiting.get(claim.key.as_str());
        vec![
            Cell::ending(claim.key.clone(), claim.key.clone()),
            Cell::state(claim.state, claim.state),
            Cell::plain(holder),
            Cell::plain(since),
            Cell::plain(waits.map_or_else(dash, |all| all.join(", "))),
        ]
    };
    let rows: Vec<Vec<Cell>> = claims.iter().map(row).collect();
    fitted(CLAIM_COLUMNS, &rows, Some(columns))
}

fn details_of(shown: &ShownSession, columns: usize, now: Timestamp) -> Vec<String> {
    let mut lines = vec![String::new()];
    if let Some(key) = &shown.key {
        lines.push(line(&format!("history of {key}")));
    }
    match &shown.found {
        None => lines.push(line(&format!("reading {}", shown.handle))),
        Some(Err(said)) => {
            let said = wrapped(&text::line(said), Some(columns));
            lines.extend(said.iter().map(|one| line(one)));
        }
        Some(Ok(found)) => {
            let all = whole(found, columns, now);
            let above = shown.above.min(all.len().saturating_sub(1));
            lines.extend(all.into_iter().skip(above));
        }
    }
    lines
}

/// Everything about a session, newest event first; or who held an item.
fn whole(found: &Details, columns: usize, now: Timestamp) -> Vec<String> {
    if let Some(timeline) = &found.timeline {
        return lines_of(&timeline::holds(&timeline.holds, now, Some(columns)));
    }
    let mut text = details::session(&found.who, false);
    details::add_last_words(&mut text, &found.who.session, Some(columns));
    details::add_survivors(&mut text, &found.who.session);
    let mut lines = lines_of(&text);
    if !found.events.is_empty() {
        lines.push(String::new());
        let events = details::events(&found.events);
        lines.extend(lines_of(&events).into_iter().rev());
    }
    lines
}

/// What the keys do, or what is typed.
fn last_line(top: &Top, columns: usize) -> String {
    match &top.mode {
        Mode::Filter => typed("filter", &top.filter, "", columns),
        Mode::Question { question, .. } if question.questions.is_empty() => {
            line("y allow this one call  n deny  Esc neither")
        }
        Mode::Question { question, text } => {
            let does = format!("answer {}", question.session);
            typed(&does, text, "Enter sends it, Esc does not", columns)
        }
        Mode::Confirm(act, handle) => line(&format!("y/n {}", act.question(handle))),
        Mode::Text {
            act,
            handle,
            what,
            text,
            ..
        } => typed(&act.short(handle), text, what, columns),
        Mode::Keys => match &top.said {
            Some(said) => line(said),
            None => keys(top, columns),
        },
    }
}

/// What is done, and the end of what is typed for it; as long as that is nothing, what it is.
fn typed(does: &str, text: &str, what: &str, columns: usize) -> String {
    let does = cut(&line(does), columns.saturating_sub(TYPED));
    let room = columns.saturating_sub(does.width() + ": _".len());
    let text = cut_start(&line(text), room);
    let hint = if text.is_empty() && !what.is_empty() {
        format!("  ({what})")
    } else {
        String::new()
    };
    format!("{does}: {text}_{hint}")
}

/// As many keys as fit; the way out always.
fn keys(top: &Top, columns: usize) -> String {
    let acts = top.chosen().into_iter().flat_map(Act::for_session);
    let mut all = vec![match top.details {
        Some(_) => "Enter close".to_owned(),
        None => "Enter details".to_owned(),
    }];
    all.extend(acts.map(|act| {
        let (key, what) = act.key();
        format!("{key} {what}")
    }));
    all.extend(["/ filter", "o group", "v tree", "S sort"].map(str::to_owned));
    let quit = "q quit";
    let mut said = String::new();
    for one in &all {
        if said.len() + one.len() + 2 + quit.len() <= columns {
            said.push_str(one);
            said.push_str("  ");
        }
    }
    said.push_str(quit);
    let faint: Lines = paint(&said, "key").into();
    faint.as_str().to_owned()
}

/// How long until an age that is shown reads differently.
pub fn next_age(top: &Top, now: Timestamp) -> Duration {
    let Some(fleet) = &top.fleet else {
        return AT_LEAST_EVERY;
    };
    let of_session = |one: &SessionView| {
        let stalled = (one.state == "stalled").then_some(one.last_seen_at);
        let waits = one.waits_for.iter().flatten().map(|wait| wait.since);
        let own = [
            Some(one.started_at),
            one.activity_since,
            one.ended_at,
            stalled,
        ];
        own.into_iter().flatten().chain(waits).collect::<Vec<_>>()
    };
    let sessions = fleet.sessions.iter().flat_map(of_session);
    let claims = fleet.claims.iter().filter_map(|claim| claim.acquired_at);
    let read_at = top.trouble.as_ref().and(top.read_at);
    let all = sessions.chain(claims).chain(read_at);
    all.map(|at| until_next(at.age_at(now)))
        .fold(AT_LEAST_EVERY, Duration::min)
}

/// How long until [`Span`] shows an age differently.
fn until_next(age: Duration) -> Duration {
    let unit = match age.as_secs() {
        0..60 => 1,
        60..86_400 => 60,
        _ => 3_600,
    };
    let unit = Duration::from_secs(unit);
    let past = age.as_millis() % unit.as_millis();
    unit.saturating_sub(Duration::from_millis(u64::try_from(past).unwrap_or(0)))
}

#[cfg(test)]
mod tests;
