//! What ends a call before its answer: its client cancels it, asks no more, or is gone.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use tokio::sync::{RwLock, RwLockReadGuard, watch};

/// What is left of a client; each is less than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientPresence {
    #[default]
    All,
    /// It closed the input, and may read answers.
    Reader,
    Nothing,
}

/// The client, for everything that serves it.
#[derive(Debug, Clone, Default)]
pub struct Client {
    left: watch::Sender<ClientPresence>,
    /// Read by every call.
    calls: Arc<RwLock<()>>,
}

impl Client {
    /// From now on no more than this is left of it.
    pub fn loses(&self, left: ClientPresence) {
        self.left.send_modify(|now| *now = left.max(*now));
    }

    /// Waits until no more than this is left of it.
    pub async fn has_only(&self, left: ClientPresence) {
        let mut now = self.left.subscribe();
        if now.wait_for(|now| *now >= left).await.is_err() {
            // Only without a sender, and this has one.
        }
    }

    /// Waits until it is gone and no call goes on.
    pub async fn is_gone(&self) {
        self.has_only(ClientPresence::Nothing).await;
        drop(self.calls.write().await);
    }

    /// A call goes on as long as this is kept.
    pub async fn call(&self) -> RwLockReadGuard<'_, ()> {
        self.calls.read().await
    }

    fn left(&self) -> ClientPresence {
        *self.left.borrow()
    }
}

/// The end of one call.
pub struct CallEnd {
    pub client: Client,
    /// Whether the client cancelled it.
    pub is_cancelled: Box<dyn Fn() -> bool + Send + Sync>,
    /// Receives a byte when it may be over.
    pub news: UnixStream,
}

impl CallEnd {
    /// Whether nobody reads the answer.
    pub fn is_unread(&self) -> bool {
        (self.is_cancelled)() || self.client.left() == ClientPresence::Nothing
    }

    /// Whether nobody waits for it any more.
    pub fn is_over(&self) -> bool {
        (self.is_cancelled)() || self.client.left() >= ClientPresence::Reader
    }
}
