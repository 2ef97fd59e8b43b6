//! The messages between the test and its workers: JSON, one value per line.
//!
//! A worker reads its [`WorkerMode`] from standard input, so that its command line and its environment
//! can look like anything. Output goes to files, never through pipes: a child that outlives its
//! worker keeps writing, and a grandchild that keeps a descriptor open delays nothing.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// What a new worker process should do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerMode {
    /// Start a command, print its identity as [`Started`], and exit, so that the command is
    /// detached.
    Launch(ProcessOrder),
    /// Serve requests from a socket.
    Work {
        socket: PathBuf,
        /// Whether to lead a process session of its own.
        lead: bool,
        /// The terminal to take as its controlling terminal; only with `lead`.
        terminal: Option<PathBuf>,
    },
    /// Wait until the test is gone, then end every process that has this HOME.
    Keep { socket: PathBuf, home: PathBuf },
    /// Lead a process session at a terminal and execute this program.
    Become {
        terminal: PathBuf,
        /// The program, its name and its arguments.
        argv: Vec<String>,
    },
}

/// A command for a worker to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProcessOrder {
    /// The executable; a bare name is searched on PATH.
    pub program: String,
    /// Its `argv[0]`, if not `program`.
    pub argv0: Option<String>,
    pub args: Vec<String>,
    /// Variables to set, or to unset.
    pub env: Vec<(String, Option<String>)>,
    /// Its directory, if not the worker's.
    pub dir: Option<PathBuf>,
    /// The file for its standard input, if any.
    pub stdin: Option<PathBuf>,
    /// The file for its standard output.
    pub stdout: PathBuf,
    /// The file for its standard error.
    pub stderr: PathBuf,
}

impl ProcessOrder {
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

/// A process that was started. Pid and start together identify one process of this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub pid: u32,
    /// Its start in clock ticks, from /proc.
    pub start: u64,
}

/// A request from the test to a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerRequest {
    /// Start a command as a direct child.
    Start(ProcessOrder),
    /// Start a command that is reparented at once.
    Orphan(ProcessOrder),
    /// Wait for a direct child and forget it.
    Wait(u32),
    /// End this process too when the test is gone.
    Adopt(Started),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerReply {
    Started(Started),
    /// It ended with this exit code; 128 plus the signal number if a signal ended it.
    Ended(i32),
    Done,
    /// The request failed.
    Failed(String),
}
