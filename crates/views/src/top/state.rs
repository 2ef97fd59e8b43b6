//! What is shown and what the person chose, without a terminal: keys become effects.
//!
//! The cursor stays on its session wherever that moves, and on its row when that session is gone. While one session is
//! shown in full, acts are for that one, and the rows keep their order: who looks at a session changes what it is to
//! them, and the list must not move under their hands.

mod question;

use std::collections::VecDeque;

use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_elsewhere::answers::QuestionView;
use tenure_service::answer::Problem;
use tenure_service::view::SessionView;

use super::TopExit;
use super::act::{Act, Asks, choices};
use super::keys::Key;
use super::source::{Ask, Details, DetailsQuery, Fleet};
use crate::sessions::{holds, whereabouts};
use crate::standing::doing;
use crate::tree::{Branch, arranged};

pub use question::question_lines;

/// How far a page goes, and a notch of the wheel.
const PAGE: isize = 10;
const NOTCH: isize = 3;

/// What the last line is for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Keys,
    /// The filter is typed.
    Filter,
    /// A yes is awaited.
    Confirm(Act, String),
    /// An answer to a question that is shown whole is awaited.
    Question {
        question: Box<QuestionView>,
        text: String,
    },
    /// What the act needs is typed.
    Text {
        act: Act,
        handle: String,
        /// What the text is.
        what: &'static str,
        text: String,
        /// What Up and Down offer.
        choices: Vec<String>,
        /// The texts before this one.
        before: Vec<String>,
    },
}

/// The order of the sessions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// As every list has it: who needs a person comes first.
    #[default]
    Need,
    Newest,
    Name,
}

/// One session in full, as far as it was read.
#[derive(Debug)]
pub struct ShownSession {
    id: String,
    pub handle: String,
    /// The item whose history is shown instead.
    pub key: Option<String>,
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
    pub is_tree: bool,
    pub sort: Sort,
    pub mode: Mode,
    pub details: Option<ShownSession>,
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
    Leave(TopExit),
}

impl Top {
    /// The sessions in the order in which they are shown.
    pub fn sessions(&self) -> Vec<&SessionView> {
        let branches = self.branches().into_iter();
        branches.map(|branch| branch.session).collect()
    }

