//! The fleet, looked at once for all who follow it.
//!
//! One thread looks when the store changes or a process exits, while somebody follows. Each follower compares the newest
//! state with what it sent last, so nothing is queued for a slow one, and events are read from the log by their cursor.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_app::open::Context;
use tenure_app::watch::{Sleep, watch_signals};
use tenure_core::event::EventFilter;
use tenure_core::id::Cursor;
use tenure_core::ignore::Ignore;
use tenure_core::notification::Reason;
use tenure_core::text;
use tenure_core::time::Timestamp;
use tenure_host::{clock, pause};
use tenure_service::ListRequest;
use tenure_service::answer::Problem;
use tenure_service::view::{EventView, SessionView};
use tenure_views::notify::sender;
use tenure_views::session_list;
use tokio::sync::watch;

use super::private;

/// The shortest time between two looks.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// The longest one while somebody follows: turns stall, and agents without hooks start.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// The same while nobody does.
const IDLE: Duration = Duration::from_secs(3600);
/// While the store is away.
const AWAY: Duration = Duration::from_secs(2);
/// How old a state may be for a new follower, if the store has not changed since.
const FRESH: Duration = Duration::from_secs(1);
/// How many processes are watched at once.
const MAX_WATCHED: usize = 256;
/// How many of the newest events are kept at hand.
const RECENT: usize = 500;

/// A session, and how it is told: made when the first follower is told of it.
#[derive(Debug)]
pub struct FleetRow {
    session: SessionView,
    forms: OnceLock<RowForms>,
}

/// JSON on one line: for those who have the scope `logs`, and for all others.
#[derive(Debug, Clone)]
struct ScopedText {
    full: String,
    /// Without what only `logs` shows, if there is any.
    plain: Option<String>,
}

impl ScopedText {
    fn of(value: &Value) -> Self {
        let mut plain = value.clone();
        private::hide(&mut plain);
        Self {
            full: as_text(value),
            plain: (plain != *value).then(|| as_text(&plain)),
        }
    }

    fn text(&self, logs: bool) -> &str {
        match &self.plain {
            Some(plain) if !logs => plain,
            _ => &self.full,
        }
    }
}

/// An event of the log, as it is sent.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub cursor: u64,
    text: ScopedText,
}

impl EventRow {
    fn of(event: &EventView) -> Self {
        Self {
            cursor: event.cursor,
            text: ScopedText::of(&json!({"v": 1, "event": event})),
        }
    }

    pub fn text(&self, logs: bool) -> &str {
        self.text.text(logs)
    }
}

/// What is made of a row once.
#[derive(Debug)]
struct RowForms {
    text: ScopedText,
    /// What is left of it without what time alone changes.
    lasting: String,
}

impl FleetRow {
    fn of(session: SessionView) -> Arc<Self> {
        let forms = OnceLock::new();
        Arc::new(Self { session, forms })
    }

    fn forms(&self) -> &RowForms {
        self.forms.get_or_init(|| RowForms::of(&self.session))
    }

    pub fn id(&self) -> &str {
        &self.session.id
    }

    pub fn text(&self, logs: bool) -> &str {
        self.forms().text.text(logs)
    }

    pub fn is_as(&self, other: &FleetRow) -> bool {
        self.forms().lasting == other.forms().lasting
    }
}

impl RowForms {
    fn of(session: &SessionView) -> Self {
        let value = serde_json::to_value(session).unwrap_or(Value::Null);
        let text = ScopedText::of(&value);
        let mut lasting = value;
        for part in ["why", "last_seen_at", "lease_until"] {
            lasting[part].take();
        }
        Self {
            text,
            lasting: lasting.to_string(),
        }
    }
}

/// JSON on one line, in which nothing is invisible.
pub fn as_text(value: &Value) -> String {
    text::json(&value.to_string()).into_owned()
}

/// The state of everything at one moment.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// The newest request to look that this answers.
    answers: u64,
    pub rows: Vec<Arc<FleetRow>>,
    pub unmanaged: Value,
    pub counts: Value,
    /// When the look began, and the change counter of the store before it.
    looked: Option<Instant>,
    changes: Option<u64>,
    /// The newest event that it has.
    pub cursor: u64,
    /// The newest events, oldest first.
    pub recent: Arc<Vec<EventRow>>,
    pub at: Option<Timestamp>,
    /// Why it could not be looked at since then.
    pub error: Option<Value>,
}

