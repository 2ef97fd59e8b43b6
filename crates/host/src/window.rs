//! The window of a conversation that an agent's daemon runs.
//!
//! The daemon is asked, over the socket that its own windows use, where the conversation's window listens; the
//! process that listens there is the window. Each step is a fact: the peer of the socket is the daemon that
//! runs the hook, the daemon reports the port of this conversation, the kernel reports the socket that listens
//! on that port, and a process of this user has that socket open. If one of them fails, there is no window.
//! Nothing is inferred from directories, terminals, times or names.
//!
//! The daemon is asked when a conversation starts, and when its window is unknown or gone; never at other
//! events. A reader of a conversation without a window asks the same daemon whether its turn is still in
//! progress. One question has one deadline, far below a hook's. *Crash*: a closed connection leaves nothing
//! behind. *Clock jump*: the deadline is on the monotonic clock. *Older version*: a daemon that does not know
//! the question returns an error.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_core::agent::{self, DaemonSpec};
use tenure_core::id::NativeId;
use tenure_core::process::{Ancestor, Observer, Process};

use crate::env::{self, Environment};
use crate::{clock, peer, process, running, system};

/// How long the daemon may take. It usually takes a few milliseconds.
const PATIENCE: Duration = Duration::from_millis(600);
/// Longer than any relevant answer.
const MAX_LENGTH: usize = 4 << 20;

/// The window, if the daemon reports it and it still runs.
pub(crate) fn find(
    spec: &DaemonSpec,
    daemon: &Process,
    conversation: &NativeId,
    observer: &Observer,
) -> Option<Ancestor> {
    let until = clock::instant() + PATIENCE;
    let socket = socket_of(spec, daemon)?;
    let port = Daemon::reach(&socket, daemon, until)
        .and_then(|mut daemon| daemon.port_of(spec, conversation))
        .ok()
        .flatten()?;
    let own = rustix::process::geteuid().as_raw();
    let inode = system::listening_socket(port, own)?;
    let agent = agent::whose_daemon(spec)?;
    let found = running::with_socket(inode, agent, observer, until)?;
    // The conversation was loaded before its event was sent, so a window that started later only reuses its
    // port.
    let own = process::identify(std::process::id(), observer).ok()?;
    began_before(&found.process, &own).then_some(found)
}

/// Whether a process started before another one, as far as tick rounding in a time namespace shows.
fn began_before(one: &Process, other: &Process) -> bool {
    one.start.ticks <= other.start.ticks.saturating_add(1)
}

/// Whether a turn of a conversation is in progress; `None` if the daemon does not report it.
pub(crate) fn has_turn(
    spec: &DaemonSpec,
    daemon: &Process,
    conversation: &NativeId,
) -> Option<bool> {
    let until = clock::instant() + PATIENCE;
    let socket = socket_of(spec, daemon)?;
    let mut daemon = Daemon::reach(&socket, daemon, until).ok()?;
    daemon.has_turn(spec, conversation).ok().flatten()
}

/// Where the daemon listens: in its own home, which may differ from the caller's.
fn socket_of(spec: &DaemonSpec, daemon: &Process) -> Option<PathBuf> {
    let theirs = Environment::of(daemon.pid);
    let var = |name: &str| match &theirs {
        Some(theirs) => theirs.var(name),
        None => env::var(name).filter(|value| !value.is_empty()),
    };
    let own = match var(spec.variable) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(var("HOME")?).join(spec.home),
    };
    let named = own.join(spec.socket);
    // A link keeps the name of a socket short enough for the kernel.
    Some(fs_err::read_link(&named).unwrap_or(named))
}

/// A connection to a daemon.
struct Daemon {
    stream: UnixStream,
    /// Received data that was not parsed yet.
    received: Vec<u8>,
    until: Instant,
}

