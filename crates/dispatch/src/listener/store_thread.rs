//! The thread that owns the store. It stores deliveries in the order of their arrival, and several that wait together in
//! one transaction; then it decides them: one that arrived alone at once, others when none arrives, or when they have
//! waited for long. What forges must be asked is asked by threads of their own, which send the answers here.
//!
//! It does not wait for more deliveries: while it stores some, the listener reads the next ones.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::live::LiveConfig;
use crate::receive::{DeliveryIntake, VerifiedDelivery, WebhookResponse};
use crate::{Config, DeliveryOutcome, ForgeAnswers, Question, SENDER_WAITS};
use serde_json::json;
use tenure_app::open::{Purpose, open};
use tenure_core::ignore::Ignore;
use tenure_core::store::Checkpoint;
use tenure_host::clock;
use tenure_service::answer::Problem;
use tokio::sync::oneshot;

use super::CannotListen;

/// How many deliveries may wait to be stored. Beyond that, senders are told to retry.
const WAITING: usize = 64;

/// How many are stored in one transaction.
const TOGETHER: usize = 32;

/// After how long without a delivery the store is checkpointed.
const QUIET_AFTER: Duration = Duration::from_millis(200);

/// How long it waits at least before it looks for questions again. Each look reads all that is undecided, which is much
/// in a burst.
const SHORTEST: Duration = Duration::from_millis(20);

/// How often it looks for what another process stored and did not decide.
const LOOK_EVERY: Duration = Duration::from_secs(5);

enum StoreMessage {
    Delivery(VerifiedDelivery, oneshot::Sender<WebhookResponse>),
    Answer(Question, ForgeAnswers),
    /// No more deliveries come.
    Stop,
}

/// Where verified deliveries are sent.
#[derive(Clone)]
pub struct StoreHandle(SyncSender<StoreMessage>);

/// Opens the store in its own thread.
pub fn start(live: LiveConfig) -> Result<StoreHandle, Problem> {
    let (send, messages) = sync_channel::<StoreMessage>(WAITING);
    let (tell, opened) = std::sync::mpsc::channel();
    let answers = send.clone();
    let started = std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            let context = match open(Purpose::Write) {
                Ok(context) => context,
                Err(problem) => {
                    tell.send(Err(problem))
                        .ignore("the listener gave up meanwhile");
                    return;
                }
            };
            let config = live.now();
            let mut intake = DeliveryIntake::new(context, config.clone());
            if let Err(problem) = intake.look_behind() {
                tell.send(Err(problem))
                    .ignore("the listener gave up meanwhile");
                return;
            }
            tell.send(Ok(())).ignore("the listener gave up meanwhile");
            StoreThread {
                intake,
                live,
                config,
                answers,
                held: Vec::new(),
                is_quiet: true,
                is_checkpointed: true,
                look_at: clock::instant() + LOOK_EVERY,
                ask_at: clock::instant(),
                is_asked: true,
            }
            .work(&messages);
        });
    started.map_err(CannotListen::Io)?;
    match opened.recv() {
        Ok(Ok(())) => Ok(StoreHandle(send)),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(CannotListen::StoreThread.into()),
    }
}

/// A sender that waits for the verdict.
struct WaitingSender {
    number: i64,
    until: Instant,
    /// What it is told if there is none by then.
    told: WebhookResponse,
    reply: oneshot::Sender<WebhookResponse>,
}

struct StoreThread {
    intake: DeliveryIntake,
    live: LiveConfig,
    config: Arc<Config>,
    /// Where those who ask forges send the answers.
    answers: SyncSender<StoreMessage>,
    held: Vec<WaitingSender>,
    /// Whether no burst is on.
    is_quiet: bool,
    /// Whether the store is checkpointed since the last change.
    is_checkpointed: bool,
    /// When it looks for what another process stored.
    look_at: Instant,
    /// When it looks for questions again at the earliest while a burst is on, and whether it did since the last change.
    ask_at: Instant,
    is_asked: bool,
}

/// What waited in the channel.
#[derive(Default)]
struct Batch {
    deliveries: Vec<(VerifiedDelivery, oneshot::Sender<WebhookResponse>)>,
    answers: Vec<(Question, ForgeAnswers)>,
    is_last: bool,
}

impl Batch {
    fn add(&mut self, message: StoreMessage) {
        match message {
            StoreMessage::Delivery(verified, reply) => self.deliveries.push((verified, reply)),
            StoreMessage::Answer(question, asked) => self.answers.push((question, asked)),
            StoreMessage::Stop => self.is_last = true,
        }
    }
}

impl StoreThread {
    /// Works until no one can send any more.
    fn work(mut self, messages: &Receiver<StoreMessage>) {
        loop {
            self.reload();
            self.ask();
            self.release();
            let mut batch = Batch::default();
            let waiting = messages.try_iter().take(TOGETHER);
            waiting.for_each(|message| batch.add(message));
            if batch.deliveries.is_empty() && batch.answers.is_empty() && !batch.is_last {
                match self.next(messages) {
                    Some(message) => batch.add(message),
                    None => continue,
                }
            }
            if !batch.answers.is_empty() {
                let count = batch.answers.len();
                let answered = self.intake.answer(batch.answers);
                // What the store did not take is asked again.
                self.tell(answered.unwrap_or_default());
                let decided = self.intake.keep_up(count);
                self.tell(decided);
            }
            if !batch.deliveries.is_empty() {
                self.store(batch.deliveries);
            }
            self.intake.checkpoint(Checkpoint::Small);
            self.is_checkpointed = false;
            if batch.is_last {
                break;
            }
        }
        self.intake.checkpoint(Checkpoint::Final);
    }

