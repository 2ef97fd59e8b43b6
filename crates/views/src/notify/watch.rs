//! Looking again whenever the store changes, and handing each event on once, in order.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use tenure_app::open::Context;
use tenure_app::watch::{Next, WatchEnd, on_change, serve_on};
use tenure_core::event::EventFilter;
use tenure_core::id::Cursor;
use tenure_core::notification::Reason;
use tenure_core::time::Timestamp;
use tenure_host::clock;
use tenure_service::answer::{Class, Problem};
use tenure_service::view::{EventView, SessionView};
use tenure_service::{ListRequest, PAGE};

use super::edges::{States, of_entry, reason_of};
use super::event::{Notification, Subject};
use super::rule::REMINDER;

/// The shortest time between two looks.
const REST: Duration = Duration::from_millis(100);
/// The same for notifications: nobody reads them faster.
const CALM: Duration = Duration::from_millis(500);
/// The longest: an agent may ask without an event, and a limit ends by itself.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// How many processes are watched for their exit at once.
const MAX_PROCESSES: usize = 256;
/// How long the store must be away to be reported: a server that restarts is back sooner.
const AWAY_AFTER: Duration = Duration::from_secs(30);

/// Which sessions matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchScope {
    All,
    /// The one with this id.
    Session(String),
    /// Those in this repository.
    Repo(String),
    /// The one with this id, and those that were started in its process tree.
    Family(String),
    /// Those of this machine.
    Machine,
}

/// A fault of tenure's own that goes on, and when it was last reported.
#[derive(Debug, Clone, Copy, Default)]
struct Outage {
    began: Option<Timestamp>,
    told: Option<Timestamp>,
}

impl Outage {
    /// When it began, if that is to be reported now: after a while, and then once a day.
    fn news(&mut self, began: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let Some(began) = began else {
            *self = Self::default();
            return None;
        };
        self.began = Some(began);
        let is_news = self.told.is_none_or(|told| told.age_at(now) >= REMINDER);
        let is_due = is_news && began.age_at(now) >= AWAY_AFTER;
        if is_due {
            self.told = Some(now);
        }
        is_due.then_some(began)
    }
}

/// The sessions that were seen, and the place in the log.
struct Watch {
    on: Vec<Reason>,
    scope: WatchScope,
    states: States,
    cursor: Cursor,
    /// The sessions of events, by id; none for one that does not matter.
    known: HashMap<String, Option<Subject>>,
}

/// Hands each event on, until `emit` ends it, a signal comes or the reader of stdout leaves. `ready` is called after the
/// first look.
pub fn watch<E: From<Problem>>(
    context: &mut Context,
    on: &[Reason],
    scope: &WatchScope,
    ready: impl FnOnce(),
    mut emit: impl FnMut(&Context, Notification) -> Result<bool, E>,
) -> Result<WatchEnd<()>, E> {
    let mut watch = Watch::begin(context, on, scope)?;
    let mut ready = Some(ready);
    on_change(context, REST, |context| {
        let sessions = list(context)?;
        for event in watch.look(context, &sessions)? {
            if !emit(context, event)? {
                return Ok(Next::Done(()));
            }
        }
        if let Some(ready) = ready.take() {
            ready();
        }
        let processes = context.service().open_processes(MAX_PROCESSES);
        Ok(Next::Again {
            processes: processes.map_err(Problem::from)?.value,
            limit: AT_LEAST_EVERY,
        })
    })
}

/// A watch of a process that stays when the store does not answer, which is an event too.
pub struct ResidentWatch {
    watch: Watch,
    store: Outage,
    keeper: Outage,
}

impl ResidentWatch {
    pub fn begin(
        context: &mut Context,
        on: &[Reason],
        scope: &WatchScope,
    ) -> Result<Self, Problem> {
        Ok(Self {
            watch: Watch::begin(context, on, scope)?,
            store: Outage::default(),
            keeper: Outage::default(),
        })
    }

    /// What happened since the last look; `sessions` is what the service lists now.
    pub fn look(
        &mut self,
        context: &mut Context,
        sessions: &[SessionView],
    ) -> Result<Vec<Notification>, Problem> {
        let mut events = self.watch.look(context, sessions)?;
        let now = clock::wall();
        self.store.news(None, now);
        // A keeper without a session to answer for ends by itself.
        let is_needed = |one: &SessionView| one.host.is_none() && one.ended_at.is_none();
        let missing = context.keeper_missing_since();
        let missing = missing.filter(|_| sessions.iter().any(is_needed));
        let began = self.keeper.news(missing, now);
        events.extend(began.and_then(|began| self.outage(Reason::Keeper, began)));
        Ok(events)
    }

    /// The same when the store does not answer.
    pub fn away(&mut self, problem: &Problem) -> Option<Notification> {
        if problem.class != Class::Store {
            return None;
        }
        let now = clock::wall();
        let began = self.store.news(self.store.began.or(Some(now)), now)?;
        let mut event = self.outage(Reason::Store, began)?;
        event.why = Some(problem.message.clone());
        Some(event)
    }

    fn outage(&self, reason: Reason, began: Timestamp) -> Option<Notification> {
        let is_wanted = self.watch.on.contains(&reason);
        is_wanted.then(|| Notification::new(reason.as_str(), began, None))
    }
}

