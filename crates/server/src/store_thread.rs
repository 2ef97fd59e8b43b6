//! The thread that owns the store. It stores deliveries in the order of their arrival, and several
//! that wait together in one transaction. Those that are stored and undecided are decided here, too: when none arrives,
//! or when they have waited for long.
//!
//! It does not wait for more deliveries: while it stores some, the door reads the next ones.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use serde_json::json;
use tenure_app::dispatch::receive::{Desk, Genuine, Told};
use tenure_app::dispatch::{Asked, Config};
use tenure_app::open::{Purpose, open};
use tenure_service::answer::Problem;
use tokio::sync::oneshot;

use crate::CannotListen;

/// How many deliveries may wait to be stored. Beyond that, senders are told to retry.
const WAITING: usize = 64;

/// How many are stored in one transaction.
const TOGETHER: usize = 32;

/// After how long without a delivery the store is tended.
const QUIET_AFTER: Duration = Duration::from_millis(200);

struct Letter {
    content: (Genuine, Asked),
    reply: oneshot::Sender<Told>,
}

/// Where verified deliveries are sent.
#[derive(Clone)]
pub struct Desks(SyncSender<Letter>);

/// Opens the store in its own thread.
pub fn start(config: Arc<Config>) -> Result<Desks, Problem> {
    let (send, letters) = sync_channel::<Letter>(WAITING);
    let (tell, opened) = std::sync::mpsc::channel();
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
            let mut desk = Desk::new(context, config);
            if let Err(problem) = desk.look_behind() {
                tell.send(Err(problem)).ok();
                return;
            }
            tell.send(Ok(())).ok();
            work(&mut desk, &letters);
            desk.leave();
        });
    started.map_err(CannotListen::Io)?;
    match opened.recv() {
        Ok(Ok(())) => Ok(Desks(send)),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(CannotListen::StoreThread.into()),
    }
}

/// Stores letters until no one can send any more.
fn work(desk: &mut Desk, letters: &Receiver<Letter>) {
    // Nothing was put off yet.
    let mut is_tended = true;
    // An earlier dispatcher may have left some undecided, and none has arrived yet.
    let mut is_quiet = true;
    loop {
        let mut batch: Vec<Letter> = letters.try_iter().take(TOGETHER).collect();
        if batch.is_empty() {
            let decides = desk.next_decision(is_quiet);
            let quiet = (!is_tended).then_some(QUIET_AFTER);
            match next(letters, decides.or(quiet)) {
                Ok(letter) => batch.push(letter),
                Err(RecvTimeoutError::Timeout) if decides.is_some() => {
                    desk.catch_up();
                    desk.tend();
                    (is_tended, is_quiet) = (false, true);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    desk.rest();
                    is_tended = true;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        is_quiet = false;
        let count = batch.len();
        store(desk, batch);
        desk.keep_up(count);
        desk.tend();
        is_tended = false;
    }
}

/// The next letter; if something was put off, only until it is time for that.
fn next<T>(letters: &Receiver<T>, limit: Option<Duration>) -> Result<T, RecvTimeoutError> {
    match limit {
        None => letters.recv().map_err(RecvTimeoutError::from),
        Some(limit) => letters.recv_timeout(limit),
    }
}

/// Stores letters together, and answers them.
fn store(desk: &mut Desk, batch: Vec<Letter>) {
    let (contents, replies): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .map(|letter| (letter.content, letter.reply))
        .unzip();
    for (told, reply) in desk.receive_all(contents).into_iter().zip(replies) {
        if reply.send(told).is_err() {
            // The sender is gone. The delivery is stored, and recognised if it is delivered again.
        }
    }
}

impl Desks {
    pub async fn receive(&self, genuine: Genuine, asked: Asked) -> Told {
        let (reply, told) = oneshot::channel();
        let busy = || Told {
            status: 503,
            body: json!({"error": "the store is busy; deliver it again"}),
        };
        if self
            .0
            .try_send(Letter {
                content: (genuine, asked),
                reply,
            })
            .is_err()
        {
            return busy();
        }
        told.await.unwrap_or_else(|_| busy())
    }
}
