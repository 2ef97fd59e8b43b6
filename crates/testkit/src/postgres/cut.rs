//! A link to a server that can be cut, and that remembers who tried to use it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::PostgresServer;

/// What is passed on, and what is not.
#[derive(Debug, Default)]
struct Orders {
    /// Swallow the server's answer to the next COMMIT of a change, and close that connection.
    at_commit: AtomicBool,
    /// Close every new connection from then on.
    stays_cut: AtomicBool,
    is_cut: AtomicBool,
    /// When somebody tried to connect, also while the server was down.
    attempts: Mutex<Vec<Instant>>,
}

impl Orders {
    fn note_attempt(&self) {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.push(Instant::now());
    }
}

/// A port that leads to a server, until it is cut.
#[derive(Debug)]
pub struct Cut {
    port: u16,
    to: u16,
    orders: Arc<Orders>,
}

impl Cut {
    pub fn before(server: &PostgresServer) -> Cut {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let orders = Arc::new(Orders::default());
        let (to, given) = (server.port(), Arc::clone(&orders));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                given.note_attempt();
                if given.is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                // A server that is down closes the connection.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", to)) {
                    link(&client, &server, &given);
                }
            }
        });
        Cut { port, to, orders }
    }

    /// A URL of the server, by this link.
    pub fn url(&self, url: &str) -> String {
        url.replace(&format!(":{}/", self.to), &format!(":{}/", self.port))
    }

    /// Swallows the answer to the next COMMIT of a change; the server is reached again at once.
    pub fn at_next_commit(&self) {
        self.orders.at_commit.store(true, Ordering::SeqCst);
    }

    /// The same, and nothing reaches the server any more.
    pub fn for_good_at_next_commit(&self) {
        self.orders.stays_cut.store(true, Ordering::SeqCst);
        self.at_next_commit();
    }

    /// Whether an answer was swallowed since it was asked for.
    pub fn has_cut(&self) -> bool {
        !self.orders.at_commit.load(Ordering::SeqCst)
    }

    /// When somebody tried to connect, whether the server was there or not.
    pub fn attempts(&self) -> Vec<Instant> {
        let attempts = self.orders.attempts.lock();
        attempts.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.orders.stays_cut.store(false, Ordering::SeqCst);
        self.orders.is_cut.store(false, Ordering::SeqCst);
    }
}

fn link(client: &TcpStream, server: &TcpStream, orders: &Arc<Orders>) {
    let cut = Arc::new(AtomicBool::new(false));
    let again = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
    let (mut from, mut to) = (again(client), again(server));
    let (mut back, mut answers) = (again(client), again(server));
    let (orders, seen) = (Arc::clone(orders), Arc::clone(&cut));
    std::thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let sent = &buffer[..length];
            let has = |text: &[u8]| sent.windows(text.len()).any(|part| part == text);
            // Heartbeats are not named.
            if has(b"COMMIT")
                && has(b"INSERT INTO commits")
                && orders.at_commit.swap(false, Ordering::SeqCst)
            {
                seen.store(true, Ordering::SeqCst);
                let stays = orders.stays_cut.load(Ordering::SeqCst);
                orders.is_cut.store(stays, Ordering::SeqCst);
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        // The server learns that its client is gone.
        drop(to.shutdown(Shutdown::Write));
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(length @ 1..) = answers.read(&mut buffer) {
            if cut.load(Ordering::SeqCst) {
                // Its answers are read on: a server that cannot write one ends the transaction before its COMMIT.
                drop(back.shutdown(Shutdown::Both));
                continue;
            }
            if back.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        drop(back.shutdown(Shutdown::Both));
    });
}
