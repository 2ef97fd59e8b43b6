//! Where the screen has its data from: threads, so that a store that does not answer leaves the keys alone.
//!
//! One thread sleeps until the store changes and reads the list. One does what a person asks for, and reads the list
//! after that too: what it says was done is then in the list that the next key is about. One reads keys, one receives
//! signals. All of them end with the process. A panic in one of them is passed on.

use std::any::Any;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;
use tenure_app::last_words;
use tenure_app::mirror;
use tenure_app::open::{Context, Purpose, open};
use tenure_app::unmanaged::Unmanaged;
use tenure_app::watch::{Next, WatchEnd, on_change};
use tenure_core::event::EventFilter;
use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::store::ClaimFilter;
use tenure_core::time::Timestamp;
use tenure_elsewhere::answers::PersonsAnswer;
use tenure_elsewhere::answers::reply::{self, QuestionView};
use tenure_host::{clock, pause};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::{ClaimView, EventView, SessionView, TimelineView};
use tenure_service::{ListRequest, TimelineRequest, Whoami};

use super::act::{Act, act, send_answer};
use super::keys::{Key as Pressed, Reader};
use crate::notify::notifier::Notifier;
use crate::session_list;

/// How many sessions and claims are shown.
const MAX_SHOWN: usize = 200;
/// How many events of a session are shown.
const EVENTS: usize = 50;
/// How many processes are watched at once.
const MAX_WATCHED: usize = 256;
/// The shortest time between two looks.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// The longest while a session is in a turn: that a turn was cancelled stands only in its agent's own files.
const IN_TURN_EVERY: Duration = Duration::from_secs(5);
/// The longest otherwise: agents without hooks and windows of tmux do not change the store.
const AT_REST_EVERY: Duration = Duration::from_secs(60);
/// How long the rest of a key may take, so that ESC alone is one.
const KEY_COMES: Duration = Duration::from_millis(50);
/// How soon a store that could not be read is tried again.
const AWAY: Duration = Duration::from_secs(2);

/// Everything that is shown at once.
#[derive(Debug, Default)]
pub struct Fleet {
    pub sessions: Vec<SessionView>,
    pub more: usize,
    pub unmanaged: Vec<Unmanaged>,
    pub claims: Vec<ClaimView>,
}

/// One session in full.
#[derive(Debug)]
pub struct Details {
    pub who: Whoami,
    pub events: Vec<EventView>,
    /// Who held an item, if that was asked for instead.
    pub timeline: Option<TimelineView>,
}

/// What happens while the screen is shown.
pub enum ScreenEvent {
    Fleet(Box<Fleet>),
    /// The store could not be read; it is tried again.
    Away(Box<Problem>),
    Details(DetailsQuery, Result<Box<Details>, Problem>),
    /// What a session asks, if that was asked for.
    Question(Result<Box<QuestionView>, Problem>),
    Did(Result<String, Problem>),
    Keys(Vec<Pressed>),
    Resized,
    /// The process goes on after it was stopped.
    Continued,
    Signal(i32),
    Panicked(Box<dyn Any + Send>),
}

/// What is shown in full: a session, or who held one of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetailsQuery {
    pub handle: String,
    pub key: Option<String>,
}

/// What a person wants of the store.
pub enum Ask {
    Details(DetailsQuery),
    /// What the session of this handle asks.
    Question(String),
    /// The answer to a question, by its id.
    Answer {
        handle: String,
        id: String,
        answer: PersonsAnswer,
    },
    Do {
        act: Act,
        handle: String,
        texts: Vec<String>,
    },
}

/// The other ends of the threads.
pub struct Source {
    pub events: Receiver<ScreenEvent>,
    pub asks: Sender<Ask>,
}