/// Hands each event on like [`watch`], and goes on while the store does not answer. With `has_reader` it ends when its
/// output is not read any more.
pub fn stand(
    context: &mut Context,
    (on, scope): (&[Reason], &WatchScope),
    has_reader: bool,
    ready: impl FnOnce(),
    emit: impl Fn(&Context, &Notification),
) -> Result<WatchEnd<()>, Problem> {
    let standing = RefCell::new(ResidentWatch::begin(context, on, scope)?);
    let mut ready = Some(ready);
    let look = |context: &mut Context| {
        let sessions = list(context)?;
        for event in standing.borrow_mut().look(context, &sessions)? {
            emit(context, &event);
        }
        if let Some(ready) = ready.take() {
            ready();
        }
        let processes = context.service().open_processes(MAX_PROCESSES)?.value;
        Ok(Next::Again {
            processes,
            limit: AT_LEAST_EVERY,
        })
    };
    serve_on(context, CALM, has_reader, look, |context, problem| {
        if problem.class != Class::Store {
            return Err(problem);
        }
        if let Some(event) = standing.borrow_mut().away(&problem) {
            emit(context, &event);
        }
        Ok(AT_LEAST_EVERY)
    })
}

/// The list proves deaths, and what it finds is in the log afterwards.
fn list(context: &mut Context) -> Result<Vec<SessionView>, Problem> {
    let listed = context.service().list(&ListRequest::default())?;
    Ok(listed.value.items)
}

/// The end of the log.
fn newest(context: &mut Context) -> Result<Cursor, Problem> {
    let filter = EventFilter {
        limit: 1,
        ..EventFilter::default()
    };
    let last = context.service().log(&filter, None)?.value.items;
    Ok(Cursor(last.last().map_or(0, |event| event.cursor)))
}

fn page(context: &mut Context, after: Cursor) -> Result<Vec<EventView>, Problem> {
    let filter = EventFilter {
        after: Some(after),
        limit: PAGE,
        ..EventFilter::default()
    };
    Ok(context.service().log(&filter, None)?.value.items)
}

impl Watch {
    fn begin(context: &mut Context, on: &[Reason], scope: &WatchScope) -> Result<Self, Problem> {
        Ok(Self {
            on: on.to_vec(),
            scope: scope.clone(),
            states: States::default(),
            cursor: newest(context)?,
            known: HashMap::new(),
        })
    }

    /// What happened since the last look, oldest first. If the store fails on the way, the next look finds it again.
    fn look(
        &mut self,
        context: &mut Context,
        sessions: &[SessionView],
    ) -> Result<Vec<Notification>, Problem> {
        self.remember(sessions);
        let mut events = Vec::new();
        let mut cursor = self.cursor;
        loop {
            let page = page(context, cursor)?;
            let is_full = page.len() == PAGE;
            for entry in &page {
                cursor = Cursor(entry.cursor);
                if let Some(reason) = reason_of(entry).filter(|reason| self.on.contains(reason))
                    && let Some(session) = self.subject(context, entry)?
                {
                    events.push(of_entry(entry, reason, session, &page));
                }
            }
            if !is_full {
                break;
            }
        }
        // Nothing fails from here on.
        self.cursor = cursor;
        let states = self.states.changes(sessions, clock::wall());
        let wanted = states.into_iter().filter(|event| {
            let id = event.session.as_ref().map(|session| &session.id);
            let matters = id.is_some_and(|id| self.known.get(id).is_some_and(Option::is_some));
            matters
                && event
                    .reason()
                    .is_some_and(|reason| self.on.contains(&reason))
        });
        events.extend(wanted);
        events.sort_by_key(|event| event.at);
        Ok(events)
    }

    fn remember(&mut self, sessions: &[SessionView]) {
        for session in sessions {
            let subject = self.matters(session).then(|| Subject::from(session));
            self.known.insert(session.id.clone(), subject);
        }
    }

    fn matters(&self, session: &SessionView) -> bool {
        match &self.scope {
            WatchScope::All => true,
            WatchScope::Session(id) => session.id == *id,
            WatchScope::Repo(repo) => session.repo.as_ref() == Some(repo),
            WatchScope::Machine => session.host.is_none(),
            WatchScope::Family(id) => {
                let parent = session.parent.as_ref();
                let is_child = |parent: &String| {
                    let family = self.known.values().flatten();
                    let mut named = family.filter(|known| known.handle == *parent);
                    named.next().is_some()
                };
                session.id == *id || parent.is_some_and(is_child)
            }
        }
    }

    /// The session of an entry of the log, which may have ended before it was seen; none if it does not matter.
    fn subject(
        &mut self,
        context: &mut Context,
        entry: &EventView,
    ) -> Result<Option<Option<Subject>>, Problem> {
        let Some(name) = &entry.session else {
            return Ok((self.scope == WatchScope::All).then_some(None));
        };
        if !self.known.contains_key(&name.id) {
            match context.service().show(&name.id).map_err(Problem::from) {
                Ok(shown) => self.remember(std::slice::from_ref(&shown.value.session)),
                Err(problem) if problem.class == Class::Store => return Err(problem),
                Err(_) => {}
            }
        }
        let known = self.known.get(&name.id).cloned().flatten();
        Ok(known.map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_v20_an_outage_is_reported_after_half_a_minute_once_a_day_and_again_when_it_comes_back() {
        let at = |seconds: u64| Timestamp(1_000_000_000).plus(Duration::from_secs(seconds));
        let mut away = Outage::default();
        let began = Some(at(0));
        assert_eq!(away.news(began, at(0)), None);
        assert_eq!(away.news(began, at(29)), None);
        assert_eq!(away.news(began, at(30)), began);
        assert_eq!(away.news(began, at(35)), None);
        assert_eq!(away.news(began, at(30 + REMINDER.as_secs())), began);
        assert_eq!(away.news(None, at(100_000)), None);
        assert_eq!(away.news(Some(at(100_010)), at(100_020)), None, "it is new");
        assert!(away.news(Some(at(100_010)), at(100_040)).is_some());
    }
}
