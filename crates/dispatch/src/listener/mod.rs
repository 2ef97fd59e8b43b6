//! The listener: webhooks over HTTP.
//!
//! One thread runs everything that waits for the network. Another owns the store. A few more ask
//! forges about deliveries. A request is read within limits (headers, body and
//! time), verified on its raw bytes, passed to the store's thread and answered when it is stored. A
//! sender that is slow, half-open or endless occupies one of [`MAX_CONNECTIONS`] places, for at
//! most [`READ_WITHIN`].
//!
//! *Crash*: a delivery that was answered with 202 is stored; one that was not answered may be
//! delivered again and is then recognised.

mod serve;
mod store_thread;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::endpoints::Endpoints;
use crate::live::LiveConfig;
use tenure_core::ignore::Ignore;
use tenure_service::answer::{Class, Hint, Problem};
use tokio::sync::oneshot;

use store_thread::StoreHandle;

/// The longest body. Forges send at most 25 MB.
pub const MAX_BODY: usize = 25 << 20;
/// How many bytes of bodies are in memory at once, over all connections.
pub const MAX_BYTES: usize = 64 << 20;
/// How long a sender may take for a whole request.
pub const READ_WITHIN: Duration = Duration::from_secs(10);

/// How long a body waits for room among others.
pub const ROOM_WITHIN: Duration = Duration::from_secs(4);
/// How many senders are served at once.
pub const MAX_CONNECTIONS: usize = 256;

/// A listening server.
pub struct WebhookServer {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Listens, and answers in its own threads.
pub fn listen(
    address: SocketAddr,
    config: LiveConfig,
    endpoints: Endpoints,
) -> Result<WebhookServer, Problem> {
    let intake = store_thread::start(config.clone())?;
    Ok(bind(address, (config, endpoints), intake).map_err(CannotListen::Io)?)
}

/// Why no webhook can arrive.
#[derive(Debug, thiserror::Error)]
pub enum CannotListen {
    #[error("cannot listen for webhooks: {0}")]
    Io(io::Error),
    #[error("cannot listen for webhooks: the thread of the store failed")]
    StoreThread,
}

impl From<CannotListen> for Problem {
    fn from(error: CannotListen) -> Self {
        let hint = match error {
            CannotListen::Io(_) => {
                "choose another address with --listen, or end what uses this one"
            }
            CannotListen::StoreThread => "start it again",
        };
        let said = error.to_string();
        Problem::new(Class::Internal, "cannot_listen", said, Hint::step(hint))
    }
}

fn bind(
    address: SocketAddr,
    (config, endpoints): (LiveConfig, Endpoints),
    intake: StoreHandle,
) -> io::Result<WebhookServer> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let thread = std::thread::Builder::new()
        .name("listener".to_owned())
        .spawn(move || {
            runtime.block_on(serve::serve(
                listener,
                (config, endpoints),
                intake.clone(),
                stopped,
            ));
            intake.close();
        })?;
    Ok(WebhookServer {
        address,
        stop: Some(stop),
        thread: Some(thread),
    })
}

impl WebhookServer {
    /// Stops listening, and waits for the answers in progress.
    pub fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).ignore("it has already ended by itself");
        }
        if let Some(thread) = self.thread.take() {
            thread.join().ignore("it has already reported why");
        }
    }
}
