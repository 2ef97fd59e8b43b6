//! HTTP in: connections within limits, for whatever answers them.
//!
//! A peer that is slow, half-open or silent occupies one of a fixed number of places, and leaves it for the next one. A
//! peer that does not read what it asked for is disconnected.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod connections;
mod patient;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::timeout;

pub use crate::connections::{ActiveRequest, Connection, Connections};
use crate::patient::Patient;

/// The longest head of a request.
const MAX_HEAD: usize = 32 << 10;
/// How many headers it may have.
const MAX_HEADERS: usize = 100;
/// After an error of the listener.
const PAUSE: Duration = Duration::from_millis(20);

/// Where requests come from.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// How many may connect, and for how long each may keep us waiting.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub connections: usize,
    /// For the head of a request.
    pub within: Duration,
    /// For a peer to read some of its answer.
    pub reads_within: Duration,
    /// For the answers in progress at the end.
    pub ends_within: Duration,
}

/// Answers until `stopped` is ready. Each request has its [`Connection`] as an extension.
pub async fn serve(
    listener: Listener,
    router: Router,
    limits: ConnectionLimits,
    stopped: impl Future<Output = ()>,
) {
    let connections = Connections::new(limits.connections);
    let graceful = GracefulShutdown::new();
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = &mut stopped => break,
        };
        let Ok((stream, peer)) = accepted else {
            // Out of descriptors, or the peer gave up: try the next one after a pause.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Some(connection) = connections.add(peer) else {
            continue;
        };
        let mut builder = Builder::new();
        builder
            .timer(TokioTimer::new())
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD)
            .header_read_timeout(limits.within);
        let service = router.clone().layer(Extension(connection.clone()));
        let stream = Patient::new(stream, limits.reads_within);
        let served =
            builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let watched = graceful.watch(served);
        tokio::spawn(async move {
            tokio::select! {
                // If it failed, the peer disconnected.
                _ = watched => {}
                () = connection.closed() => {}
            }
        });
    }
    drop(listener);
    if timeout(limits.ends_within, graceful.shutdown())
        .await
        .is_err()
    {
        // A peer that is still sending or reading at this point gets no whole answer.
    }
}

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

async fn accept(listener: &Listener) -> io::Result<(Box<dyn Stream>, IpAddr)> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, peer) = listener.accept().await?;
            // A line of a stream must not wait for more.
            stream.set_nodelay(true)?;
            Ok((Box::new(stream), peer.ip()))
        }
        Listener::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            Ok((Box::new(stream), IpAddr::V4(Ipv4Addr::LOCALHOST)))
        }
    }
}
