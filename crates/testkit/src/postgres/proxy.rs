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
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Links that began before the last cut are over.
    cuts: AtomicU64,
    frozen: AtomicBool,
    delay: AtomicU64,
    over: AtomicBool,
}

impl Proxy {
    /// Forwards to a port of this machine.
    #[track_caller]
    pub fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let state = Arc::new(State::default());
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

fn link(client: &TcpStream, server: &TcpStream, state: &Arc<State>) {
    let born = state.cuts.load(Ordering::SeqCst);
    for (from, to) in [(client, server), (server, client)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            if pump(&from, &to, &state, born).is_err() {
                // Either end is gone.
            }
            for end in [&from, &to] {
                drop(end.shutdown(Shutdown::Both));
            }
        });
    }
}

fn pump(mut from: &TcpStream, mut to: &TcpStream, state: &State, born: u64) -> std::io::Result<()> {
    from.set_read_timeout(Some(LOOK))?;
    let mut bytes = vec![0; 16 * 1024];
    let is_over = || state.over.load(Ordering::SeqCst) || state.cuts.load(Ordering::SeqCst) != born;
    while !is_over() {
        let count = match from.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        pause(Duration::from_millis(state.delay.load(Ordering::SeqCst)));
        while state.frozen.load(Ordering::SeqCst) && !is_over() {
            pause(LOOK);
        }
        to.write_all(&bytes[..count])?;
    }
    Ok(())
}

/// A slow link takes its time; nothing unparks its threads.
fn pause(length: Duration) {
    if !length.is_zero() {
        std::thread::park_timeout(length);
    }
}
