//! A link that a test cuts, delays and freezes.
//!
//! A frozen link is half open: the kernel accepts what is written to it, and nothing arrives. What was accepted arrives
//! when it is thawed, even if its writer is gone by then.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often a link looks what was done to it.
const LOOK: Duration = Duration::from_millis(10);

/// A proxy in front of a server of this machine.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<ProxyState>,
}

#[derive(Debug, Default)]
struct ProxyState {
    /// Links that began before the last cut are over.
    cuts: AtomicU64,
    frozen: AtomicBool,
    delay: AtomicU64,
    /// How many commits of a change get no answer.
    unanswered: AtomicU64,
    over: AtomicBool,
}

impl ProxyState {
    /// Whether what a client sends is a commit that gets no answer. Heartbeats are not named in `commits`.
    fn leaves_unanswered(&self, sent: &[u8]) -> bool {
        let has = |text: &[u8]| sent.windows(text.len()).any(|part| part == text);
        let take = |left: u64| left.checked_sub(1);
        has(b"COMMIT")
            && has(b"INSERT INTO commits")
            && self
                .unanswered
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                .is_ok()
    }
}

impl Proxy {
    /// Forwards to a port of this machine.
    #[track_caller]
    pub fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let state = Arc::new(ProxyState::default());
        let seen = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if seen.over.load(Ordering::SeqCst) {
                    break;
                }
                // A server that is down refuses; so does the proxy.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", to)) {
                    link(&client, &server, &seen);
                }
            }
        });
        Proxy { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends all links.
    pub fn cut(&self) {
        self.state.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// Lets nothing arrive until this is taken back.
    pub fn freeze(&self, frozen: bool) {
        self.state.frozen.store(frozen, Ordering::SeqCst);
    }

    /// Lets this many commits of changes arrive, and ends their links instead of passing on the answers.
    pub fn leave_commits_unanswered(&self, count: u64) {
        self.state.unanswered.store(count, Ordering::SeqCst);
    }

    /// How many of them are still to come.
    pub fn unanswered_left(&self) -> u64 {
        self.state.unanswered.load(Ordering::SeqCst)
    }

    /// Lets everything arrive this much later.
    pub fn delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.state.delay.store(millis, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn link(client: &TcpStream, server: &TcpStream, state: &Arc<ProxyState>) {
    let born = state.cuts.load(Ordering::SeqCst);
    let is_mute = Arc::new(AtomicBool::new(false));
    for (from, to, asks) in [(client, server, true), (server, client, false)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let way = ProxyDirection {
            state: Arc::clone(state),
            born,
            asks,
            is_mute: Arc::clone(&is_mute),
        };
        std::thread::spawn(move || {
            if way.pump(&from, &to).is_err() {
                // Either end is gone.
            }
            for end in [&from, &to] {
                drop(end.shutdown(Shutdown::Both));
            }
        });
    }
}

/// One direction of a link.
struct ProxyDirection {
    state: Arc<ProxyState>,
    born: u64,
    /// Whether it leads to the server.
    asks: bool,
    /// Whether the server's answers are kept back.
    is_mute: Arc<AtomicBool>,
}

impl ProxyDirection {
    fn is_over(&self) -> bool {
        let state = &self.state;
        state.over.load(Ordering::SeqCst) || state.cuts.load(Ordering::SeqCst) != self.born
    }

    fn pump(&self, mut from: &TcpStream, mut to: &TcpStream) -> std::io::Result<()> {
        from.set_read_timeout(Some(LOOK))?;
        let mut bytes = vec![0; 16 * 1024];
        while !self.is_over() {
            let count = match from.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            let sent = &bytes[..count];
            pause(Duration::from_millis(
                self.state.delay.load(Ordering::SeqCst),
            ));
            while self.state.frozen.load(Ordering::SeqCst) && !self.is_over() {
                pause(LOOK);
            }
            if self.asks && self.state.leaves_unanswered(sent) {
                self.is_mute.store(true, Ordering::SeqCst);
            }
            if self.asks || !self.is_mute.load(Ordering::SeqCst) {
                to.write_all(sent)?;
                continue;
            }
            // The last bytes of an answer show that the server is ready again, so it has committed.
            if is_ready(sent) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Whether an answer ends with ReadyForQuery outside a transaction.
fn is_ready(answer: &[u8]) -> bool {
    answer.ends_with(b"Z\0\0\0\x05I")
}

/// A slow link takes its time; nothing unparks its threads.
fn pause(length: Duration) {
    if !length.is_zero() {
        std::thread::park_timeout(length);
    }
}
