//! The messages between the test and its workers: JSON, one value per line.
//!
//! A worker reads what it shall be ([`Mode`]) from standard input, so that its command line and its
//! environment are free to look like anything. Output goes to files, never through pipes: a child that
//! outlives its worker keeps writing, and a grandchild that keeps a descriptor open delays nobody.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// What a fresh worker process is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Start a command, print who it is as [`Started`], and exit, so that the command is detached.
    Launch(Order),
    /// Serve requests from a socket.
    Work {
        socket: PathBuf,
        /// Whether to lead a session of processes of its own.
        lead: bool,
        /// The terminal to take as the controlling one; only for one that leads.
        terminal: Option<PathBuf>,
    },
    /// Wait until the test is gone, and end every process that has this HOME.
    Keep { socket: PathBuf, home: PathBuf },
    /// Lead a session at a terminal and become this program.
    Become {
        terminal: PathBuf,
        /// The program, its name and its arguments.
        argv: Vec<String>,
    },
}

/// A command that a worker is to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The executable, searched on PATH where it is a bare name.
    pub program: String,
    /// What it is told to be called, if not `program`.
    pub argv0: Option<String>,
    pub args: Vec<String>,
    /// Variables to set, or to unset.
    pub env: Vec<(String, Option<String>)>,
    /// Its directory, if not the worker's.
    pub dir: Option<PathBuf>,
    /// The file that it reads, if any.
    pub stdin: Option<PathBuf>,
    /// The file for what it says.
    pub stdout: PathBuf,
    /// The file for what it complains.
    pub stderr: PathBuf,
}

impl Order {
    /// The command, ready to be spawned.
    pub fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        if let Some(name) = &self.argv0 {
            command.arg0(name);
        }
        for (key, value) in &self.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        match &self.stdin {
            Some(path) => command.stdin(File::open(path)?),
            None => command.stdin(Stdio::null()),
        };
        command.stdout(File::create(&self.stdout)?);
        command.stderr(File::create(&self.stderr)?);
        Ok(command)
    }
}

/// A process that was started: the two together name one process of this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub pid: u32,
    /// Its start in clock ticks, from /proc.
    pub start: u64,
}

/// What the test asks of a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Start a command as a direct child.
    Start(Order),
    /// Start a command that is reparented away at once.
    Orphan(Order),
    /// Wait for a direct child and forget it.
    Wait(u32),
    /// End this process too when the test is gone.
    Adopt(Started),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Started(Started),
    /// It ended with this code; 128 and the signal's number if a signal ended it.
    Ended(i32),
    Done,
    /// It could not be done.
    Failed(String),
}
