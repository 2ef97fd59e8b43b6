//! Looking again whenever the store changes, and handing each event on once, in order.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

use tenure_app::open::Context;
use tenure_app::watch::{Ended, Next, on_change, serve_on};
use tenure_core::event::EventFilter;
use tenure_core::id::Cursor;
use tenure_core::notification::Reason;
use tenure_core::time::Timestamp;
use tenure_host::clock;
use tenure_service::answer::{Class, Problem};
use tenure_service::view::{EventView, SessionView};
use tenure_service::{ListRequest, PAGE};

use super::edges::{States, of_entry, reason_of};
use super::event::{Event, Subject};
use super::rule::REMINDER;

/// The shortest time between two looks.
const REST: Duration = Duration::from_millis(100);
/// The longest: an agent may ask without an event, and a limit ends by itself.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// How many processes are watched for their exit at once.
const MAX_PROCESSES: usize = 256;
/// How long the store must be away to be reported: a server that restarts is back sooner.
const AWAY_AFTER: Duration = Duration::from_secs(30);

/// Which sessions matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
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

/// A store that does not answer.
#[derive(Debug, Clone, Copy)]
struct Away {
    began: Timestamp,
    told: Option<Timestamp>,
}

impl Away {
    fn is_due(&self, now: Timestamp) -> bool {
        let is_news = self.told.is_none_or(|told| told.age_at(now) >= REMINDER);
        is_news && self.began.age_at(now) >= AWAY_AFTER
    }
}

/// The sessions that were seen, and the place in the log.
struct Watch<'a> {
    on: &'a [Reason],
    scope: &'a Scope,
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
    scope: &Scope,
    ready: impl FnOnce(),
    mut emit: impl FnMut(&Context, Event) -> Result<bool, E>,
) -> Result<Ended<()>, E> {
    let mut watch = Watch {
        on,
        scope,
        states: States::default(),
        cursor: newest(context)?,
        known: HashMap::new(),
    };
    let mut ready = Some(ready);
    on_change(context, REST, |context| {
        for event in watch.look(context)? {
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

/// The same for what stays when the store does not answer, which is an event of its own, once a day.
pub fn stand(
    context: &mut Context,
    on: &[Reason],
    scope: &Scope,
    ready: impl FnOnce(),
    emit: impl Fn(&Context, Event),
) -> Result<Ended<()>, Problem> {
    let mut watch = Watch {
        on,
        scope,
        states: States::default(),
        cursor: newest(context)?,
        known: HashMap::new(),
    };
    let mut ready = Some(ready);
    let away: Cell<Option<Away>> = Cell::new(None);
    let look = |context: &mut Context| {
        for event in watch.look(context)? {
            emit(context, event);
        }
        away.set(None);
        if let Some(ready) = ready.take() {
            ready();
        }
        let processes = context.service().open_processes(MAX_PROCESSES)?.value;
        Ok(Next::Again {
            processes,
            limit: AT_LEAST_EVERY,
        })
    };
    serve_on(context, REST, look, |context, problem| {
        if problem.class != Class::Store {
            return Err(problem);
        }
        let now = clock::wall();
        let mut known = away.get().unwrap_or(Away {
            began: now,
            told: None,
        });
        if on.contains(&Reason::Store) && known.is_due(now) {
            let mut event = Event::new(Reason::Store.as_str(), known.began, None);
            event.why = Some(problem.message);
            emit(context, event);
            known.told = Some(now);
        }
        away.set(Some(known));
        Ok(AT_LEAST_EVERY)
    })
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

impl Watch<'_> {
    /// What happened since the last look, oldest first. If the store fails on the way, the next look finds it again.
    fn look(&mut self, context: &mut Context) -> Result<Vec<Event>, Problem> {
        // The list proves deaths, and what it finds is in the log afterwards.
        let listed = context.service().list(&ListRequest::default())?;
        let sessions = listed.value.items;
        self.remember(&sessions);
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
        let states = self.states.changes(&sessions, clock::wall());
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
        match self.scope {
            Scope::All => true,
            Scope::Session(id) => session.id == *id,
            Scope::Repo(repo) => session.repo.as_ref() == Some(repo),
            Scope::Machine => session.host.is_none(),
            Scope::Family(id) => {
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
            return Ok((*self.scope == Scope::All).then_some(None));
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
    fn a_store_is_reported_away_after_half_a_minute_and_once_a_day() {
        let at = |seconds: u64| Timestamp(1_000_000_000).plus(Duration::from_secs(seconds));
        let mut away = Away {
            began: at(0),
            told: None,
        };
        assert!(!away.is_due(at(0)) && !away.is_due(at(29)));
        assert!(away.is_due(at(30)));
        away.told = Some(at(30));
        assert!(!away.is_due(at(35)));
        assert!(away.is_due(at(30 + REMINDER.as_secs())));
    }
}
