//! What is shown and what the person chose, without a terminal: keys become effects.
//!
//! The cursor stays on its session wherever that moves, and on its row when that session is gone. While one session is
//! shown in full, acts are for that one, and the rows keep their order: who looks at a session changes what it is to
//! them, and the list must not move under their hands.

use std::collections::VecDeque;

use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_service::answer::Problem;
use tenure_service::view::SessionView;

use super::Left;
use super::act::{Act, Asks};
use super::keys::Key;
use super::source::{Ask, Details, Fleet};
use crate::hints::command_line;
use crate::sessions::{holds, whereabouts};
use crate::standing::doing;

/// How far a page goes.
const PAGE: isize = 10;

/// What the last line is for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Keys,
    /// The filter is typed.
    Filter,
    /// A yes is awaited.
    Confirm(Act, String),
    /// What the act needs is typed.
    Text {
        act: Act,
        handle: String,
        /// What the text is.
        what: &'static str,
        text: String,
    },
}

/// One session in full, as far as it was read.
#[derive(Debug)]
pub struct Shown {
    id: String,
    pub handle: String,
    pub found: Option<Result<Box<Details>, String>>,
    /// How many lines of it are above the first that is shown.
    pub above: usize,
    /// The ids of all sessions, in the order that they keep meanwhile.
    order: Vec<String>,
}

/// A line of the table.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    Group(&'a str),
    Session(&'a SessionView),
}

#[derive(Debug, Default)]
pub struct Top {
    pub fleet: Option<Fleet>,
    /// When the fleet was read.
    pub read_at: Option<Timestamp>,
    /// Why the store cannot be read now.
    pub trouble: Option<String>,
    pub filter: String,
    pub is_grouped: bool,
    pub mode: Mode,
    pub details: Option<Shown>,
    /// What became of the last act.
    pub said: Option<String>,
    /// The session that was chosen; before a key was pressed, the first row.
    chosen: Option<String>,
    /// What was asked for and is not done yet, in that order.
    doing: VecDeque<String>,
    /// Whether the last key was a `q` that did not end it.
    wants_out: bool,
}

/// What a key or an event asks of the outside.
pub enum Effect {
    Ask(Ask),
    /// Stop this process until the shell continues it.
    Stop,
    Leave(Left),
}

impl Top {
    /// The sessions in the order in which they are shown.
    pub fn sessions(&self) -> Vec<&SessionView> {
        let all = self.fleet.iter().flat_map(|fleet| &fleet.sessions);
        let mut kept: Vec<&SessionView> = all.filter(|one| self.keeps(one)).collect();
        if let Some(shown) = &self.details {
            // What is new comes last.
            let place = |one: &&SessionView| shown.order.iter().position(|id| *id == one.id);
            kept.sort_by_cached_key(|one| place(one).unwrap_or(usize::MAX));
        }
        if self.is_grouped {
            let mut groups: Vec<&str> = Vec::new();
            for one in &kept {
                if !groups.contains(&group(one)) {
                    groups.push(group(one));
                }
            }
            kept.sort_by_key(|one| groups.iter().position(|known| *known == group(one)));
        }
        kept
    }

