//! One connection to the server, which the commands of a machine use in turn.
//!
//! A command speaks the PostgreSQL protocol to the keeper over a local socket, and the keeper passes the messages on. Making
//! a connection to a server, with TLS and a password, costs far more than a question on one that is open, and a caller in a
//! sandbox may have no network. Nothing on a connection outlives a transaction (see `connection.rs`), so a connection
//! serves one client until the server is outside a transaction and owes no answer, and then the next one, in the order
//! in which they asked. A client that comes first, the keeper that renews, waits for at most one other: while it waits,
//! those before it line up again behind it. The relay knows nothing about the statements.
//!
//! *Invariants*: a client never sees an answer that belongs to another; a connection that is in doubt (half a message, a
//! transaction that nobody ended, an answer that did not come) is closed, and the server rolls back.
//!
//! *Crash* of a client: what it sent is finished, a transaction that it left open is rolled back. *Crash* of the relay:
//! clients see a broken connection, as from any server. A client that is stopped holds up the others until the server
//! ends its transaction, two seconds at most, and one that does not read its answer for as long as that is dropped.
//! *Clock jump*: limits are on the monotonic clock. *Older version*: the protocol is PostgreSQL's own.

mod frames;
mod line;

use std::cell::Cell;
use std::io;
use std::os::unix::net::UnixStream as Caller;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::sync::{Mutex, MutexGuard, mpsc};
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::connection::CONNECT;
use frames::Dialogue;
use line::ServerStream;
use tenure_core::ignore::Ignore;
use tenure_store::server::{Accesses, Greeting, Unreached};

/// How long a client may take to read what it asked for, and to say who it is.
const READS_WITHIN: Duration = Duration::from_secs(2);
/// How long a client may be silent in the middle of its turn. The server ends a transaction before that.
const GOES_ON_WITHIN: Duration = Duration::from_secs(3);
/// How long a server may owe an answer. Its own limits are shorter.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How long the answer to a client that is gone is waited for.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// How much is passed on at once.
const AT_ONCE: usize = 16 << 10;
/// How much of what a client says is taken in before its turn.
const MAX_WAITING: usize = 1 << 20;
/// The length of the message with which a client leaves.
const FAREWELL: usize = 5;
/// The longest first message of a client.
const MAX_START: u32 = 10_000;
/// The server's "you are who you say", and "ready, outside a transaction".
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// Passes messages on, in a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Relay {
    clients: mpsc::UnboundedSender<(Caller, bool)>,
}

impl Relay {
    pub fn start(access: Accesses, greeting: Greeting) -> io::Result<Self> {
        let (clients, mut arriving) = mpsc::unbounded_channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            let server = Rc::new(SharedConnection {
                access,
                greeting,
                line: Mutex::new(None),
                is_up: Cell::new(false),
                first: Cell::new(0),
            });
            LocalSet::new().block_on(&runtime, async move {
                while let Some((client, is_first)) = arriving.recv().await {
                    let server = Rc::clone(&server);
                    tokio::task::spawn_local(async move {
                        serve(&server, client, is_first)
                            .await
                            .ignore("the client is gone, or was dropped");
                    });
                }
            });
            // A name lookup may hang in a thread of the runtime.
            runtime.shutdown_background();
        };
        std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn(run)?;
        Ok(Self { clients })
    }

    /// Serves a client from here on, before others if it `is_first`.
    pub fn take(&self, client: Caller, is_first: bool) {
        self.clients
            .send((client, is_first))
            .ignore("the thread ended; the client sees its connection closed");
    }
}

/// The connection that all clients use.
struct SharedConnection {
    access: Accesses,
    greeting: Greeting,
    line: Mutex<Option<Box<dyn ServerStream>>>,
    /// Whether there is a connection, which a client may be using.
    is_up: Cell<bool>,
    /// How many clients wait that come first.
    first: Cell<usize>,
}

impl SharedConnection {
    /// A usable connection in its place.
    async fn connect(&self, line: &mut Option<Box<dyn ServerStream>>) -> Result<(), Unreached> {
        if let Some(open) = line
            && is_quiet(open.as_mut()).await
        {
            return Ok(());
        }
        self.is_up.set(false);
        *line = None;
        let access = (self.access)()?;
        let opened = line::open(&access, Instant::now() + CONNECT).await;
        *line = Some(opened.map_err(|lost| Unreached::from(&lost))?);
        self.is_up.set(true);
        Ok(())
    }

    /// The connection, when it is a client's turn.
    async fn turn(&self, is_first: bool) -> MutexGuard<'_, Option<Box<dyn ServerStream>>> {
        if is_first {
            self.first.set(self.first.get() + 1);
            let line = self.line.lock().await;
            self.first.set(self.first.get() - 1);
            return line;
        }
        loop {
            let line = self.line.lock().await;
            if self.first.get() == 0 {
                return line;
            }
            // The connection goes to the next in line, and this client to the end of it.
            drop(line);
        }
    }

    /// Whether the server can be reached, as far as that is known.
    async fn check(&self) -> Result<(), Unreached> {
        let mut line = match self.line.try_lock() {
            Ok(line) => line,
            // A client uses it.
            Err(_) if self.is_up.get() => return Ok(()),
            Err(_) => self.line.lock().await,
        };
        self.connect(&mut line).await
    }
}

/// Whether an unused connection is still open. A server says nothing on one but that it is about to close it.
async fn is_quiet(line: &mut dyn ServerStream) -> bool {
    let mut byte = [0];
    let mut buffer = ReadBuf::new(&mut byte);
    let mut line = std::pin::Pin::new(line);
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(line.as_mut().poll_read(cx, &mut buffer).is_pending())
    })
    .await
}