    /// The same, each with how deep it stands in the tree.
    pub fn branches(&self) -> Vec<Branch<'_>> {
        let kept = self.kept();
        if self.is_tree {
            return arranged(kept);
        }
        let top = |session| Branch { depth: 0, session };
        kept.into_iter().map(top).collect()
    }

    fn kept(&self) -> Vec<&SessionView> {
        let all = self.fleet.iter().flat_map(|fleet| &fleet.sessions);
        let mut kept: Vec<&SessionView> = all.filter(|one| self.keeps(one)).collect();
        match self.sort {
            Sort::Need => {}
            Sort::Newest => kept.sort_by_key(|one| std::cmp::Reverse(one.started_at.0)),
            Sort::Name => kept.sort_by(|one, other| one.handle.cmp(&other.handle)),
        }
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
            } else if changed(&before.sessions, &fleet.sessions, &shown.handle)
                || shown
                    .key
                    .as_ref()
                    .is_some_and(|key| passed(before, &fleet, key))
            {
                effects.push(Effect::Ask(Ask::Details(shown.wanted())));
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
        wanted: &DetailsQuery,
        found: Result<Box<Details>, Problem>,
    ) -> Vec<Effect> {
        let shown = self.details.as_mut();
        if let Some(shown) = shown.filter(|one| one.wanted() == *wanted) {
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
            Mode::Question { question, text } => self.press_at_question(question, text, key),
            Mode::Confirm(act, handle) => match key {
                Key::Char('y' | 'Y') => self.perform(act, handle, Vec::new()),
                _ => Vec::new(),
            },
            Mode::Text {
                act,
                handle,
                what,
                mut text,
                choices,
                mut before,
            } => {
                match key {
                    Key::Escape => return Vec::new(),
                    Key::Enter if text.trim().is_empty() => return Vec::new(),
                    Key::Enter => {
                        before.push(text);
                        return self.ask(act, handle, before);
                    }
                    Key::Up | Key::Down => choose(&mut text, &choices, key == Key::Down),
                    other => edit(&mut text, other),
                }
                self.mode = Mode::Text {
                    act,
                    handle,
                    what,
                    text,
                    choices,
                    before,
                };
                Vec::new()
            }
        }
    }

    /// What is pasted is text where one is typed, and nothing elsewhere.
    fn paste(&mut self, c: char) {
        match &mut self.mode {
            Mode::Text { text, .. } => text.push(c),
            Mode::Question { question, text } if !question.questions.is_empty() => text.push(c),
            Mode::Filter => self.filter.push(c),
            Mode::Keys | Mode::Confirm(..) | Mode::Question { .. } => {}
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
            _ => vec![Effect::Leave(TopExit::Quit)],
        }
    }

    fn choose(&mut self, key: Key) -> Vec<Effect> {
        self.said = None;
        let wanted_out = std::mem::take(&mut self.wants_out);
        match key {
            Key::Char('q') => return self.quit(wanted_out),
            Key::Up | Key::Char('k') => return self.move_by(-1),
            Key::Down | Key::Char('j') => return self.move_by(1),
            Key::PageUp | Key::PageDown | Key::Wheel(_) => {
                let rows = match key {
                    Key::Wheel(steps) => steps * NOTCH,
                    Key::PageUp => -PAGE,
                    _ => PAGE,
                };
                match &mut self.details {
                    Some(shown) => shown.above = shown.above.saturating_add_signed(rows),
                    None => return self.move_by(rows),
                }
            }
            Key::Home => return self.move_by(isize::MIN),
            Key::End => return self.move_by(isize::MAX),
            Key::Enter if self.details.is_some() => self.details = None,
            Key::Enter => return self.show_details(),
            Key::Escape if self.details.is_some() => self.details = None,
            Key::Escape => self.filter.clear(),
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char('o') => (self.is_grouped, self.is_tree) = (!self.is_grouped, false),
            Key::Char('v') => (self.is_tree, self.is_grouped) = (!self.is_tree, false),
            Key::Char('S') => self.sort_otherwise(),
            Key::Char(key) => return self.begin(key),
            Key::Backspace | Key::Ctrl(_) | Key::Pasted(_) | Key::Click(_) => {}
        }
        Vec::new()
    }

    fn sort_otherwise(&mut self) {
        let (sort, said) = match self.sort {
            Sort::Need => (Sort::Newest, "newest first"),
            Sort::Newest => (Sort::Name, "by name"),
            Sort::Name => (Sort::Need, "who needs you first"),
        };
        self.sort = sort;
        self.said = Some(said.to_owned());
    }

    /// Chooses a row with the mouse; the one that is chosen already is shown in full.
    pub fn click(&mut self, id: &str) -> Vec<Effect> {
        if self.mode != Mode::Keys {
            return Vec::new();
        }
        self.said = None;
        let is_chosen = self.chosen.as_deref() == Some(id);
        self.chosen = Some(id.to_owned());
        match self.details.take() {
            Some(shown) => self.show(shown.order, None),
            None if is_chosen => self.show_details(),
            None => Vec::new(),
        }
    }

    fn move_by(&mut self, rows: isize) -> Vec<Effect> {
        let sessions = self.sessions();
        let last = sessions.len().saturating_sub(1);
        let at = self.position(&sessions).saturating_add_signed(rows);
        let id = sessions.get(at.min(last)).map(|one| one.id.clone());
        self.chosen = id;
        match self.details.take() {
            Some(shown) => self.show(shown.order, None),
            None => Vec::new(),
        }
    }

    fn show_details(&mut self) -> Vec<Effect> {
        let order = self.order();
        self.show(order, None)
    }

    /// The ids of all sessions, in the order that they have now.
    fn order(&self) -> Vec<String> {
        if let Some(shown) = &self.details {
            return shown.order.clone();
        }
        let own = self.kept().into_iter();
        let all = self.fleet.iter().flat_map(|fleet| &fleet.sessions);
        own.chain(all).map(|one| one.id.clone()).collect()
    }

    /// Shows the session under the cursor in full, or who held one of its items; meanwhile all keep this order.
    fn show(&mut self, order: Vec<String>, key: Option<String>) -> Vec<Effect> {
        let Some((id, handle)) = self.fix() else {
            return Vec::new();
        };
        self.chosen = Some(id.clone());
        let shown = ShownSession {
            id,
            handle,
            key,
            found: None,
            above: 0,
            order,
        };
        let wanted = shown.wanted();
        self.details = Some(shown);
        vec![Effect::Ask(Ask::Details(wanted))]
    }

    /// The id and the handle of the chosen session.
    fn fix(&self) -> Option<(String, String)> {
        let session = self.chosen()?;
        Some((session.id.clone(), session.handle.clone()))
    }

    /// Begins an act with the chosen session, on which the cursor stays from now on.
    fn begin(&mut self, key: char) -> Vec<Effect> {
        let Some(act) = Act::of_key(key) else {
            return Vec::new();
        };
        let Some(session) = self.chosen() else {
            // Only a run needs nobody.
            return match act {
                Act::Run => self.ask(act, String::new(), Vec::new()),
                _ => Vec::new(),
            };
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
            Asks::Nothing => return self.perform(act, handle, Vec::new()),
            Asks::Question => return vec![Effect::Ask(Ask::Question(handle))],
            Asks::Yes => self.mode = Mode::Confirm(act, handle),
            Asks::Texts(_) => return self.ask(act, handle, Vec::new()),
        }
        Vec::new()
    }

    /// Asks for the next text of an act, or does it with all of them. The only item that it can be about is not asked for.
    fn ask(&mut self, act: Act, handle: String, before: Vec<String>) -> Vec<Effect> {
        let wanted = match act.asks() {
            Asks::Texts(wanted) => wanted.get(before.len()),
            Asks::Nothing | Asks::Question | Asks::Yes => None,
        };
        let Some((what, of)) = wanted else {
            return self.perform(act, handle, before);
        };
        let mut all = self.fleet.iter().flat_map(|fleet| &fleet.sessions);
        let session = all.find(|one| one.handle == handle);
        let sessions = self.fleet.as_ref().map_or(&[][..], |fleet| &fleet.sessions);
        let choices = choices(*of, session, sessions);
        if act == Act::History && choices.len() == 1 {
            return self.perform(act, handle, choices);
        }
        let text = match act {
            Act::Free | Act::Give | Act::History if before.is_empty() => choices.first().cloned(),
            _ => None,
        };
        self.mode = Mode::Text {
            act,
            handle,
            what,
            text: text.unwrap_or_default(),
            choices,
            before,
        };
        Vec::new()
    }

    fn perform(&mut self, act: Act, handle: String, texts: Vec<String>) -> Vec<Effect> {
        if act == Act::History {
            let order = self.order();
            return self.show(order, texts.into_iter().next());
        }
        if act == Act::Resume {
            return vec![Effect::Leave(TopExit::Resume(handle))];
        }
        self.show_doing(act, &handle);
        vec![Effect::Ask(Ask::Do { act, handle, texts })]
    }

    fn show_doing(&mut self, act: Act, handle: &str) {
        self.said = Some(format!("{handle}: …"));
        self.doing.push_back(act.short(handle));
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

/// The next or the previous of the choices; the first or the last if the text is none of them.
fn choose(text: &mut String, choices: &[String], is_next: bool) {
    let at = choices.iter().position(|one| one == text);
    let at = match (at, is_next) {
        (None, true) => 0,
        (Some(at), true) => (at + 1) % choices.len(),
        (None | Some(0), false) => choices.len().saturating_sub(1),
        (Some(at), false) => at - 1,
    };
    if let Some(one) = choices.get(at) {
        text.clone_from(one);
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

impl ShownSession {
    fn wanted(&self) -> DetailsQuery {
        DetailsQuery {
            handle: self.handle.clone(),
            key: self.key.clone(),
        }
    }
}

/// Whether an item passed to another holder.
fn passed(before: &Fleet, now: &Fleet, key: &str) -> bool {
    let newest = |fleet: &Fleet| {
        let claim = fleet.claims.iter().find(|claim| claim.key == key)?;
        Some((claim.epoch, claim.state))
    };
    newest(before) != newest(now)
}

/// The repository of a session, or its directory.
fn group(session: &SessionView) -> &str {
    session.repo.as_deref().unwrap_or(&session.dir)
}

/// A failure and its first way out, on one line.
fn told(problem: &Problem) -> String {
    let message = text::line(&problem.message);
    match problem.shown_hints().first() {
        Some(hint) => format!("error: {message}; {}", hint.sentence()),
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
