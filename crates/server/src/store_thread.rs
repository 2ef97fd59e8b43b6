//! The thread that owns the store. It stores deliveries in the order of their arrival, and several
//! that wait together in one transaction.

use std::io;
use std::sync::Arc;

use serde_json::json;
use tenure_app::dispatch::receive::{Desk, Genuine, Told};
use tenure_app::dispatch::{Asked, Config};
use tenure_app::open::{Purpose, open};
use tenure_service::answer::Problem;
use tokio::sync::{mpsc, oneshot};

use crate::cannot_listen;

/// How many deliveries may wait to be stored. Beyond that, senders are told to retry.
const WAITING: usize = 64;

/// How many are stored in one transaction.
const TOGETHER: usize = 32;

struct Letter {
    content: (Genuine, Asked),
    reply: oneshot::Sender<Told>,
}

/// Where verified deliveries are sent.
#[derive(Clone)]
pub struct Desks(mpsc::Sender<Letter>);

/// Opens the store in its own thread.
pub fn start(config: Arc<Config>) -> Result<Desks, Problem> {
    let (send, mut letters) = mpsc::channel::<Letter>(WAITING);
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
            tell.send(Ok(())).ok();
            let mut desk = Desk::new(context, config);
            while let Some(first) = letters.blocking_recv() {
                let arrived = std::iter::from_fn(|| letters.try_recv().ok());
                let (contents, replies): (Vec<_>, Vec<_>) = [first]
                    .into_iter()
                    .chain(arrived.take(TOGETHER - 1))
                    .map(|letter| (letter.content, letter.reply))
                    .unzip();
                for (told, reply) in desk.receive_all(&contents).into_iter().zip(replies) {
                    if reply.send(told).is_err() {
                        // The sender is gone. The delivery is stored, and recognised if it is
                        // delivered again.
                    }
                }
            }
        });
    started.map_err(|error| cannot_listen(&error))?;
    match opened.recv() {
        Ok(Ok(())) => Ok(Desks(send)),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(cannot_listen(&io::Error::other("the store's thread ended"))),
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
