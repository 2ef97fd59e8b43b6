//! The thread that owns the store. It stores deliveries in the order of their arrival, and several that wait together in
//! one transaction; then it decides them: one that arrived alone at once, others when none arrives, or when they have
//! waited for long. What forges must be asked is asked by threads of their own, which send the answers here.
//!
//! It does not wait for more deliveries: while it stores some, the door reads the next ones.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::json;
use tenure_app::dispatch::live::LiveConfig;
use tenure_app::dispatch::receive::{Desk, Genuine, Told};
use tenure_app::dispatch::{Asked, Config, Outcome, Question, SENDER_WAITS};
use tenure_app::open::{Purpose, open};
use tenure_host::clock;
use tenure_service::answer::Problem;
use tokio::sync::oneshot;

use crate::CannotListen;

/// How many deliveries may wait to be stored. Beyond that, senders are told to retry.
const WAITING: usize = 64;

/// How many are stored in one transaction.
const TOGETHER: usize = 32;

/// After how long without a delivery the store is tended.
const QUIET_AFTER: Duration = Duration::from_millis(200);

/// How long it waits at least before it looks for questions again.
const SHORTEST: Duration = Duration::from_millis(20);

/// How often it looks for what another process stored and did not decide.
const LOOK_EVERY: Duration = Duration::from_secs(5);

enum Letter {
    Delivery(Genuine, oneshot::Sender<Told>),
    Answer(Question, Asked),
    /// No more deliveries come.
    Stop,
}

/// Where verified deliveries are sent.
#[derive(Clone)]
pub struct Desks(SyncSender<Letter>);

/// Opens the store in its own thread.
pub fn start(live: LiveConfig) -> Result<Desks, Problem> {
    let (send, letters) = sync_channel::<Letter>(WAITING);
    let (tell, opened) = std::sync::mpsc::channel();
    let answers = send.clone();
    let started = std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            let context = match open(Purpose::Write) {
                Ok(context) => context,
                Err(problem) => {
                    tell.send(Err(problem)).ok();
                    return;
                }
            };
            let config = live.now();
            let mut desk = Desk::new(context, config.clone());
            if let Err(problem) = desk.look_behind() {
                tell.send(Err(problem)).ok();
                return;
            }
            tell.send(Ok(())).ok();
            Worker {
                desk,
                live,
                config,
                answers,
                held: Vec::new(),
                is_quiet: true,
                is_tended: true,
                look_at: clock::instant() + LOOK_EVERY,
            }
            .work(&letters);
        });
    started.map_err(CannotListen::Io)?;
    match opened.recv() {
        Ok(Ok(())) => Ok(Desks(send)),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(CannotListen::StoreThread.into()),
    }
}

/// A sender that waits for the verdict.
struct Held {
    number: i64,
    until: Instant,
    /// What it is told if there is none by then.
    told: Told,
    reply: oneshot::Sender<Told>,
}

struct Worker {
    desk: Desk,
    live: LiveConfig,
    config: Arc<Config>,
    /// Where those who ask forges send the answers.
    answers: SyncSender<Letter>,
    held: Vec<Held>,
    /// Whether no burst is on.
    is_quiet: bool,
    /// Whether the store is tended since the last change.
    is_tended: bool,
    /// When it looks for what another process stored.
    look_at: Instant,
}

/// What waited in the channel.
#[derive(Default)]
struct Batch {
    deliveries: Vec<(Genuine, oneshot::Sender<Told>)>,
    answers: Vec<(Question, Asked)>,
    is_last: bool,
}

impl Batch {
    fn add(&mut self, letter: Letter) {
        match letter {
            Letter::Delivery(genuine, reply) => self.deliveries.push((genuine, reply)),
            Letter::Answer(question, asked) => self.answers.push((question, asked)),
            Letter::Stop => self.is_last = true,
        }
    }
}

impl Worker {
    /// Works until no one can send any more.
    fn work(mut self, letters: &Receiver<Letter>) {
        loop {
            self.reload();
            self.ask();
            self.release();
            let mut batch = Batch::default();
            let waiting = letters.try_iter().take(TOGETHER);
            waiting.for_each(|letter| batch.add(letter));
            if batch.deliveries.is_empty() && batch.answers.is_empty() && !batch.is_last {
                match self.next(letters) {
                    Some(letter) => batch.add(letter),
                    None => continue,
                }
            }
            if !batch.answers.is_empty() {
                let count = batch.answers.len();
                let answered = self.desk.answer(batch.answers);
                // What the store did not take is asked again.
                self.tell(answered.unwrap_or_default());
                let decided = self.desk.keep_up(count);
                self.tell(decided);
            }
            if !batch.deliveries.is_empty() {
                self.store(batch.deliveries);
            }
            self.desk.tend();
            self.is_tended = false;
            if batch.is_last {
                break;
            }
        }
        self.desk.leave();
    }

