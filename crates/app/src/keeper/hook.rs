//! A hook's way to the keeper: it sends the event and waits for the answer, for as long as its agent may be held up.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tenure_core::settled::Generation;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_host::{clock, pause};
use tenure_service::AgentEvent;
use tenure_service::answer::{Class, Hint, Problem};

use super::ask::{ANSWERS_WITHIN, connect};
use super::ended::{is_end, spool_end};
use super::files::KeeperFiles;
use super::generation::{begin_unknown, generation};
use super::order::KeeperOrder;
use super::start::{ensure, start};
use super::wire::{EventReply, EventRequest, KeeperCommand, Response, receive, send};
use crate::settings::Settings;
use crate::store_place::StorePlace;

/// How often a hook looks whether the keeper has started.
const LOOKS_EVERY: Duration = Duration::from_millis(5);
/// How long an answer that was sent in time may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_millis(20);

/// What is left of the hook's time for keeping an end that the keeper did not answer: the file must reach the disk before
/// the process is ended.
const KEEPS_WITHIN: Duration = Duration::from_millis(200);

/// What came of sending an event.
#[derive(Debug)]
pub enum SentEvent {
    Answered(Box<EventReply>),
    /// The answer did not come in time. The keeper records the event nevertheless.
    Late,
    /// It was not recorded.
    Missed(Box<Problem>),
    /// No keeper runs, and none may be started.
    NoKeeper,
}

/// Where an event is sent, and how long its hook waits.
pub struct EventLine<'a> {
    pub settings: &'a Settings,
    pub place: &'a StorePlace,
    pub machine: &'a Machine,
    /// When the hook must be over.
    pub until: Instant,
    /// How long it waits for the answer, if that is less.
    pub wait: Duration,
}

impl EventLine<'_> {
    fn files(&self) -> KeeperFiles {
        let (place, observer) = (self.place, self.machine.observer());
        KeeperFiles::of(place.dir(), &place.shown(), observer)
    }

    /// The file of the keeper's generation, which notes lie beside, and what it says.
    pub fn generation(&self) -> (PathBuf, Option<Generation>) {
        let files = self.files();
        (files.generation(), generation(&files))
    }

    /// The same for this event: an end leaves time to keep it.
    #[must_use]
    pub fn for_event(mut self, event: &AgentEvent) -> Self {
        if is_end(event) {
            self.until = self.until.checked_sub(KEEPS_WITHIN).unwrap_or(self.until);
        }
        self
    }

    /// When the agent was held up for long enough, counted from now.
    fn in_time(&self) -> Instant {
        let waited = clock::instant().checked_add(self.wait);
        waited.map_or(self.until, |waited| waited.min(self.until))
    }

    /// Sends an event to the keeper, and starts one if none runs. A keeper that ends meanwhile is followed by another.
    pub fn send(&self, mut request: EventRequest) -> SentEvent {
        let files = self.files();
        let mut reached_until = self.in_time();
        loop {
            let why = match connect(&files) {
                Ok(stream) => match self.exchange(&stream, &mut request) {
                    Ok(Response::Event(reply)) => return SentEvent::Answered(reply),
                    Ok(Response::Accepted) => return SentEvent::Late,
                    Ok(Response::Missed { kind, message }) => return missed(&kind, message),
                    Ok(_) => {
                        // An older keeper makes way.
                        drop(ensure(self.settings, self.place, self.machine));
                        "it does not understand the event".to_owned()
                    }
                    Err(error) if is_late(&error) => return SentEvent::Late,
                    Err(error) => error.to_string(),
                },
                Err(_) if !self.settings.keeper => return SentEvent::NoKeeper,
                Err(error) => {
                    let order = KeeperOrder::of(self.settings, self.place);
                    if order.is_some_and(|order| start(&files, &order).is_ok()) {
                        reached_until = self.until;
                    }
                    error.to_string()
                }
            };
            if clock::instant() >= reached_until {
                let why = format!("the keeper of this machine does not answer: {why}");
                return missed("store_unavailable", why);
            }
            pause::sleep(LOOKS_EVERY);
        }
    }

    /// An event that said something new was not answered, so a plain one after it is no repeat.
    pub fn unsettle(&self) {
        begin_unknown(&self.files());
    }

    /// Keeps an event that no keeper answered, if it is an end; returns whether it is kept.
    pub fn keep_end(&self, event: &AgentEvent) -> bool {
        spool_end(&self.files(), self.machine, event).unwrap_or(false)
    }

    fn exchange(&self, stream: &UnixStream, request: &mut EventRequest) -> io::Result<Response> {
        let left = self.in_time().saturating_duration_since(clock::instant());
        let left = left.max(Duration::from_millis(1));
        let until = clock::since_boot().0 + left;
        request.until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        send(
            stream,
            KeeperCommand::Event(Box::new(request.clone())),
            left,
        )?;
        receive(stream, left + ARRIVES_WITHIN)
    }

    /// Tells the keeper that the answer to an agent's last event was printed.
    pub fn printed(&self, whose: String, for_model: bool) -> io::Result<()> {
        let stream = connect(&self.files())?;
        send(
            &stream,
            KeeperCommand::Printed { whose, for_model },
            ANSWERS_WITHIN,
        )?;
        receive(&stream, ANSWERS_WITHIN).map(drop)
    }
}

fn missed(kind: &str, message: String) -> SentEvent {
    let hint = Hint::verb("ps", "for details");
    SentEvent::Missed(Box::new(Problem::new(Class::Store, kind, message, hint)))
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
    )
}

/// Tells agents apart: events of one are recorded in order.
pub fn whose_event(event: &AgentEvent) -> String {
    match (&event.process, &event.native_id) {
        (Some(found), _) => {
            let process = &found.process;
            format!("{} {}", process.pid, process.start.ticks)
        }
        (None, Some(native_id)) => native_id.to_string(),
        (None, None) => String::new(),
    }
}
