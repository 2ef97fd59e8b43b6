//! An authenticated connection as a plain stream of bytes.
//!
//! The driver does what is hard (addresses, TLS, authentication) on a stream that is only lent to it; afterwards the
//! stream is taken back.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout_at;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Client, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::connection::{CONNECT, ConnectionLoss, config, tls_of, unreached};
use super::super::error::NO_WRITES;
use tenure_store::server::{Access, Address, SslMode};

/// A stream in both directions.
pub(super) trait ServerStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ServerStream for S {}

/// Connects and authenticates at the first address that can be used.
pub(super) async fn open(
    access: &Access,
    until: Instant,
) -> Result<Box<dyn ServerStream>, ConnectionLoss> {
    let until = until.min(Instant::now() + CONNECT);
    let mut last = ConnectionLoss::Late;
    for at in &access.url.addresses {
        match timeout_at(until.into(), open_at(access, at)).await {
            Ok(Ok(line)) => return Ok(line),
            Ok(Err(lost)) => last = lost,
            Err(_) => return Err(ConnectionLoss::Late),
        }
    }
    Err(last)
}

async fn open_at(access: &Access, at: &Address) -> Result<Box<dyn ServerStream>, ConnectionLoss> {
    let failed = |error: &io::Error| ConnectionLoss::Broken {
        code: None,
        why: format!("the server cannot be reached; {error}"),
    };
    if at.host.starts_with('/') {
        let path = format!("{}/.s.PGSQL.{}", at.host, at.port);
        let stream = UnixStream::connect(path).await;
        return authenticate(access, stream.map_err(|error| failed(&error))?, &at.host).await;
    }
    let stream = TcpStream::connect((at.host.as_str(), at.port)).await;
    let stream = stream.map_err(|error| failed(&error))?;
    stream.set_nodelay(true).map_err(|error| failed(&error))?;
    authenticate(access, stream, &at.host).await
}

async fn authenticate<S>(
    access: &Access,
    stream: S,
    host: &str,
) -> Result<Box<dyn ServerStream>, ConnectionLoss>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = config(access);
    let several = access.url.addresses.len() > 1;
    if access.url.ssl == SslMode::Disable {
        let lent = Lent::new(stream);
        let made = config.connect_raw(lent.clone(), NoTls).await;
        let (client, connection) = made.map_err(|error| unreached(&error))?;
        check(&client, connection, several).await?;
        drop(client);
        return lent.back();
    }
    let mut tls: MakeRustlsConnect = tls_of(access)?;
    let connects = MakeTlsConnect::<S>::make_tls_connect(&mut tls, host);
    let connects = connects.map_err(|error| ConnectionLoss::Broken {
        code: None,
        why: error.to_string(),
    })?;
    let kept = Arc::new(Mutex::new(None));
    let lends = Lends {
        connects,
        kept: Arc::clone(&kept),
    };
    let made = config.connect_raw(stream, lends).await;
    let (client, connection) = made.map_err(|error| unreached(&error))?;
    check(&client, connection, several).await?;
    drop(client);
    let lent = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    lent.ok_or(ConnectionLoss::Late)?.back()
}

/// With several addresses, the server that takes writes is meant. Ends the driver's connection.
async fn check<S, T>(
    client: &Client,
    connection: Connection<S, T>,
    several: bool,
) -> Result<(), ConnectionLoss>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: TlsStream + Unpin,
{
    if !several {
        return Ok(());
    }
    let asked = client.query_typed("SHOW transaction_read_only", &[]);
    let rows = tokio::select! {
        rows = asked => rows.map_err(|error| unreached(&error))?,
        _ = connection => return Err(ConnectionLoss::Late),
    };
    let is_read_only = rows
        .first()
        .and_then(|row| row.try_get::<_, String>(0).ok())
        .is_none_or(|value| value != "off");
    if is_read_only {
        return Err(ConnectionLoss::Broken {
            code: None,
            why: NO_WRITES.to_owned(),
        });
    }
    Ok(())
}

/// A stream that the driver uses for a while.
struct Lent<S>(Arc<Mutex<S>>);

impl<S> Clone for Lent<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Lent<S> {
    fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    fn stream(&self) -> MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Lent<S> {
    /// The stream itself, once the driver has dropped its part.
    fn back(self) -> Result<Box<dyn ServerStream>, ConnectionLoss> {
        let stream = Arc::into_inner(self.0).ok_or(ConnectionLoss::Late)?;
        let stream = stream.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(stream))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lent<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream()).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lent<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream()).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream()).poll_shutdown(cx)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Lent<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream().channel_binding()
    }
}

/// A TLS handshake whose stream is lent to the driver.
struct Lends<S, C: TlsConnect<S>> {
    connects: C,
    kept: Arc<Mutex<Option<Lent<C::Stream>>>>,
}

impl<S, C> TlsConnect<S> for Lends<S, C>
where
    C: TlsConnect<S> + Send + 'static,
    C::Future: Send + 'static,
    C::Stream: Send + 'static,
    C::Error: 'static,
{
    type Stream = Lent<C::Stream>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Self::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let shake = self.connects.connect(stream);
        let kept = self.kept;
        Box::pin(async move {
            let lent = Lent::new(shake.await?);
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some(lent.clone());
            Ok(lent)
        })
    }
}
