//! The server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use crate::pinned::{Pinned, Stat};
use crate::protocol::Started;
use crate::real::{RealWorld, children};

/// How long a server may take to exit.
const END: Duration = Duration::from_secs(20);

/// A private tmux server. Everything it runs ends with it.
#[derive(Debug)]
pub struct Tmux {
    pub(super) server: Arc<TmuxServer>,
}

/// The part of it that windows need.
#[derive(Debug)]
pub(super) struct TmuxServer {
    program: PathBuf,
    socket: PathBuf,
    variables: Vec<(String, String)>,
    process: Pinned,
}

impl Tmux {
    /// A new server; the programs in it have the world's variables and find this `tmux` on PATH.
    #[track_caller]
    pub fn start(world: &RealWorld) -> Tmux {
        let Some(program) = std::env::var_os("TENURE_TMUX").map(PathBuf::from) else {
            panic!("TENURE_TMUX names no program; run: scripts/test --real");
        };
        let bin = world.env().dir().join("bin/tmux");
        if !bin.exists() {
            std::os::unix::fs::symlink(&program, &bin).expect("a fresh directory is writable");
        }
        let socket = world.env().place().fresh("tmux");
        let mut variables = world.env().variables();
        variables.push(("TERM".to_owned(), "xterm-256color".to_owned()));
        // From 120 columns on, opencode shows a second column next to its text. The first window
        // keeps the server running after the last agent has exited.
        let words = [
            "new-session",
            "-d",
            "-x",
            "116",
            "-y",
            "45",
            "-s",
            "main",
            "-n",
            "stays",
            "-P",
            "-F",
            "#{pid}",
            "env",
            "sleep",
            "infinity",
        ];
        let said = client(&program, &socket, &variables, &words);
        let pid = said
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("no pid: {said}"));
        let process = pin(pid).unwrap_or_else(|| panic!("the server {pid} is gone"));
        let server = TmuxServer {
            program,
            socket,
            variables,
            process,
        };
        // An agent that cannot start shows why on its screen.
        server.run(&["set-option", "-g", "remain-on-exit", "failed"]);
        Tmux {
            server: Arc::new(server),
        }
    }

    pub fn pid(&self) -> u32 {
        self.server.process.started().pid
    }

    /// Runs a tmux command and returns its output.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        self.server.run(words)
    }

    /// Ends the server as `tmux kill-server` does: the programs in its windows are hung up.
    pub fn kill_server(&self) {
        self.server.try_run(&["kill-server"]).ok();
        let gone = self.server.process.wait_gone(END);
        assert!(gone, "the tmux server is still there");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let below = self.server.below();
        self.server.process.signal(Signal::KILL);
        self.server.process.wait_gone(END);
        for process in &below {
            process.signal(Signal::KILL);
        }
        for process in &below {
            process.wait_gone(END);
        }
    }
}

impl TmuxServer {
    #[track_caller]
    pub(super) fn run(&self, words: &[&str]) -> String {
        client(&self.program, &self.socket, &self.variables, words)
    }

    /// The same, but it may fail: a window can have closed by itself.
    pub(super) fn try_run(&self, words: &[&str]) -> Result<String, String> {
        try_client(&self.program, &self.socket, &self.variables, words)
    }

    /// Every process below the server now.
    fn below(&self) -> Vec<Pinned> {
        let mut found: Vec<Pinned> = Vec::new();
        let mut open = vec![self.process.started().pid];
        while let Some(parent) = open.pop() {
            for pid in children(parent) {
                open.push(pid);
                found.extend(pin(pid));
            }
        }
        found
    }
}

/// Pins a process, if it exists.
pub(super) fn pin(pid: u32) -> Option<Pinned> {
    let start = Stat::read(pid)?.start;
    Pinned::open(Started { pid, start }).ok()
}

#[track_caller]
fn client(program: &Path, socket: &Path, variables: &[(String, String)], words: &[&str]) -> String {
    match try_client(program, socket, variables, words) {
        Ok(said) => said,
        Err(error) => panic!("tmux {words:?}: {error}"),
    }
}

fn try_client(
    program: &Path,
    socket: &Path,
    variables: &[(String, String)],
    words: &[&str],
) -> Result<String, String> {
    let output = Command::new(program)
        .env_clear()
        .envs(variables.iter().map(|(key, value)| (key, value)))
        .arg("-S")
        .arg(socket)
        .args(["-f", "/dev/null"])
        .args(words)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