impl Fleet {
    /// Whether it was looked at a moment ago.
    fn is_fresh(&self) -> bool {
        self.error.is_none() && self.looked.is_some_and(|looked| looked.elapsed() < FRESH)
    }
}

/// Looks once. `before` is the state that is known already.
pub fn look(context: &mut Context, before: &Fleet) -> Result<Fleet, Problem> {
    let newest = context.service().newest_event()?.value;
    let (answer, unmanaged) = session_list::list(context, &ListRequest::default())?;
    let items = answer.value.items;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::from([("all", items.len())]);
    for rank in items.iter().filter_map(|one| one.rank) {
        *counts.entry(rank).or_default() += 1;
    }
    let recent = recent(context, before, newest)?;
    Ok(Fleet {
        answers: before.answers,
        rows: items.into_iter().map(FleetRow::of).collect(),
        unmanaged: json!(unmanaged),
        counts: json!(counts),
        looked: None,
        changes: None,
        cursor: recent
            .last()
            .map_or(newest.0, |event| newest.0.max(event.cursor)),
        recent,
        at: Some(clock::wall()),
        error: None,
    })
}

/// The newest events. They go on from those that are known.
fn recent(
    context: &mut Context,
    before: &Fleet,
    newest: Cursor,
) -> Result<Arc<Vec<EventRow>>, Problem> {
    let is_gap =
        before.at.is_none() || newest.0 < before.cursor || newest.0 > before.cursor + RECENT as u64;
    if is_gap || newest.0 == before.cursor {
        let keeps = newest.0 == before.cursor && before.at.is_some();
        return Ok(if keeps {
            before.recent.clone()
        } else {
            Arc::default()
        });
    }
    let mut recent: Vec<EventRow> = before.recent.as_ref().clone();
    recent.extend(events_after(context, before.cursor, RECENT)?);
    let over = recent.len().saturating_sub(RECENT);
    recent.drain(..over);
    Ok(Arc::new(recent))
}

/// The events after a cursor, oldest first.
pub fn events_after(
    context: &mut Context,
    after: u64,
    limit: usize,
) -> Result<Vec<EventRow>, Problem> {
    let filter = EventFilter {
        after: Some(Cursor(after)),
        limit,
        ..EventFilter::default()
    };
    let found = context.service().log_page(&filter)?.value.items;
    Ok(found.iter().map(EventRow::of).collect())
}

/// The followers, and the way to the thread that looks.
#[derive(Clone)]
pub struct Following {
    newest: watch::Receiver<Arc<Fleet>>,
    wanted: Arc<AtomicU64>,
    followers: Arc<AtomicUsize>,
    ring: Arc<UnixStream>,
}

