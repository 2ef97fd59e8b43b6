//! tmux, asked and told over the socket of one of its servers.
//!
//! No server is ever started: what is asked for here starts none, and a socket that is not there, or another
//! user's, is not asked. A server that does not answer in time is left alone, and the client that asked is killed.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tenure_core::time::Timestamp;
use tenure_host::{clock, env, pause};

/// How long a server may take to say where its panes are.
const LOOK: Duration = Duration::from_millis(300);
/// How long it may take to do what a person asked for.
const ACT: Duration = Duration::from_secs(5);
/// No answer is longer.
const LONGEST: usize = 1 << 20;

/// What stands between two fields. Without a UTF-8 locale tmux prints `_` for what cannot be printed, also for a tab.
const GAP: char = '|';
/// What a pane is told apart by, on one line each. Names come last: they may hold anything.
const PANES: &str = "P|#{pane_id}|#{pane_tty}|#{pane_pid}|#{session_attached}|\
     #{session_name}:#{window_index}.#{pane_index}";
/// The pane that each client shows, and when its person last pressed a key.
const CLIENTS: &str = "C|#{pane_id}|#{client_activity}";

/// The panes of one server.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Server {
    panes: HashMap<String, Pane>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// What people call it: `session:window.pane`.
    pub name: String,
    /// Its terminal's device.
    pub terminal: String,
    /// The process that it was opened for.
    pub pid: u32,
    /// Whether a client shows its session.
    pub is_attached: bool,
    /// When a person last pressed a key there, if a client shows it now.
    pub attended_at: Option<Timestamp>,
}

impl Server {
    /// Asks the server at this socket; nothing where it does not answer, or there is no tmux.
    pub fn look(socket: &str) -> Option<Self> {
        let words = [
            "list-panes",
            "-a",
            "-F",
            PANES,
            ";",
            "list-clients",
            "-F",
            CLIENTS,
        ];
        let said = ask(socket, &words, LOOK).ok()?;
        Some(Self::read(&String::from_utf8_lossy(&said)))
    }

    pub fn pane(&self, id: &str) -> Option<&Pane> {
        self.panes.get(id)
    }

    fn read(said: &str) -> Self {
        let mut server = Self::default();
        for line in said.lines() {
            let parts: Vec<&str> = line.splitn(6, GAP).collect();
            match parts[..] {
                ["P", id, terminal, pid, attached, name] => {
                    let pane = Pane {
                        name: name.to_owned(),
                        terminal: terminal.to_owned(),
                        pid: pid.parse().unwrap_or(0),
                        is_attached: attached != "0",
                        attended_at: None,
                    };
                    server.panes.insert(id.to_owned(), pane);
                }
                ["C", id, seconds] => {
                    let seconds: Option<i64> = seconds.parse().ok();
                    let at = seconds.map(|seconds| Timestamp(seconds.saturating_mul(1_000)));
                    if let Some(pane) = server.panes.get_mut(id) {
                        pane.attended_at = pane.attended_at.max(at);
                    }
                }
                _ => {}
            }
        }
        server
    }
}

/// Shows a pane to who looks at its session, and with `switches` to the client that the caller sits at.
pub fn show(socket: &str, pane: &str, switches: bool) -> Result<(), String> {
    let mut words = vec!["select-window", "-t", pane, ";", "select-pane", "-t", pane];
    if switches {
        words.extend([";", "switch-client", "-t", pane]);
    }
    ask(socket, &words, ACT).map(drop)
}

/// The socket of the server that the caller sits in, if it sits in one.
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

/// The program, which a variable may name.
pub fn program() -> OsString {
    let named = env::var("TENURE_TMUX").filter(|named| !named.is_empty());
    named.unwrap_or_else(|| "tmux".into())
}

fn ask(socket: &str, words: &[&str], limit: Duration) -> Result<Vec<u8>, String> {
    let found = fs_err::metadata(socket).map_err(|error| error.to_string())?;
    if !found.file_type().is_socket() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("{socket} is not a socket of yours"));
    }
    let program = program();
    let mut child = Command::new(&program)
        .args(["-S", socket])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let until = clock::instant() + limit;
    let said = read_until(&mut child, until);
    let ended = said.is_some() && ends_until(&mut child, until);
    if !ended {
        // Already gone is as good.
        child.kill().ok();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    match said {
        Some(said) if ended && status.success() => Ok(said),
        _ if ended => Err(format!("tmux refused: {status}")),
        _ => Err("tmux did not answer in time".to_owned()),
    }
}

fn read_until(child: &mut Child, until: Instant) -> Option<Vec<u8>> {
    let mut output = child.stdout.take()?;
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = until.saturating_duration_since(clock::instant());
        let timeout = Timespec::try_from(left).ok()?;
        let mut polled = [PollFd::new(&output, PollFlags::IN)];
        if left.is_zero() || poll(&mut polled, Some(&timeout)).ok()? == 0 || said.len() > LONGEST {
            return None;
        }
        match output.read(&mut piece).ok()? {
            0 => return Some(said),
            count => said.extend_from_slice(&piece[..count]),
        }
    }
}

/// Waits for the end of a client that has said everything.
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
        let said = "P|%0|/dev/pts/0|118|1|main x:0.0\nP|%1|/dev/pts/1|119|0|a|b:1.0\n\
                    C|%0|1794784549\nC|%0|1794784500\nC|%9|1\nX\nP|%2\n";
        let server = Server::read(said);
        let first = server.pane("%0").unwrap();
        assert_eq!((first.name.as_str(), first.pid), ("main x:0.0", 118));
        assert!(first.is_attached);
        assert_eq!(first.attended_at, Some(Timestamp(1_794_784_549_000)));
        let second = server.pane("%1").unwrap();
        assert_eq!(second.name, "a|b:1.0");
        assert!(!second.is_attached && second.attended_at.is_none());
        assert_eq!(server.panes.len(), 2);
    }

    #[test]
    fn no_server_is_started_where_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        assert_eq!(Server::look(socket.to_str().unwrap()), None);
        assert!(!socket.exists());
        fs_err::write(&socket, "").unwrap();
        assert_eq!(Server::look(socket.to_str().unwrap()), None);
    }
}