    /// Uses the settings as they are now.
    fn reload(&mut self) {
        let config = self.live.now();
        if !Arc::ptr_eq(&config, &self.config) {
            self.intake.use_config(config.clone());
            self.config = config;
        }
    }

    /// The next message; if something else is due first, that is done.
    fn next(&mut self, messages: &Receiver<StoreMessage>) -> Option<StoreMessage> {
        let now = clock::instant();
        let left = |at: Instant| at.saturating_duration_since(now);
        let decides = self.intake.next_decision(self.is_quiet);
        let quiet = (!self.is_checkpointed).then_some(QUIET_AFTER);
        let held = self.held.iter().map(|held| left(held.until)).min();
        // If the store cannot be read, they are still due.
        let asks = self.intake.next_question();
        let asks = asks.map(|at| left(at).max(SHORTEST));
        let looks = Some(left(self.look_at));
        let unasked = (!self.is_asked).then(|| left(self.ask_at));
        let limits = [decides.or(quiet), held, asks, looks, unasked];
        let limit = limits.into_iter().flatten().min().unwrap_or(LOOK_EVERY);
        match messages.recv_timeout(limit) {
            Ok(message) => return Some(message),
            Err(RecvTimeoutError::Disconnected) => return Some(StoreMessage::Stop),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if decides == Some(limit) {
            let decided = self.intake.catch_up();
            self.tell(decided);
            self.intake.checkpoint(Checkpoint::Small);
            (self.is_checkpointed, self.is_quiet) = (false, true);
        } else if quiet == Some(limit) {
            self.intake.checkpoint(Checkpoint::Full);
            self.is_checkpointed = true;
        } else if looks == Some(limit) {
            self.look_at = clock::instant() + LOOK_EVERY;
            self.intake.look_behind().ignore("it looks again");
        }
        None
    }

    /// Stores deliveries together. The sender of one that came alone is told the verdict, if there is one soon.
    fn store(&mut self, deliveries: Vec<(VerifiedDelivery, oneshot::Sender<WebhookResponse>)>) {
        let (arrived, replies): (Vec<_>, Vec<_>) = deliveries.into_iter().unzip();
        let count = arrived.len();
        let is_alone =
            count == 1 && self.held.is_empty() && self.intake.next_decision(true).is_none();
        self.is_quiet = is_alone;
        let stored = self.intake.store(arrived).into_iter().zip(replies);
        for (stored, reply) in stored {
            match stored.undecided.filter(|_| is_alone) {
                Some(number) => self.held.push(WaitingSender {
                    number,
                    until: clock::instant() + SENDER_WAITS,
                    told: stored.told,
                    reply,
                }),
                None => send(reply, stored.told),
            }
        }
        let decided = self.intake.keep_up(count);
        self.tell(decided);
    }

    /// Asks forges what is due, each question in a thread of its own.
    fn ask(&mut self) {
        let now = clock::instant();
        self.is_asked = self.is_quiet || now >= self.ask_at;
        if !self.is_asked {
            return;
        }
        self.ask_at = now + SHORTEST;
        let Ok(questions) = self.intake.questions() else {
            // The store is busy; they are asked later.
            return;
        };
        for question in questions {
            let (config, answers) = (self.config.clone(), self.answers.clone());
            let unasked = question.clone();
            let asking = std::thread::Builder::new().name("asks".to_owned());
            let started = asking.spawn(move || {
                let asked = question.ask(&config);
                answers
                    .send(StoreMessage::Answer(question, asked))
                    .ignore("the dispatcher is ending; the next one asks");
            });
            if let Err(error) = started {
                let asked = ForgeAnswers::Unanswered {
                    why: error.to_string(),
                    until: None,
                };
                self.intake
                    .answer(vec![(unasked, asked)])
                    .ignore("what the store did not take is asked again");
            }
        }
    }

    /// Tells senders what was decided.
    fn tell(&mut self, decided: Vec<DeliveryOutcome>) {
        for (number, accepted) in decided {
            let Some(place) = self.held.iter().position(|held| held.number == number) else {
                continue;
            };
            send(
                self.held.swap_remove(place).reply,
                WebhookResponse::of(&accepted),
            );
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

fn send(reply: oneshot::Sender<WebhookResponse>, told: WebhookResponse) {
    reply.send(told).ignore(
        "the sender is gone. The delivery is stored, and recognised if it is delivered again",
    );
}

impl StoreHandle {
    pub async fn receive(&self, verified: VerifiedDelivery) -> WebhookResponse {
        let (reply, told) = oneshot::channel();
        let busy = || WebhookResponse {
            status: 503,
            body: json!({"error": "the store is busy; deliver it again"}),
        };
        if self
            .0
            .try_send(StoreMessage::Delivery(verified, reply))
            .is_err()
        {
            return busy();
        }
        told.await.unwrap_or_else(|_| busy())
    }

    /// No more deliveries come.
    pub fn close(&self) {
        self.0
            .send(StoreMessage::Stop)
            .ignore("it has already ended by itself");
    }
}