    /// The same with a line above each repository, if they are grouped.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let (mut rows, mut last) = (Vec::new(), None);
        for one in self.sessions() {
            if self.is_grouped && last != Some(group(one)) {
                last = Some(group(one));
                rows.push(Row::Group(group(one)));
            }
            rows.push(Row::Session(one));
        }
        rows
    }

    fn keeps(&self, session: &SessionView) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let wanted = self.filter.to_lowercase();
        let title = session.title.clone().unwrap_or_default();
        let words = [
            session.handle.clone(),
            title,
            whereabouts(session),
            doing(session, Timestamp(0)),
            holds(session, true),
        ];
        words
            .iter()
            .any(|text| text.to_lowercase().contains(&wanted))
    }

    /// The session that is shown in full, or else the one under the cursor.
    pub fn chosen(&self) -> Option<&SessionView> {
        if let Some(shown) = &self.details {
            let mut all = self.fleet.iter().flat_map(|fleet| &fleet.sessions);
            return all.find(|one| one.id == shown.id);
        }
        let sessions = self.sessions();
        let at = self.position(&sessions);
        sessions.get(at).copied()
    }

    fn position(&self, sessions: &[&SessionView]) -> usize {
        let chosen = self.chosen.as_ref();
        let found = sessions.iter().position(|one| Some(&one.id) == chosen);
        found.unwrap_or(0)
    }

    /// Takes what the store has now.
    pub fn take(&mut self, fleet: Fleet, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        let at = self.position(&self.sessions());
        if let (Some(shown), Some(before)) = (&self.details, &self.fleet) {
            if !fleet.sessions.iter().any(|one| one.id == shown.id) {
                self.said = Some(format!("{} is not in the list any more", shown.handle));
                self.details = None;
            } else if changed(&before.sessions, &fleet.sessions, &shown.handle) {
                effects.push(Effect::Ask(Ask::Details(shown.handle.clone())));
            }
        }
        (self.fleet, self.read_at, self.trouble) = (Some(fleet), Some(now), None);
        self.stay_on_row(at);
        effects
    }

    /// Chooses this row if the session that was chosen is gone.
    fn stay_on_row(&mut self, at: usize) {
        let sessions = self.sessions();
        let is_there = |id: &String| sessions.iter().any(|one| one.id == *id);
        if self.chosen.as_ref().is_none_or(is_there) {
            return;
        }
        let row = sessions.get(at).or(sessions.last());
        if let Some(id) = row.map(|one| one.id.clone()) {
            self.chosen = Some(id);
        }
    }

    /// A store that was never read ends it; one that is away later is awaited.
    pub fn take_problem(&mut self, problem: Problem) -> Result<Vec<Effect>, Problem> {
        if self.fleet.is_none() {
            return Err(problem);
        }
        self.trouble = Some(problem.message);
        Ok(Vec::new())
    }

    pub fn take_details(
        &mut self,
        handle: &str,
        found: Result<Box<Details>, Problem>,
    ) -> Vec<Effect> {
        if let Some(shown) = self.details.as_mut().filter(|one| one.handle == handle) {
            shown.found = Some(found.map_err(|problem| told(&problem)));
        }
        Vec::new()
    }

    pub fn take_done(&mut self, done: Result<String, Problem>) -> Vec<Effect> {
        self.doing.pop_front();
        self.said = Some(done.unwrap_or_else(|problem| told(&problem)));
        Vec::new()
    }

    pub fn press(&mut self, key: Key) -> Vec<Effect> {
        if key == Key::Ctrl('z') {
            return vec![Effect::Stop];
        }
        if let Key::Pasted(c) = key {
            self.paste(c);
            return Vec::new();
        }
        match std::mem::take(&mut self.mode) {
            Mode::Keys => self.choose(key),
            Mode::Filter => {
                self.type_filter(key);
                Vec::new()
            }
            Mode::Confirm(act, handle) => match key {
                Key::Char('y' | 'Y') => self.perform(act, handle, String::new()),
                _ => Vec::new(),
            },
            Mode::Text {
                act,
                handle,
                what,
                mut text,
            } => {
                match key {
                    Key::Escape => return Vec::new(),
                    Key::Enter if text.trim().is_empty() => return Vec::new(),
                    Key::Enter => return self.perform(act, handle, text),
                    other => edit(&mut text, other),
                }
                self.mode = Mode::Text {
                    act,
                    handle,
                    what,
                    text,
                };
                Vec::new()
            }
        }
    }

    /// What is pasted is text where one is typed, and nothing elsewhere.
    fn paste(&mut self, c: char) {
        match &mut self.mode {
            Mode::Text { text, .. } => text.push(c),
            Mode::Filter => self.filter.push(c),
            Mode::Keys | Mode::Confirm(..) => {}
        }
    }

    /// Ends it; while something is being done, only when asked twice.
    fn quit(&mut self, is_again: bool) -> Vec<Effect> {
        match self.doing.front() {
            Some(doing) if !is_again => {
                self.said = Some(format!("still doing: {doing}; press q again to quit"));
                self.wants_out = true;
                Vec::new()
            }
            _ => vec![Effect::Leave(Left::Quit)],
        }
    }

    fn choose(&mut self, key: Key) -> Vec<Effect> {
        self.said = None;
        let wanted_out = std::mem::take(&mut self.wants_out);
        match key {
            Key::Char('q') => return self.quit(wanted_out),
            Key::Up | Key::Char('k') => return self.move_by(-1),
            Key::Down | Key::Char('j') => return self.move_by(1),
            Key::PageUp | Key::PageDown => {
                let pages = if key == Key::PageUp { -PAGE } else { PAGE };
                match &mut self.details {
                    Some(shown) => shown.above = shown.above.saturating_add_signed(pages),
                    None => return self.move_by(pages),
                }
            }
            Key::Home => return self.move_by(isize::MIN),
            Key::End => return self.move_by(isize::MAX),
            Key::Enter if self.details.is_some() => self.details = None,
            Key::Enter => return self.show_details(),
            Key::Escape if self.details.is_some() => self.details = None,
            Key::Escape => self.filter.clear(),
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char('o') => self.is_grouped = !self.is_grouped,
            Key::Char(key) => return self.begin(key),
            Key::Backspace | Key::Ctrl(_) | Key::Pasted(_) => {}
        }
        Vec::new()
    }

    fn move_by(&mut self, rows: isize) -> Vec<Effect> {
        let sessions = self.sessions();
        let last = sessions.len().saturating_sub(1);
        let at = self.position(&sessions).saturating_add_signed(rows);
        let id = sessions.get(at.min(last)).map(|one| one.id.clone());
        self.chosen = id;
        match self.details.take() {
            Some(shown) => self.show(shown.order),
            None => Vec::new(),
        }
    }

    fn show_details(&mut self) -> Vec<Effect> {
        let all = self.fleet.iter().flat_map(|fleet| &fleet.sessions);
        let order = all.map(|one| one.id.clone()).collect();
        self.show(order)
    }

    /// Shows the session under the cursor in full; meanwhile all keep this order.
    fn show(&mut self, order: Vec<String>) -> Vec<Effect> {
        let Some((id, handle)) = self.fix() else {
            return Vec::new();
        };
        self.chosen = Some(id.clone());
        self.details = Some(Shown {
            id,
            handle: handle.clone(),
            found: None,
            above: 0,
            order,
        });
        vec![Effect::Ask(Ask::Details(handle))]
    }

    /// The id and the handle of the chosen session.
    fn fix(&self) -> Option<(String, String)> {
        let session = self.chosen()?;
        Some((session.id.clone(), session.handle.clone()))
    }

    /// Begins an act with the chosen session, on which the cursor stays from now on.
    fn begin(&mut self, key: char) -> Vec<Effect> {
        let (Some(act), Some(session)) = (Act::of_key(key), self.chosen()) else {
            return Vec::new();
        };
        let (id, handle) = (session.id.clone(), session.handle.clone());
        let refusal = match self.doing.front() {
            // It would end with this list.
            Some(doing) if act == Act::Resume => Some(format!("still doing: {doing}")),
            _ => act.refusal(session),
        };
        self.chosen = Some(id);
        if let Some(why) = refusal {
            self.said = Some(format!("cannot {}: {why}", act.short(&handle)));
            return Vec::new();
        }
        match act.asks() {
            Asks::Nothing => return self.perform(act, handle, String::new()),
            Asks::Yes => self.mode = Mode::Confirm(act, handle),
            Asks::Text(what) => {
                self.mode = Mode::Text {
                    act,
                    handle,
                    what,
                    text: String::new(),
                }
            }
        }
        Vec::new()
    }

    fn perform(&mut self, act: Act, handle: String, text: String) -> Vec<Effect> {
        if act == Act::Resume {
            return vec![Effect::Leave(Left::Resume(handle))];
        }
        self.said = Some(format!("{handle}: …"));
        self.doing.push_back(act.short(&handle));
        vec![Effect::Ask(Ask::Do { act, handle, text })]
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Enter => {}
            Key::Escape => self.filter.clear(),
            other => {
                edit(&mut self.filter, other);
                self.mode = Mode::Filter;
            }
        }
    }
}

fn edit(text: &mut String, key: Key) {
    match key {
        Key::Char(c) => text.push(c),
        Key::Backspace => drop(text.pop()),
        Key::Ctrl('u') => text.clear(),
        _ => {}
    }
}

/// The repository of a session, or its directory.
fn group(session: &SessionView) -> &str {
    session.repo.as_deref().unwrap_or(&session.dir)
}

/// A failure and its first way out, on one line.
fn told(problem: &Problem) -> String {
    let message = text::line(&problem.message);
    match problem.shown_hints().first() {
        Some(hint) => format!("error: {message}; {}", command_line(hint)),
        None => format!("error: {message}"),
    }
}

/// Whether more than the time changed what is known about a session.
fn changed(before: &[SessionView], now: &[SessionView], handle: &str) -> bool {
    let lasting = |all: &[SessionView]| {
        let session = all.iter().find(|one| one.handle == handle)?;
        let mut value = serde_json::to_value(session).ok()?;
        for part in ["why", "last_seen_at", "lease_until"] {
            value[part].take();
        }
        Some(value)
    };
    lasting(before) != lasting(now)
}

#[cfg(test)]
mod tests;