/// One who follows, for as long as this is kept.
pub struct Follower {
    pub newest: watch::Receiver<Arc<Fleet>>,
    followers: Arc<AtomicUsize>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.followers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Following {
    /// Looks ahead for a page that is about to follow: its first list is ready when its scripts are.
    pub fn expect(&self) {
        if !self.newest.borrow().is_fresh() {
            self.ask();
        }
    }

    /// Asks for a state, and returns the number of the request.
    fn ask(&self) -> u64 {
        let number = self.wanted.fetch_add(1, Ordering::Relaxed) + 1;
        let mut ring = self.ring.as_ref();
        ring.write(&[0]).ignore("it is full of other calls to look");
        number
    }

    /// Follows, from a state on that has every change of the store before this call. None if the store does not say one in
    /// time.
    pub async fn follow(&self, within: Duration) -> Option<(Follower, Arc<Fleet>)> {
        self.followers.fetch_add(1, Ordering::Relaxed);
        let mut follower = Follower {
            newest: self.newest.clone(),
            followers: self.followers.clone(),
        };
        let number = self.ask();
        let fresh = follower.newest.wait_for(|fleet| fleet.answers >= number);
        let fleet = tokio::time::timeout(within, fresh)
            .await
            .ok()?
            .ok()?
            .clone();
        Some((follower, fleet))
    }

    pub fn count(&self) -> usize {
        self.followers.load(Ordering::Relaxed)
    }
}

/// The thread that looks.
pub struct Looking {
    tell: watch::Sender<Arc<Fleet>>,
    wanted: Arc<AtomicU64>,
    followers: Arc<AtomicUsize>,
    rung: UnixStream,
}

/// Makes both ends.
pub fn pair() -> std::io::Result<(Looking, Following)> {
    let (ring, rung) = UnixStream::pair()?;
    ring.set_nonblocking(true)?;
    let (tell, newest) = watch::channel(Arc::default());
    let (wanted, followers) = (Arc::default(), Arc::default());
    let looking = Looking {
        tell,
        wanted: Arc::clone(&wanted),
        followers: Arc::clone(&followers),
        rung,
    };
    let following = Following {
        newest,
        wanted,
        followers,
        ring: Arc::new(ring),
    };
    Ok((looking, following))
}

impl Looking {
    /// Looks whenever something changes, until a signal comes, which it returns.
    pub fn work(self, context: &mut Context) -> Result<i32, Problem> {
        let mut watch = watch_signals(context)?;
        let rung = self.rung.try_clone();
        rung.and_then(|rung| watch.wake_by(rung))
            .ignore("followers see changes when the store changes");
        let notifies = sender::wants_alone(&context.settings.notify, Reason::Died);
        loop {
            let wanted = self.wanted.load(Ordering::Relaxed);
            let is_followed = self.followers.load(Ordering::Relaxed) > 0;
            let is_asked = wanted > self.tell.borrow().answers;
            let seen = changes(context);
            let mut processes = Vec::new();
            let mut limit = IDLE;
            if is_followed || is_asked || notifies {
                limit = AT_LEAST_EVERY;
                // Those who came since the last look need not wait for this one.
                self.answer(wanted, seen);
                let is_seen = self.look(context, wanted, seen);
                if is_seen && notifies {
                    sender::start_for_deaths(context).ignore("the next death tries again");
                }
                if !is_seen {
                    limit = AWAY;
                }
                // Nor those who came during it for the next one.
                self.answer(self.wanted.load(Ordering::Relaxed), changes(context));
                let open = context.service().open_processes(MAX_WATCHED);
                processes = open.map(|open| open.value).unwrap_or_default();
                pause::sleep(AT_MOST_EVERY);
            }
            let mut sleep = Sleep {
                watch: &mut watch,
                processes: &processes,
                seen,
                limit,
            };
            match sleep.something_happens(context) {
                Ok(Some(signal)) => return Ok(signal),
                Ok(None) => {}
                // The next look says so.
                Err(_) => pause::sleep(AT_MOST_EVERY),
            }
        }
    }

    /// Answers requests with the newest state, if it is fresh and the store has not changed since.
    fn answer(&self, wanted: u64, seen: Option<u64>) {
        let newest = self.tell.borrow().clone();
        let is_same = seen.is_some() && newest.changes == seen;
        if wanted > newest.answers && is_same && newest.is_fresh() {
            self.tell.send_replace(Arc::new(Fleet {
                answers: wanted,
                ..newest.as_ref().clone()
            }));
        }
    }

    /// Looks once and tells it; false if the store is away.
    fn look(&self, context: &mut Context, wanted: u64, seen: Option<u64>) -> bool {
        let before = self.tell.borrow().clone();
        let looked = Some(clock::instant());
        let found = look(context, &before);
        let is_seen = found.is_ok();
        let fleet = match found {
            Ok(fleet) => Fleet {
                looked,
                changes: seen,
                ..fleet
            },
            Err(problem) => Fleet {
                error: Some(Value::Object(problem.error())),
                ..before.as_ref().clone()
            },
        };
        self.tell.send_replace(Arc::new(Fleet {
            answers: wanted,
            ..fleet
        }));
        is_seen
    }
}

/// The change counter of the store.
fn changes(context: &mut Context) -> Option<u64> {
    context.service().changes().ok()
}
