//! One connection, and the deadlines that it never outlives.
//!
//! The server, the network and a pooler can each accept a request and never answer, and no TCP
//! option bounds that. So every exchange has a deadline of ours. A connection that missed one is
//! dropped and never used again, because its answer may still arrive. Nothing on a connection
//! outlives a transaction (no named statement, no SET, no advisory session lock, no LISTEN): behind
//! a transaction pooler, the next transaction uses another connection.
//!
//! A pooler with no free connection keeps the first statement of a transaction in its queue. That
//! is not a failure of the server, so a caller without a limit of its own keeps its place in the
//! queue for up to [`TURN`], as long as new connections are accepted.
//!
//! Statements of one exchange are sent together and answered together: one round trip. *Crash*: the
//! server rolls back what was not committed when it sees the connection closed. *Clock jump*:
//! deadlines are on this machine's monotonic clock. *Older version*: the server's version is not
//! checked; the migration created everything that a statement needs.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tenure_core::ignore::Ignore;
use tenure_store::value::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout_at;
use tokio_postgres::config::{SslMode as Encrypts, TargetSessionAttrs};
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Row, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::dialect::typed;
use super::tls;
use tenure_store::server::{Access, SslMode, Through, Unreached};

/// How long connecting may take, with TLS and authentication.
pub(super) const CONNECT: Duration = Duration::from_secs(3);
/// How long one exchange may take.
pub(super) const CALL: Duration = Duration::from_secs(3);
/// How long a server that has not answered in time may take to accept a new connection, which shows that it is there.
pub(super) const PROBE: Duration = Duration::from_secs(1);
/// How long the first exchange of a transaction may wait for its turn at a pooler.
pub(super) const TURN: Duration = Duration::from_secs(20);

/// How long an exchange may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    until: Instant,
    /// Until when it goes on waiting while new connections are accepted.
    turn: Option<Instant>,
}

impl Wait {
    pub(super) fn until(until: Instant) -> Self {
        Self { until, turn: None }
    }

    /// For the first exchange of a transaction, which a pooler may keep in its queue.
    pub(super) fn for_turn() -> Self {
        let now = Instant::now();
        Self {
            until: now + CALL,
            turn: Some(now + TURN),
        }
    }

    /// When it ends at the latest.
    pub(super) fn end(self) -> Instant {
        self.turn.unwrap_or(self.until)
    }
}

impl From<&ConnectionLoss> for Unreached {
    fn from(lost: &ConnectionLoss) -> Self {
        match lost {
            ConnectionLoss::Broken { code, why } => Self {
                code: code.clone(),
                why: Some(why.clone()),
            },
            ConnectionLoss::Late => Self {
                code: None,
                why: None,
            },
        }
    }
}

/// What a process that has a connection said, as our own loss.
fn lost(unreached: Unreached) -> ConnectionLoss {
    match unreached.why {
        Some(why) => ConnectionLoss::Broken {
            code: unreached.code,
            why,
        },
        None => ConnectionLoss::Late,
    }
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    sql: Cow<'static, str>,
    params: Vec<Value<'static>>,
    kind: StatementKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementKind {
    /// Several statements without parameters.
    Batch,
    /// A statement whose changed rows are counted.
    Execute,
    /// A statement whose rows are read.
    Query,
}

impl Statement {
    pub(super) fn batch(sql: impl Into<Cow<'static, str>>) -> Self {
        Self {
            sql: sql.into(),
            params: Vec::new(),
            kind: StatementKind::Batch,
        }
    }

    pub(super) fn execute(sql: impl Into<Cow<'static, str>>, params: Vec<Value<'static>>) -> Self {
        Self {
            sql: sql.into(),
            params,
            kind: StatementKind::Execute,
        }
    }

    pub(super) fn query(sql: impl Into<Cow<'static, str>>, params: Vec<Value<'static>>) -> Self {
        Self {
            sql: sql.into(),
            params,
            kind: StatementKind::Query,
        }
    }
}

impl Statement {
    pub(super) fn is_commit(&self) -> bool {
        self.kind == StatementKind::Batch && self.sql == "COMMIT"
    }
}

/// The server's answer to one statement.
#[derive(Debug)]
pub(super) enum StatementResult {
    Changed(u64),
    Rows(Vec<Row>),
}

impl StatementResult {
    pub(super) fn rows(self) -> Vec<Row> {
        match self {
            Self::Rows(rows) => rows,
            Self::Changed(_) => Vec::new(),
        }
    }

    pub(super) fn changed(&self) -> u64 {
        match self {
            Self::Changed(changed) => *changed,
            Self::Rows(rows) => rows.len() as u64,
        }
    }
}

/// An error that the server reported. The connection is still usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerError {
    /// The SQLSTATE.
    pub(super) code: String,
    pub(super) message: String,
    /// The rule that was broken, if it has a name.
    pub(super) rule: Option<String>,
}