async fn serve(server: &SharedConnection, client: Caller, is_first: bool) -> io::Result<()> {
    client.set_nonblocking(true)?;
    let mut client = UnixStream::from_std(client)?;
    let checked = server.check().await;
    let greeting = (server.greeting)(checked.as_ref().copied());
    client.write_all(&greeting).await?;
    if checked.is_err() {
        return Ok(());
    }
    timeout(READS_WITHIN, welcome(&mut client)).await??;
    let mut first = Vec::with_capacity(AT_ONCE);
    loop {
        first.clear();
        if client.read_buf(&mut first).await? == 0 {
            return Ok(());
        }
        let mut line = server.turn(is_first).await;
        // One that gave up while it waited for its turn has not asked for anything.
        if !read_waiting(&client, &mut first)? {
            return Ok(());
        }
        let mut dialogue = Dialogue::new();
        dialogue.client_says(&first);
        if dialogue.leaves() {
            return Ok(());
        }
        if server.connect(&mut line).await.is_err() {
            // The client connects again and is told why.
            return Ok(());
        }
        // Whatever happens now, the connection is used again only if it ends well.
        let Some(mut used) = line.take() else {
            return Ok(());
        };
        let turn = converse(used.as_mut(), &mut client, dialogue, &first).await;
        if matches!(
            turn,
            Ok(ClientTurnEnd {
                is_reusable: true,
                ..
            })
        ) {
            *line = Some(used);
        } else {
            server.is_up.set(false);
        }
        drop(line);
        if !turn?.stays {
            return Ok(());
        }
    }
}

/// Takes what a client has said since; returns whether it is still there.
fn read_waiting(client: &UnixStream, said: &mut Vec<u8>) -> io::Result<bool> {
    while said.len() < MAX_WAITING {
        match client.try_read_buf(said) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The first message of a client: its length, the version of the protocol, and who it is, which the keeper has decided.
async fn welcome(client: &mut UnixStream) -> io::Result<()> {
    let length = client.read_u32().await?;
    if !(8..=MAX_START).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut rest = vec![0; length as usize - 4];
    client.read_exact(&mut rest).await?;
    client.write_all(WELCOME).await
}

/// How a client's turn ended.
struct ClientTurnEnd {
    /// Whether the client may have another one.
    stays: bool,
    /// Whether the connection can serve another client.
    is_reusable: bool,
}

impl ClientTurnEnd {
    /// Neither the client nor the connection is of any further use.
    const LOST: Self = Self {
        stays: false,
        is_reusable: false,
    };
}

/// Who said something, and how much of it there is.
enum Speaks {
    Server(io::Result<usize>),
    Client(usize),
}

/// Passes messages on until the client's turn is over.
async fn converse(
    server: &mut dyn ServerStream,
    client: &mut UnixStream,
    mut dialogue: Dialogue,
    first: &[u8],
) -> io::Result<ClientTurnEnd> {
    server.write_all(first).await?;
    server.flush().await?;
    let mut asked = vec![0; AT_ONCE];
    let mut answered = vec![0; AT_ONCE];
    loop {
        let speaks = async {
            tokio::select! {
                read = server.read(&mut answered) => Some(Speaks::Server(read)),
                read = client.read(&mut asked) => Some(Speaks::Client(read.unwrap_or(0))),
            }
        };
        let patience = if dialogue.is_owed() {
            ANSWERS_WITHIN
        } else {
            GOES_ON_WITHIN
        };
        match timeout(patience, speaks).await.unwrap_or(None) {
            // A client that was stopped, or a server that is gone, would hold up the others.
            None => return Ok(ClientTurnEnd::LOST),
            Some(Speaks::Server(read)) => {
                let read = read?;
                if read == 0 {
                    return Ok(ClientTurnEnd::LOST);
                }
                dialogue.server_says(&answered[..read]);
                let passed = timeout(READS_WITHIN, client.write_all(&answered[..read])).await;
                if !matches!(passed, Ok(Ok(()))) {
                    let is_reusable = end(server, &mut dialogue).await;
                    return Ok(ClientTurnEnd {
                        stays: false,
                        is_reusable,
                    });
                }
                if dialogue.is_over() {
                    return Ok(ClientTurnEnd {
                        stays: true,
                        is_reusable: true,
                    });
                }
            }
            Some(Speaks::Client(read)) => {
                dialogue.client_says(&asked[..read]);
                // The server would take a farewell as its own, so only what came before it is passed on.
                let farewell = if dialogue.leaves() { FAREWELL } else { 0 };
                let passed = read.checked_sub(farewell).map(|to| &asked[..to]);
                server.write_all(passed.unwrap_or_default()).await?;
                server.flush().await?;
                if read == 0 || dialogue.leaves() {
                    let ended = end(server, &mut dialogue).await;
                    return Ok(ClientTurnEnd {
                        stays: false,
                        is_reusable: ended && passed.is_some(),
                    });
                }
            }
        }
    }
}

/// Waits for the answers to a client that is gone; returns whether the connection can be used again.
async fn end(server: &mut dyn ServerStream, dialogue: &mut Dialogue) -> bool {
    let mut answered = vec![0; AT_ONCE];
    let finish = async {
        while dialogue.is_owed() {
            match server.read(&mut answered).await {
                Ok(read) if read > 0 => dialogue.server_says(&answered[..read]),
                _ => return false,
            }
        }
        dialogue.is_over()
    };
    timeout(ENDS_WITHIN, finish).await.unwrap_or(false)
}
