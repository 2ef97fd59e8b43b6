//! tmux, controlled over the socket of one of its servers.
//!
//! No server is ever started: the commands used here start none, and a socket that is missing, or
//! another user's, is not used. A server that does not answer in time is left alone, and the client
//! is killed. Several servers are asked at the same time, with one deadline.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tenure_core::ignore::Ignore;
use tenure_host::{clock, env, pause};

/// How long all servers together may take to list their panes.
const LOOK: Duration = Duration::from_millis(300);
/// How long a command for a person may take.
const ACT: Duration = Duration::from_secs(5);
/// The longest answer.
const MAX_LENGTH: usize = 1 << 20;

/// The separator between two fields. Without a UTF-8 locale tmux prints `_` for unprintable
/// characters, including tabs.
const GAP: char = '|';
/// The fields of a pane, on one line each. Names come last, because they may contain anything; that of a session has no
/// colon.
const PANES: &str = "P|#{pane_id}|#{pane_tty}|#{pane_pid}|#{session_attached}|#{automatic-rename}|\
     #{session_name}:#{window_index}.#{pane_index}|#{window_name}";
/// The pane that each client shows.
const CLIENTS: &str = "C|#{pane_id}";

const QUESTION: [&str; 8] = [
    "list-panes",
    "-a",
    "-F",
    PANES,
    ";",
    "list-clients",
    "-F",
    CLIENTS,
];

/// The panes of one server.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TmuxServer {
    panes: HashMap<String, Pane>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// Its name for people: `session:window.pane`.
    pub name: String,
    /// The device of its terminal.
    pub terminal: String,
    /// The process that it was opened for.
    pub pid: u32,
    /// Whether a client shows its session.
    pub is_attached: bool,
    /// Whether it is the active one of a client, so that its person sees it.
    pub is_seen: bool,
    /// The name of its window, if tmux did not make it up from what runs there.
    pub window_name: Option<String>,
}

impl Pane {
    /// Its tmux session, and its window and pane there.
    pub fn position(&self) -> Option<(&str, u32, u32)> {
        let (session, numbers) = self.name.split_once(':')?;
        let (window, pane) = numbers.split_once('.')?;
        Some((session, window.parse().ok()?, pane.parse().ok()?))
    }
}

/// Words that tmux takes as they are where it reads a format: `#(…)` would be a command.
pub fn literal(words: &str) -> String {
    words.replace('#', "##")
}

impl TmuxServer {
    /// Asks the server at this socket for a person; `None` if it does not answer, or there is no tmux.
    pub fn look(socket: &str) -> Option<Self> {
        Self::ask(&[socket], ACT).pop()?
    }

    /// Asks all of these with one deadline; `None` for those that do not answer.
    pub fn look_at_all(sockets: &[&str]) -> Vec<Option<Self>> {
        Self::ask(sockets, LOOK)
    }

    fn ask(sockets: &[&str], within: Duration) -> Vec<Option<Self>> {
        let until = clock::instant() + within;
        let answers = ask_all(&program(), sockets, &QUESTION, until);
        let read = |said: Vec<u8>| Self::read(&String::from_utf8_lossy(&said));
        answers.into_iter().map(|said| said.map(read)).collect()
    }

    pub fn pane(&self, id: &str) -> Option<&Pane> {
        self.panes.get(id)
    }

    fn read(said: &str) -> Self {
        let mut server = Self::default();
        for line in said.lines() {
            let parts: Vec<&str> = line.splitn(7, GAP).collect();
            match parts[..] {
                ["P", id, terminal, pid, attached, renames, names] => {
                    let colon = names.find(':').unwrap_or(0);
                    let gap = names[colon..].find(GAP).map(|gap| colon + gap);
                    let (name, window) = names.split_at(gap.unwrap_or(names.len()));
                    let pane = Pane {
                        name: name.to_owned(),
                        terminal: terminal.to_owned(),
                        pid: pid.parse().unwrap_or(0),
                        is_attached: attached != "0",
                        is_seen: false,
                        window_name: (renames == "0")
                            .then(|| window.trim_start_matches(GAP).to_owned()),
                    };
                    server.panes.insert(id.to_owned(), pane);
                }
                ["C", id] => {
                    if let Some(pane) = server.panes.get_mut(id) {
                        pane.is_seen = true;
                    }
                }
                _ => {}
            }
        }
        server
    }
}