/// Why a connection is no longer usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConnectionLoss {
    /// Connecting failed, or the connection broke.
    Broken { code: Option<String>, why: String },
    /// It did not answer in time.
    Late,
}

/// An open connection.
pub(super) struct Link {
    /// None only while it is being dropped.
    runtime: Option<Runtime>,
    access: Access,
    client: Client,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // A name lookup may hang in a thread of the runtime; do not wait for it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn broken(error: &tokio_postgres::Error) -> ConnectionLoss {
    let why = match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => first_cause(error).to_string(),
    };
    ConnectionLoss::Broken {
        code: error.code().map(|code| code.code().to_owned()),
        why,
    }
}

/// An error of a connection that was not made.
pub(super) fn unreached(error: &tokio_postgres::Error) -> ConnectionLoss {
    let Some(cause) = first_cause(error).downcast_ref::<std::io::Error>() else {
        return broken(error);
    };
    let refused = cause.get_ref().and_then(|inner| inner.downcast_ref());
    ConnectionLoss::Broken {
        code: None,
        why: match refused {
            Some(refused) => tls::explain(refused),
            None => format!("the server cannot be reached; {cause}"),
        },
    }
}

/// The layers above it only repeat that the connection failed.
fn first_cause<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    let mut first = error;
    while let Some(cause) = first.source() {
        first = cause;
    }
    first
}

impl Link {
    pub(super) fn open(access: &Access, until: Instant) -> Result<Self, ConnectionLoss> {
        let failed = |why: String| ConnectionLoss::Broken { code: None, why };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let made = runtime.block_on(reach(access, until));
        match made {
            Ok((client, warnings)) => Ok(Self {
                runtime: Some(runtime),
                access: access.clone(),
                client,
                warnings,
            }),
            Err(lost) => {
                runtime.shutdown_background();
                Err(lost)
            }
        }
    }

    /// Whether a server accepts a connection now.
    pub(super) fn is_accepted(access: &Access) -> bool {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
            return false;
        };
        let made = runtime.block_on(dial(access, Instant::now() + PROBE));
        runtime.shutdown_background();
        made.is_ok()
    }

    /// Whether it is known to be closed.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T, ConnectionLoss> {
        match &self.runtime {
            Some(runtime) => Ok(runtime.block_on(future)),
            None => Err(ConnectionLoss::Late),
        }
    }

    /// Sends statements together and waits for all answers. After a failed statement, the others
    /// get the errors of a failed transaction.
    pub(super) fn exchange(
        &self,
        statements: &[Statement],
        wait: Wait,
    ) -> Result<Vec<Result<StatementResult, ServerError>>, ConnectionLoss> {
        let answers = self.block_on(async {
            let sent = statements.iter().map(|statement| self.ask(statement));
            let mut answers = pin!(all(sent));
            let mut until = wait.until;
            loop {
                if let Ok(answers) = timeout_at(until.into(), answers.as_mut()).await {
                    return Ok(answers);
                }
                let now = Instant::now();
                let turn = wait
                    .turn
                    .filter(|end| *end > now)
                    .ok_or(ConnectionLoss::Late)?;
                // A server that is gone or stopped accepts no connection.
                dial(&self.access, turn.min(now + PROBE))
                    .await
                    .map_err(|_| ConnectionLoss::Late)?;
                until = turn.min(Instant::now() + CALL);
            }
        })??;
        let mut replies = Vec::with_capacity(answers.len());
        for answer in answers {
            replies.push(match answer {
                Ok(reply) => Ok(reply),
                Err(error) => match error.as_db_error() {
                    Some(said) if !ends_connection(said) => Err(ServerError {
                        code: said.code().code().to_owned(),
                        message: said.message().to_owned(),
                        rule: said.constraint().map(str::to_owned),
                    }),
                    _ => return Err(broken(&error)),
                },
            });
        }
        Ok(replies)
    }

    async fn ask(&self, statement: &Statement) -> Result<StatementResult, tokio_postgres::Error> {
        let Statement { sql, params, kind } = statement;
        let params: Vec<_> = params.iter().map(typed).collect();
        match kind {
            StatementKind::Batch => {
                self.client.batch_execute(sql).await?;
                Ok(StatementResult::Changed(0))
            }
            StatementKind::Execute => {
                let changed = self.client.execute_typed(sql, &params).await?;
                Ok(StatementResult::Changed(changed))
            }
            StatementKind::Query => Ok(StatementResult::Rows(
                self.client.query_typed(sql, &params).await?,
            )),
        }
    }

    /// Sends statements without waiting for the answer.
    pub(super) fn send_only(&self, sql: &'static str) {
        let sent = self.block_on(async {
            let mut request = pin!(self.client.batch_execute(sql));
            poll_fn(|cx| {
                // The first poll hands it to the connection, whose task writes it when this one
                // yields.
                let _answered = request.as_mut().poll(cx).is_ready();
                Poll::Ready(())
            })
            .await;
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
        });
        sent.ignore("the connection is closed, so the server rolls back by itself");
    }

    /// Takes the SQLSTATEs of the warnings that the server sent so far.
    pub(super) fn take_warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *warnings)
    }
}