    /// Uses the settings as they are now.
    fn reload(&mut self) {
        let config = self.live.now();
        if !Arc::ptr_eq(&config, &self.config) {
            self.desk.use_config(config.clone());
            self.config = config;
        }
    }

    /// The next letter; if something else is due first, that is done.
    fn next(&mut self, letters: &Receiver<Letter>) -> Option<Letter> {
        let now = clock::instant();
        let left = |at: Instant| at.saturating_duration_since(now);
        let decides = self.desk.next_decision(self.is_quiet);
        let quiet = (!self.is_tended).then_some(QUIET_AFTER);
        let held = self.held.iter().map(|held| left(held.until)).min();
        // If the store cannot be read, they are still due.
        let asks = self.desk.next_question();
        let asks = asks.map(|at| left(at).max(SHORTEST));
        let looks = Some(left(self.look_at));
        let limits = [decides.or(quiet), held, asks, looks];
        let limit = limits.into_iter().flatten().min().unwrap_or(LOOK_EVERY);
        match letters.recv_timeout(limit) {
            Ok(letter) => return Some(letter),
            Err(RecvTimeoutError::Disconnected) => return Some(Letter::Stop),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if decides == Some(limit) {
            let decided = self.desk.catch_up();
            self.tell(decided);
            self.desk.tend();
            (self.is_tended, self.is_quiet) = (false, true);
        } else if quiet == Some(limit) {
            self.desk.rest();
            self.is_tended = true;
        } else if looks == Some(limit) {
            self.look_at = clock::instant() + LOOK_EVERY;
            if self.desk.look_behind().is_err() {
                // It looks again.
            }
        }
        None
    }

    /// Stores deliveries together. The sender of one that came alone is told the verdict, if there is one soon.
    fn store(&mut self, deliveries: Vec<(Genuine, oneshot::Sender<Told>)>) {
        let (arrived, replies): (Vec<_>, Vec<_>) = deliveries.into_iter().unzip();
        let count = arrived.len();
        let is_alone =
            count == 1 && self.held.is_empty() && self.desk.next_decision(true).is_none();
        self.is_quiet = is_alone;
        let stored = self.desk.store(arrived).into_iter().zip(replies);
        for (stored, reply) in stored {
            match stored.undecided.filter(|_| is_alone) {
                Some(number) => self.held.push(Held {
                    number,
                    until: clock::instant() + SENDER_WAITS,
                    told: stored.told,
                    reply,
                }),
                None => send(reply, stored.told),
            }
        }
        let decided = self.desk.keep_up(count);
        self.tell(decided);
    }

    /// Asks forges what is due, each question in a thread of its own.
    fn ask(&mut self) {
        let Ok(questions) = self.desk.questions() else {
            // The store is busy; they are asked later.
            return;
        };
        for question in questions {
            let (config, answers) = (self.config.clone(), self.answers.clone());
            let unasked = question.clone();
            let asking = std::thread::Builder::new().name("asks".to_owned());
            let started = asking.spawn(move || {
                let asked = question.ask(&config);
                if answers.send(Letter::Answer(question, asked)).is_err() {
                    // The dispatcher is ending; the next one asks.
                }
            });
            if let Err(error) = started {
                let asked = Asked::Unanswered {
                    why: error.to_string(),
                    until: None,
                };
                self.desk.answer(vec![(unasked, asked)]).ok();
            }
        }
    }

    /// Tells senders what was decided.
    fn tell(&mut self, decided: Vec<Outcome>) {
        for (number, accepted) in decided {
            let Some(place) = self.held.iter().position(|held| held.number == number) else {
                continue;
            };
            send(self.held.swap_remove(place).reply, Told::of(&accepted));
        }
    }

    /// Answers senders that have waited for long enough.
    fn release(&mut self) {
        let now = clock::instant();
        for held in self.held.extract_if(.., |held| held.until <= now) {
            send(held.reply, held.told);
        }
    }
}

fn send(reply: oneshot::Sender<Told>, told: Told) {
    if reply.send(told).is_err() {
        // The sender is gone. The delivery is stored, and recognised if it is delivered again.
    }
}

impl Desks {
    pub async fn receive(&self, genuine: Genuine) -> Told {
        let (reply, told) = oneshot::channel();
        let busy = || Told {
            status: 503,
            body: json!({"error": "the store is busy; deliver it again"}),
        };
        if self.0.try_send(Letter::Delivery(genuine, reply)).is_err() {
            return busy();
        }
        told.await.unwrap_or_else(|_| busy())
    }

    /// No more deliveries come.
    pub fn close(&self) {
        if self.0.send(Letter::Stop).is_err() {
            // It has already ended by itself.
        }
    }
}