/// Shows a pane to the clients of its session, and with `switches` to the caller's own client.
pub fn show(socket: &str, pane: &str, switches: bool) -> Result<(), String> {
    let mut words = vec!["select-window", "-t", pane, ";", "select-pane", "-t", pane];
    if switches {
        words.extend([";", "switch-client", "-t", pane]);
    }
    ask(socket, &words, ACT).map(drop)
}

/// The socket of the tmux server that the caller runs in, if any.
pub fn own_socket() -> Option<String> {
    let own = env::var("TMUX")?.into_string().ok()?;
    own.rsplitn(3, ',').nth(2).map(str::to_owned)
}

/// Whether two paths name one server.
pub fn is_same(one: &str, other: &str) -> bool {
    let place = |path: &str| {
        let found = fs_err::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    one == other || place(one).is_some_and(|found| place(other) == Some(found))
}

/// The program; a variable may name another one.
pub fn program() -> OsString {
    let named = env::var("TENURE_TMUX").filter(|named| !named.is_empty());
    named.unwrap_or_else(|| "tmux".into())
}

fn ask(socket: &str, words: &[&str], limit: Duration) -> Result<Vec<u8>, String> {
    let until = clock::instant() + limit;
    let mut client = Client::start(&program(), socket, words)?;
    read_until(std::slice::from_mut(&mut client), until);
    client.finish(until)
}

/// Asks several servers the same at the same time. They share one deadline, however many do not
/// answer.
fn ask_all(
    program: &OsStr,
    sockets: &[&str],
    words: &[&str],
    until: Instant,
) -> Vec<Option<Vec<u8>>> {
    let start = |socket: &&str| -> Option<Client> {
        let in_time = clock::instant() < until;
        in_time.then(|| Client::start(program, socket, words).ok())?
    };
    let started: Vec<Option<Client>> = sockets.iter().map(start).collect();
    let (which, mut clients): (Vec<usize>, Vec<Client>) = started
        .into_iter()
        .enumerate()
        .filter_map(|(at, client)| Some((at, client?)))
        .unzip();
    read_until(&mut clients, until);
    let mut answers = vec![None; sockets.len()];
    for (at, client) in which.into_iter().zip(clients) {
        answers[at] = client.finish(until).ok();
    }
    answers
}

/// A client of a server, which prints its answer and exits.
struct Client {
    child: Child,
    /// Its output; none once it was read completely, or was too long.
    output: Option<ChildStdout>,
    said: Vec<u8>,
    /// Whether its output is complete.
    is_whole: bool,
}

impl Client {
    fn start(program: &OsStr, socket: &str, words: &[&str]) -> Result<Self, String> {
        let found = fs_err::metadata(socket).map_err(|error| error.to_string())?;
        if !found.file_type().is_socket() || found.uid() != rustix::process::geteuid().as_raw() {
            return Err(format!("{socket} is not a socket that you own"));
        }
        let mut child = Command::new(program)
            .args(["-S", socket])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        Ok(Self {
            output: child.stdout.take(),
            child,
            said: Vec::new(),
            is_whole: false,
        })
    }

    /// Reads the available output.
    fn receive(&mut self) {
        let Some(output) = &mut self.output else {
            return;
        };
        let mut piece = [0; 4096];
        match output.read(&mut piece) {
            Ok(0) => self.is_whole = true,
            Ok(count) if self.said.len() + count <= MAX_LENGTH => {
                self.said.extend_from_slice(&piece[..count]);
                return;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return,
            Ok(_) | Err(_) => {}
        }
        self.output = None;
    }

    /// Its output, if it was complete and the client exited in time; otherwise the client is
    /// killed.
    fn finish(mut self, until: Instant) -> Result<Vec<u8>, String> {
        let ended = self.is_whole && ends_until(&mut self.child, until);
        if !ended {
            self.child.kill().ignore("it may be gone already");
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if !ended {
            Err("tmux did not answer in time".to_owned())
        } else if status.success() {
            Ok(self.said)
        } else {
            Err(format!("tmux failed: {status}"))
        }
    }
}

/// Reads the output of all of them, until each has ended it or the time is up.
fn read_until(clients: &mut [Client], until: Instant) {
    loop {
        let left = until.saturating_duration_since(clock::instant());
        let ready: Vec<bool> = {
            let outputs = clients.iter().filter_map(|client| client.output.as_ref());
            let mut polled: Vec<PollFd<'_>> = outputs
                .map(|output| PollFd::new(output, PollFlags::IN))
                .collect();
            let Some(timeout) = Timespec::try_from(left).ok().filter(|_| !left.is_zero()) else {
                return;
            };
            if polled.is_empty() {
                return;
            }
            match poll(&mut polled, Some(&timeout)) {
                Ok(_) => polled.iter().map(|one| !one.revents().is_empty()).collect(),
                // Interrupted by a signal: repeat for the rest of the time.
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
        };
        let open = clients.iter_mut().filter(|client| client.output.is_some());
        for (client, _) in open.zip(ready).filter(|(_, is_ready)| *is_ready) {
            client.receive();
        }
    }
}

/// Waits for a client to exit after its output ended.
fn ends_until(child: &mut Child, until: Instant) -> bool {
    while !matches!(child.try_wait(), Ok(Some(_))) {
        if clock::instant() >= until {
            return false;
        }
        pause::sleep(Duration::from_millis(1));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_answer_is_read() {
        let said = "P|%0|/dev/pts/0|118|1|1|main x:0.0|bash\n\
                    P|%1|/dev/pts/1|119|0|0|a|b:1.2|api: v2|x\n\
                    C|%0\nC|%9\nX\nP|%2\n";
        let server = TmuxServer::read(said);
        let first = server.pane("%0").unwrap();
        assert_eq!((first.name.as_str(), first.pid), ("main x:0.0", 118));
        assert!(first.is_attached && first.is_seen);
        assert_eq!(first.window_name, None, "tmux made it up");
        let second = server.pane("%1").unwrap();
        assert_eq!(second.name, "a|b:1.2");
        assert_eq!(second.position(), Some(("a|b", 1, 2)));
        assert_eq!(second.window_name.as_deref(), Some("api: v2|x"));
        assert!(!second.is_attached && !second.is_seen);
        assert_eq!(server.panes.len(), 2);
    }

    #[test]
    fn no_server_is_started_where_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        assert_eq!(TmuxServer::look(socket.to_str().unwrap()), None);
        assert!(!socket.exists());
        fs_err::write(&socket, "").unwrap();
        assert_eq!(TmuxServer::look(socket.to_str().unwrap()), None);
    }

    fn sockets(dir: &std::path::Path, count: usize) -> Vec<String> {
        let socket = |number: usize| {
            let path = dir.join(number.to_string());
            // The name stays when the listener is closed.
            std::os::unix::net::UnixListener::bind(&path).unwrap();
            path.to_str().unwrap().to_owned()
        };
        (0..count).map(socket).collect()
    }

    fn script(dir: &std::path::Path, text: &str) -> OsString {
        use std::os::unix::fs::PermissionsExt;
        let path = dir.join("program");
        fs_err::write(&path, format!("#!/bin/sh\ncd '{}'\n{text}", dir.display())).unwrap();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.into_os_string()
    }

    /// Each of these answers only after all of them were asked.
    #[test]
    fn servers_are_asked_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let program = script(
            dir.path(),
            ">asked.$$\nwhile [ \"$(ls asked.* | wc -l)\" -lt 3 ]; do sleep 0.01; done\necho \"$2\"\n",
        );
        let sockets = sockets(dir.path(), 3);
        let sockets: Vec<&str> = sockets.iter().map(String::as_str).collect();
        let until = clock::instant() + Duration::from_secs(20);
        let answers = ask_all(&program, &sockets, &[], until);
        let expected: Vec<_> = sockets
            .iter()
            .map(|socket| Some(format!("{socket}\n").into_bytes()))
            .collect();
        assert_eq!(answers, expected);
    }

    #[test]
    fn a_server_that_is_silent_costs_the_others_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let program = script(
            dir.path(),
            "case $2 in */0) exec sleep 600;; */1) exit 3;; esac\necho here\n",
        );
        let sockets = sockets(dir.path(), 3);
        let sockets: Vec<&str> = sockets.iter().map(String::as_str).collect();
        let until = clock::instant() + Duration::from_secs(3);
        let answers = ask_all(&program, &sockets, &[], until);
        assert_eq!(answers, [None, None, Some(b"here\n".to_vec())]);
    }

    #[test]
    fn a_signal_in_between_does_not_end_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        // A signal to a thread's id goes to that thread first. The handler does nothing.
        let program = script(
            dir.path(),
            "for _ in 1 2 3; do kill -XFSZ $3; sleep 0.05; done\necho here\n",
        );
        let far = rustix::process::Rlimit {
            current: Some(1 << 40),
            maximum: None,
        };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, far).unwrap();
        tenure_host::file_limit::survive();
        let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
        let sockets = sockets(dir.path(), 1);
        let until = clock::instant() + Duration::from_secs(20);
        let answers = ask_all(&program, &[&sockets[0]], &[&thread], until);
        assert_eq!(answers, [Some(b"here\n".to_vec())]);
    }
}