pub(super) fn config(access: &Access) -> Config {
    let url = &access.url;
    let mut config = Config::new();
    for at in &url.addresses {
        config.host(&at.host).port(at.port);
    }
    if let Some(user) = &url.user {
        config.user(user);
    }
    if let Some(password) = &access.password {
        config.password(password.reveal());
    }
    if let Some(database) = &url.database {
        config.dbname(database);
    }
    config.application_name("tenure");
    config.ssl_mode(match url.ssl {
        SslMode::Disable => Encrypts::Disable,
        _ => Encrypts::Require,
    });
    if url.addresses.len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config
}

type Connected = (Client, Arc<Mutex<Vec<String>>>);

/// Connects through a process that has a connection, or directly if none answers.
async fn reach(access: &Access, until: Instant) -> Result<Connected, ConnectionLoss> {
    let asked = access.through.as_ref().map(|Through(ask)| ask(until));
    let stream = asked.transpose().map_err(lost)?.flatten();
    if let Some(stream) = stream
        && let Ok(connected) = pass_through(access, stream, until).await
    {
        return Ok(connected);
    }
    dial(access, until).await
}

async fn pass_through(
    access: &Access,
    stream: UnixStream,
    until: Instant,
) -> Result<Connected, ConnectionLoss> {
    let failed = |error: &std::io::Error| ConnectionLoss::Broken {
        code: None,
        why: error.to_string(),
    };
    stream
        .set_nonblocking(true)
        .map_err(|error| failed(&error))?;
    let stream = tokio::net::UnixStream::from_std(stream).map_err(|error| failed(&error))?;
    let mut config = config(access);
    // The process on the other side has proved who it is and encrypts.
    config.ssl_mode(Encrypts::Disable);
    let until = until.min(Instant::now() + CONNECT);
    let made = timeout_at(until.into(), config.connect_raw(stream, NoTls)).await;
    let made = made.map_err(|_| ConnectionLoss::Late)?;
    Ok(listen(made.map_err(|error| unreached(&error))?))
}

/// Connects, with TLS and authentication.
async fn dial(access: &Access, until: Instant) -> Result<Connected, ConnectionLoss> {
    let config = config(access);
    let until = until.min(Instant::now() + CONNECT);
    match access.url.ssl {
        SslMode::Disable => connected(&config, NoTls, until).await,
        _ => connected(&config, tls_of(access)?, until).await,
    }
}

pub(super) fn tls_of(access: &Access) -> Result<MakeRustlsConnect, ConnectionLoss> {
    let roots = access.root_certificates.as_deref();
    let config = tls::config(access.url.ssl, roots).map_err(|why| ConnectionLoss::Broken {
        code: None,
        why: format!("the file that sslrootcert names is not usable ({why})"),
    })?;
    Ok(MakeRustlsConnect::new(config))
}

async fn connected<T>(config: &Config, tls: T, until: Instant) -> Result<Connected, ConnectionLoss>
where
    T: MakeTlsConnect<Socket> + 'static,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let made = timeout_at(until.into(), config.connect(tls)).await;
    let made = made.map_err(|_| ConnectionLoss::Late)?;
    Ok(listen(made.map_err(|error| unreached(&error))?))
}

/// Lets a connection work in the background, and notes what the server warns about.
fn listen<S, T>((client, mut connection): (Client, Connection<S, T>)) -> Connected
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: TlsStream + Unpin + Send + 'static,
{
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&warnings);
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notice(notice) = message
                && notice.parsed_severity() == Some(Severity::Warning)
            {
                let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                noted.push(notice.code().code().to_owned());
            }
        }
    });
    (client, warnings)
}

/// The severity as text is in the server's language. A pooler sends nothing else, in English.
fn ends_connection(error: &DbError) -> bool {
    match error.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => matches!(error.severity(), "FATAL" | "PANIC"),
    }
}

/// Runs futures together, in order; each is started before any is awaited.
async fn all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<Pin<Box<_>>> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = Vec::with_capacity(running.len());
    for future in &mut running {
        // The first poll sends its request.
        let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        done.push(match first {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        });
    }
    // They are answered in order, so one at a time is waited for.
    let mut answers = Vec::with_capacity(running.len());
    for (future, done) in running.into_iter().zip(done) {
        answers.push(match done {
            Some(value) => value,
            None => future.await,
        });
    }
    answers
}

/// Pauses between two attempts; nothing interrupts it.
pub(super) fn sleep(wait: Duration) {
    if let Ok(runtime) = Builder::new_current_thread().enable_time().build() {
        runtime.block_on(async { tokio::time::sleep(wait).await });
    }
}
