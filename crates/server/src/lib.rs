//! The door: webhooks over HTTP.
//!
//! One thread runs everything that waits for a network; another one owns the store, and a few ask forges what they
//! must tell about a delivery, for a bounded time. A request is read within
//! bounds (headers, body and time), proved genuine on its raw bytes, handed to the store's thread and answered
//! when it is stored. A sender that is slow, half-open or endless costs one of [`MOST_CONNECTIONS`] places, for at
//! most [`READ_WITHIN`].
//!
//! *Crash*: what was answered with 202 is stored; what was not answered may be delivered again and is recognised.

mod askers;
mod door;
mod store_thread;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenure_app::dispatch::Config;
use tenure_service::answer::{Class, Hint, Problem};
use tokio::sync::oneshot;

use store_thread::Desks;

/// No body is longer; forges send at most 25 MB.
pub const LONGEST_BODY: usize = 25 << 20;
/// How long a sender may take for a whole request.
pub const READ_WITHIN: Duration = Duration::from_secs(10);
/// How many senders are served at once.
pub const MOST_CONNECTIONS: usize = 256;

/// A server that listens.
pub struct Server {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Listens, and answers in threads of its own.
pub fn listen(address: SocketAddr, config: Arc<Config>) -> Result<Server, Problem> {
    let desk = store_thread::start(config.clone())?;
    bind(address, config, desk).map_err(|error| cannot_listen(&error))
}

fn cannot_listen(error: &io::Error) -> Problem {
    let message = format!("cannot listen for webhooks: {error}");
    let hint = Hint::step("choose another address with --listen, or end what uses this one");
    Problem::new(Class::Internal, "cannot_listen", message, hint)
}

fn bind(address: SocketAddr, config: Arc<Config>, desk: Desks) -> io::Result<Server> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let thread = std::thread::Builder::new()
        .name("door".to_owned())
        .spawn(move || {
            runtime.block_on(door::serve(listener, config, desk, stopped));
            // A question to a forge that is still open has nobody who waits for its answer.
            runtime.shutdown_background();
        })?;
    Ok(Server {
        address,
        stop: Some(stop),
        thread: Some(thread),
    })
}

impl Server {
    /// Stops listening, and waits for the answers that are under way.
    pub fn stop(mut self) {
        if let Some(stop) = self.stop.take()
            && stop.send(()).is_err()
        {
            // It has ended by itself.
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            // It has said why on its way.
        }
    }
}