/// From now on signals end nothing by themselves.
pub fn signals() -> Result<Signals, Problem> {
    let caught = Signals::new([SIGWINCH, SIGCONT, SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
    caught.map_err(|error| broken(&error))
}

impl Source {
    pub fn start(mut signals: Signals, keyboard: Option<File>) -> Result<Self, Problem> {
        let (sender, events) = channel();
        let (asks, asked) = channel();
        let to = sender.clone();
        thread(&sender, move || {
            for signal in signals.forever() {
                let event = match signal {
                    SIGWINCH => ScreenEvent::Resized,
                    SIGCONT => ScreenEvent::Continued,
                    other => ScreenEvent::Signal(other),
                };
                // Nobody listens any more when the process ends.
                to.send(event).ignore("top has ended");
            }
        })?;
        let (to, reading) = (sender.clone(), Arc::new(Mutex::new(())));
        let one = Arc::clone(&reading);
        thread(&sender, move || watch(&to, &one))?;
        let to = sender.clone();
        thread(&sender, move || answer(&asked, &to, &reading))?;
        if let Some(keyboard) = keyboard {
            let to = sender.clone();
            thread(&sender, move || read_keys(keyboard, &to))?;
        }
        Ok(Self { events, asks })
    }
}

fn thread(to: &Sender<ScreenEvent>, run: impl FnOnce() + Send + 'static) -> Result<(), Problem> {
    let to = to.clone();
    let started = Builder::new().spawn(move || {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            to.send(ScreenEvent::Panicked(payload))
                .ignore("top has ended");
        }
    });
    started.map(drop).map_err(|error| broken(&error))
}

fn broken(error: &std::io::Error) -> Problem {
    let message = format!("cannot watch: {error}");
    let hint = Hint::verb("ps", "to list sessions once");
    Problem::new(Class::Internal, "internal", message, hint)
}

/// Sends keys until there are no more: then the terminal is gone.
fn read_keys(mut keyboard: File, to: &Sender<ScreenEvent>) {
    let mut reader = Reader::default();
    let mut piece = [0; 256];
    loop {
        let event = if reader.is_in_key() && !comes(&keyboard) {
            ScreenEvent::Keys(reader.end_key())
        } else {
            match keyboard.read(&mut piece) {
                Ok(0) => ScreenEvent::Signal(SIGHUP),
                Ok(count) => ScreenEvent::Keys(reader.read(&piece[..count])),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => ScreenEvent::Signal(SIGHUP),
            }
        };
        let is_end = matches!(event, ScreenEvent::Signal(_));
        if to.send(event).is_err() || is_end {
            return;
        }
    }
}

/// Whether more of a key comes.
fn comes(keyboard: &File) -> bool {
    let mut polled = [PollFd::new(keyboard, PollFlags::IN)];
    let limit = Timespec::try_from(KEY_COMES).ok();
    // What failed here fails again where it is read.
    poll(&mut polled, limit.as_ref()).map_or(true, |count| count > 0)
}

/// Sends the list after each change. A store that cannot be read is tried again.
fn watch(to: &Sender<ScreenEvent>, reading: &Mutex<()>) {
    let mut notifier = Notifier::default();
    loop {
        let ended = open(Purpose::Read).and_then(|mut context| {
            on_change::<(), Problem>(&mut context, AT_MOST_EVERY, |context| {
                let Some(sessions) = send_list(context, to, reading)? else {
                    return Ok(Next::Done(()));
                };
                notifier.look(context, &sessions)?;
                let limit = next_look(&sessions, context, clock::wall());
                Ok(Next::Again {
                    processes: context.service().open_processes(MAX_WATCHED)?.value,
                    limit,
                })
            })
        });
        let event = match ended {
            Ok(WatchEnd::Done(())) => return,
            Ok(WatchEnd::Signal(signal)) => ScreenEvent::Signal(signal),
            Err(problem) => {
                notifier.away(&problem);
                ScreenEvent::Away(Box::new(problem))
            }
        };
        let is_end = matches!(event, ScreenEvent::Signal(_));
        if to.send(event).is_err() || is_end {
            return;
        }
        pause::sleep(AWAY);
    }
}

/// Reads the list and sends it; its sessions, while somebody listens. A list that was read before another is sent
/// before it.
fn send_list(
    context: &mut Context,
    to: &Sender<ScreenEvent>,
    reading: &Mutex<()>,
) -> Result<Option<Vec<SessionView>>, Problem> {
    let _one = reading.lock().unwrap_or_else(PoisonError::into_inner);
    let fleet = read(context)?;
    let sessions = fleet.sessions.clone();
    let is_heard = to.send(ScreenEvent::Fleet(Box::new(fleet))).is_ok();
    Ok(is_heard.then_some(sessions))
}

fn read(context: &mut Context) -> Result<Fleet, Problem> {
    let request = ListRequest {
        limit: MAX_SHOWN,
        ..ListRequest::default()
    };
    let (answer, unmanaged) = session_list::list(context, &request)?;
    let listed = answer.value;
    let filter = ClaimFilter {
        limit: MAX_SHOWN,
        ..ClaimFilter::default()
    };
    Ok(Fleet {
        sessions: listed.items,
        more: listed.more,
        unmanaged,
        claims: context.service().claims(None, &filter)?.value.items,
    })
}

/// When time alone may change a state.
fn next_look(sessions: &[SessionView], context: &Context, now: Timestamp) -> Duration {
    let stalled_after = context.settings.policy.stalled_after;
    let is_in_turn = |one: &SessionView| matches!(one.activity, Some("busy" | "retrying"));
    let mut limit = AT_REST_EVERY;
    for one in sessions.iter().filter(|one| one.ended_at.is_none()) {
        if is_in_turn(one) {
            limit = limit.min(IN_TURN_EVERY);
        }
        let stalls = is_in_turn(one).then(|| one.last_seen_at.plus(stalled_after));
        let moments = [stalls, one.activity_until, one.lease_until];
        let ahead = moments.into_iter().flatten().filter(|at| *at > now);
        limit = ahead.map(|at| now.age_at(at)).fold(limit, Duration::min);
    }
    limit.max(Duration::from_secs(1))
}

/// Answers what a person wants, one after the other.
fn answer(asked: &Receiver<Ask>, to: &Sender<ScreenEvent>, reading: &Mutex<()>) {
    let mut kept: Option<Context> = None;
    for ask in asked {
        let event = match ask {
            Ask::Details(wanted) => {
                let found = with(&mut kept, |context| details(context, &wanted));
                ScreenEvent::Details(wanted, found.map(Box::new))
            }
            Ask::Question(handle) => {
                let found = with(&mut kept, |context| reply::only(context, &handle));
                ScreenEvent::Question(found.map(Box::new))
            }
            Ask::Answer { handle, id, answer } => change(&mut kept, to, reading, |context| {
                send_answer(context, &handle, &id, answer)
            }),
            Ask::Do {
                act: what,
                handle,
                texts,
            } => change(&mut kept, to, reading, |context| {
                act(context, what, &handle, &texts)
            }),
        };
        if to.send(event).is_err() {
            return;
        }
    }
}

/// Changes something, and sends the list as it is then.
fn change(
    kept: &mut Option<Context>,
    to: &Sender<ScreenEvent>,
    reading: &Mutex<()>,
    run: impl FnOnce(&mut Context) -> Result<String, Problem>,
) -> ScreenEvent {
    ScreenEvent::Did(with(kept, |context| {
        let said = run(context);
        mirror::catch_up(context);
        send_list(context, to, reading).ignore("the other thread says why it cannot be read");
        said
    }))
}

/// Does something with an open store, which is opened again after a failure.
fn with<T>(
    kept: &mut Option<Context>,
    act: impl FnOnce(&mut Context) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let mut context = match kept.take() {
        Some(context) => context,
        None => open(Purpose::Change)?,
    };
    let done = act(&mut context);
    if done.is_ok() {
        *kept = Some(context);
    }
    done
}

fn details(context: &mut Context, wanted: &DetailsQuery) -> Result<Details, Problem> {
    let handle = &wanted.handle;
    let timeline = match &wanted.key {
        None => None,
        Some(key) => {
            let request = TimelineRequest {
                key: Some(Key::parse(key)?),
                limit: EVENTS,
                ..TimelineRequest::default()
            };
            Some(context.service().timeline(&request)?.value)
        }
    };
    let filter = EventFilter {
        limit: EVENTS,
        ..EventFilter::default()
    };
    let mut who = context.service().show(handle)?.value;
    last_words::add(context, &mut who.session);
    Ok(Details {
        who,
        events: context.service().log(&filter, Some(handle))?.value.items,
        timeline,
    })
}