impl Daemon {
    /// Connects, without waiting for a daemon that accepts no connections, and only to exactly this process.
    fn reach(socket: &Path, daemon: &Process, until: Instant) -> io::Result<Daemon> {
        let stream = peer::connect_to(socket)?;
        if system::peer(stream.as_fd())?.pid != daemon.pid {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut reached = Daemon {
            stream,
            received: Vec::new(),
            until,
        };
        reached.greet()?;
        Ok(reached)
    }

    fn greet(&mut self) -> io::Result<()> {
        self.send(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
              Sec-WebSocket-Key: dGVudXJlLXRlbnVyZS10ZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        )?;
        let end = loop {
            let ends = |part: &[u8]| part == b"\r\n\r\n";
            match self.received.windows(4).position(ends) {
                Some(at) => break at + 4,
                None => self.receive()?,
            }
        };
        let head: Vec<u8> = self.received.drain(..end).collect();
        if head.starts_with(b"HTTP/1.1 101") {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    /// The port on which the window of a conversation listens, if it has one.
    fn port_of(&mut self, spec: &DaemonSpec, conversation: &NativeId) -> io::Result<Option<u16>> {
        self.begin()?;
        let about = json!({
            "threadId": conversation.as_str(),
            "serverName": spec.server,
            "detail": "toolsAndAuthOnly",
        });
        let answer = self.call(2, spec.method, &about)?;
        Ok(port_in(&answer, spec.server))
    }

    fn has_turn(&mut self, spec: &DaemonSpec, conversation: &NativeId) -> io::Result<Option<bool>> {
        self.begin()?;
        let about = json!({"threadId": conversation.as_str(), "includeTurns": false});
        let answer = self.call(2, spec.state, &about)?;
        Ok(turn_in(&answer, conversation))
    }

    fn begin(&mut self) -> io::Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({"name": "tenure", "title": null, "version": version});
        self.call(1, "initialize", &json!({"clientInfo": client}))?;
        self.tell(&json!({"method": "initialized"}))
    }

    fn call(&mut self, id: u32, method: &str, params: &Value) -> io::Result<Value> {
        self.tell(&json!({"id": id, "method": method, "params": params}))?;
        loop {
            let message = self.message()?;
            // It also notifies its clients of other events in between.
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    fn tell(&mut self, message: &Value) -> io::Result<()> {
        self.send(&frame(message.to_string().as_bytes()))
    }

    /// The next message, assembled from its frames.
    fn message(&mut self) -> io::Result<Value> {
        let mut text = Vec::new();
        loop {
            let Some((first, length, head)) = head_of(&self.received)? else {
                self.receive()?;
                continue;
            };
            if text.len() + length > MAX_LENGTH {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            while self.received.len() < head + length {
                self.receive()?;
            }
            let body = self.received.drain(..head + length).skip(head);
            match first & 0x0f {
                0..=2 => text.extend(body),
                8 => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => drop(body),
            }
            if first & 0x80 != 0 && first & 0x0f <= 2 {
                return serde_json::from_slice(&text).map_err(io::Error::other);
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write_all(bytes)
    }

    fn receive(&mut self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        let mut part = [0; 16 << 10];
        match self.stream.read(&mut part) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.received.extend_from_slice(&part[..count]);
                Ok(())
            }
            // Interrupted by a signal; a caller that needs more reads again.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn left(&self) -> io::Result<Duration> {
        match self.until.saturating_duration_since(clock::instant()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

/// A text in one client frame, whose mask is zero and changes nothing.
fn frame(text: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u16::try_from(text.len()) {
        Ok(short @ 0..=125) => frame.push(0x80 | short.to_be_bytes()[1]),
        Ok(longer) => {
            frame.push(0x80 | 126);
            frame.extend(longer.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend((text.len() as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(text);
    frame
}

/// The first byte of a frame, the length of its body and its offset; none if more data is needed.
fn head_of(bytes: &[u8]) -> io::Result<Option<(u8, usize, usize)>> {
    let [first, second, rest @ ..] = bytes else {
        return Ok(None);
    };
    let (length, head) = match (second & 0x7f, rest) {
        (126, [a, b, ..]) => (u64::from(u16::from_be_bytes([*a, *b])), 4),
        (127, [a, b, c, d, e, f, g, h, ..]) => {
            (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), 10)
        }
        (126 | 127, _) => return Ok(None),
        (short, _) => (u64::from(short), 2),
    };
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if length > MAX_LENGTH || second & 0x80 != 0 {
        Err(io::ErrorKind::InvalidData.into())
    } else {
        Ok(Some((*first, length, head)))
    }
}

/// The port of the server with this name, if its address is local.
fn port_in(answer: &Value, server: &str) -> Option<u16> {
    let servers = answer["result"]["data"].as_array()?;
    let mut named = servers.iter().filter(|one| one["name"] == server);
    let (only, None) = (named.next()?, named.next()) else {
        return None;
    };
    let origin = only["httpOrigin"].as_str()?;
    origin.strip_prefix("http://127.0.0.1:")?.parse().ok()
}

/// Whether the conversation is in a turn; none if the answer is about another, or is unclear.
fn turn_in(answer: &Value, conversation: &NativeId) -> Option<bool> {
    let thread = &answer["result"]["thread"];
    if thread["id"] != conversation.as_str() {
        return None;
    }
    match thread["status"]["type"].as_str()? {
        "active" => Some(true),
        // The last is a turn that failed or met a limit; the next one makes it active again.
        "idle" | "notLoaded" | "systemError" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        clock::instant() + Duration::from_secs(60)
    }

    #[test]
    fn the_port_is_that_of_the_window_of_this_conversation_alone() {
        let answer = |servers: Value| json!({"id": 2, "result": {"data": servers}});
        let window = json!({"name": "codex_tui", "httpOrigin": "http://127.0.0.1:42233"});
        let other = json!({"name": "docs", "httpOrigin": "http://127.0.0.1:80"});
        let port = |servers: Value| port_in(&answer(servers), "codex_tui");
        assert_eq!(port(json!([other, window])), Some(42233));
        assert_eq!(port(json!([other])), None);
        assert_eq!(port(json!([])), None);
        assert_eq!(port(json!([window, window])), None);
        for elsewhere in [
            "http://192.0.2.1:42233",
            "https://127.0.0.1:1",
            "",
            "http://127.0.0.1:x",
        ] {
            let server = json!({"name": "codex_tui", "httpOrigin": elsewhere});
            assert_eq!(port(json!([server])), None, "{elsewhere}");
        }
        let refused = json!({"id": 2, "error": {"code": -32600, "message": "no"}});
        assert_eq!(port_in(&refused, "codex_tui"), None);
    }

    #[test]
    fn a_turn_is_over_only_where_the_daemon_says_so_of_this_conversation() {
        let conversation = NativeId::parse("t1").unwrap();
        let said = |id: &str, status: Value| {
            let answer = json!({"id": 2, "result": {"thread": {"id": id, "status": status}}});
            turn_in(&answer, &conversation)
        };
        let active = json!({"type": "active", "activeFlags": ["waitingOnApproval"]});
        assert_eq!(said("t1", active), Some(true));
        assert_eq!(said("t1", json!({"type": "idle"})), Some(false));
        assert_eq!(said("t1", json!({"type": "notLoaded"})), Some(false));
        let failed = json!({"type": "systemError"});
        assert_eq!(said("t1", failed), Some(false), "or it is never resumed");
        assert_eq!(said("t2", json!({"type": "idle"})), None);
        for unclear in [json!({"type": "later"}), json!({}), json!("idle")] {
            assert_eq!(said("t1", unclear), None);
        }
        let refused = json!({"id": 2, "error": {"code": -32600, "message": "no"}});
        assert_eq!(turn_in(&refused, &conversation), None);
    }

    #[test]
    fn frames_are_read_as_they_are_written_but_for_the_mask() {
        for length in [0, 1, 125, 126, 70_000] {
            let text = vec![b'x'; length];
            let mut sent = frame(&text);
            assert!(head_of(&sent).is_err(), "a server does not mask");
            sent[1] &= 0x7f;
            let (first, body, head) = head_of(&sent).unwrap().unwrap();
            assert_eq!((first, body), (0x81, length));
            assert_eq!(sent.len(), head + 4 + length);
            assert_eq!(head_of(&sent[..1]).unwrap(), None);
        }
    }

    /// A daemon that answers, and sends something else in between.
    #[test]
    fn a_daemon_is_asked_and_answers() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let server = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let plain = |value: &Value| {
            let mut sent = frame(value.to_string().as_bytes());
            let at = sent.len() - value.to_string().len();
            sent.drain(at - 4..at);
            sent[1] &= 0x7f;
            sent
        };
        let answers = std::thread::spawn(move || {
            let (mut client, _) = server.accept().unwrap();
            let mut part = [0; 4096];
            let mut received = String::new();
            let mut read_until = |client: &mut UnixStream, until: &str| {
                while !received.contains(until) {
                    let count = client.read(&mut part).unwrap();
                    received.push_str(&String::from_utf8_lossy(&part[..count]));
                }
            };
            read_until(&mut client, "\r\n\r\n");
            client
                .write_all(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
                .unwrap();
            read_until(&mut client, "clientInfo");
            client
                .write_all(&plain(&json!({"id": 1, "result": {}})))
                .unwrap();
            read_until(&mut client, r#""id":2"#);
            let other = plain(&json!({"method": "thread/started", "params": {"id": 2}}));
            client.write_all(&other).unwrap();
            let window = json!({"name": "w", "httpOrigin": "http://127.0.0.1:7"});
            let answer = plain(&json!({"id": 2, "result": {"data": [window]}}));
            let (one, two) = answer.split_at(5);
            client.write_all(one).unwrap();
            client.write_all(two).unwrap();
            received
        });
        let spec = DaemonSpec {
            flag: "",
            state: "",
            variable: "",
            home: "",
            socket: "",
            method: "servers",
            server: "w",
        };
        let process = |pid| Process {
            host: tenure_core::id::HostId::new("h"),
            boot: tenure_core::process::BootId {
                id: "b".into(),
                private: false,
            },
            pid_ns: 1,
            pid,
            start: tenure_core::process::StartTicks {
                ticks: 1,
                shifted: false,
            },
        };
        let conversation = NativeId::parse("t1").unwrap();
        let mut daemon = Daemon::reach(&socket, &process(std::process::id()), soon()).unwrap();
        assert_eq!(daemon.port_of(&spec, &conversation).unwrap(), Some(7));
        let received = answers.join().unwrap();
        assert!(received.contains(r#""threadId":"t1""#), "{received}");
        // Nothing listens there any more, and before that it was another process.
        assert!(Daemon::reach(&socket, &process(1), soon()).is_err());
    }

    #[test]
    fn a_socket_of_another_process_is_not_asked() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let _server = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let not_us = Process {
            host: tenure_core::id::HostId::new("h"),
            boot: tenure_core::process::BootId {
                id: "b".into(),
                private: false,
            },
            pid_ns: 1,
            pid: 1,
            start: tenure_core::process::StartTicks {
                ticks: 1,
                shifted: false,
            },
        };
        let refused = Daemon::reach(&socket, &not_us, soon()).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{refused}");
    }
}
