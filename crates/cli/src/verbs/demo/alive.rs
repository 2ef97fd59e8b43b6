//! The demo's fleet, alive: agents that work, ask, die and come back, with the dashboard beside them.
//!
//! Nothing is left behind: the agents and the server end with this process, however it ends, and the scratch directory
//! goes with an orderly end.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use fs_err as fs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tenure_host::watch::{WakeCause, Watch};
use tenure_host::{pause, system};

use super::expect;
use super::worker::{Fault, Worker, wrong};
use crate::output::{CliError, Outcome};

/// How long something stays as it is.
const STEP: Duration = Duration::from_secs(4);
/// How long the server may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

const LOGIN: &str = "issue:acme/web#42";
const QUEUE: &str = "issue:acme/web#57";
const SEARCH: &str = "issue:acme/docs#7";

/// Each agent: its name, its repository and its work.
const FLEET: [(&str, &str, &str); 10] = [
    ("claude", "web", "Fix the login on Safari"),
    ("codex", "web", "Update the packages"),
    ("gemini", "docs", "Write the changelog"),
    ("claude", "web", "Move the settings to TOML"),
    ("opencode", "web", "A page for the settings"),
    ("codex", "web", "The queue's flaky test"),
    ("qwen", "docs", "Translate the guide"),
    ("claude", "docs", "Search in the docs"),
    ("gemini", "web", "Review the error messages"),
    ("claude", "web", "Fix the login on Firefox"),
];

pub(super) fn run(scratch: &Path) -> Result<(), CliError> {
    let home = scratch.join("state");
    let mut watch = Watch::on_nothing();
    watch
        .catch_signals()
        .map_err(|error| wrong(error.to_string()))?;
    let mut fleet = Fleet::start(scratch, &home)?;
    let mut server = Server(start_server(&home)?);
    for step in 0.. {
        if matches!(watch.wait(&[], Some(STEP)), Ok(WakeCause::Signal(_))) || server.has_ended()? {
            return Ok(());
        }
        if let Err(failed) = fleet.step(step) {
            // Ctrl-C ends the agents too.
            let is_over = matches!(watch.wait(&[], Some(STEP)), Ok(WakeCause::Signal(_)));
            return if is_over { Ok(()) } else { Err(failed) };
        }
    }
    Ok(())
}

/// `tenure serve` on this fleet, in a process that ends with this one.
fn start_server(home: &Path) -> Result<Child, CliError> {
    let program = tenure_host::env::program().map_err(Fault::NoProgram)?;
    let started = Command::new(program)
        .args(["__demo-worker", "--serve"])
        .env("TENURE_HOME", home)
        .env_remove("TENURE_STORE")
        .env_remove("TENURE_SESSION")
        .spawn();
    Ok(started.map_err(Fault::NotStarted)?)
}

/// Becomes the server.
pub(super) fn serve() -> Outcome {
    system::end_with_parent(Signal::TERM).map_err(|error| wrong(error.to_string()))?;
    let program = tenure_host::env::program().map_err(Fault::NoProgram)?;
    let words = ["serve", "--listen", "127.0.0.1:0", "--open"];
    Err(Fault::NotStarted(Command::new(program).args(words).exec()).into())
}

struct Server(Child);

impl Server {
    fn has_ended(&mut self) -> Result<bool, CliError> {
        let ended = self.0.try_wait().map_err(Fault::NotRead)?;
        match ended {
            Some(code) if !code.success() => Err(wrong(format!("the server ended: {code}"))),
            ended => Ok(ended.is_some()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let asked = kill_process(Pid::from_child(&self.0), Signal::TERM).is_ok();
        for _ in 0..ENDS_WITHIN.as_millis() / 10 {
            if !asked || !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            pause::sleep(Duration::from_millis(10));
        }
        if self.0.kill().is_ok() {
            let reaped = self.0.wait();
            debug_assert!(reaped.is_ok(), "a killed child can be waited for");
        }
    }
}

struct Fleet {
    home: PathBuf,
    scratch: PathBuf,
    workers: Vec<Worker>,
}

impl Fleet {
    fn start(scratch: &Path, home: &Path) -> Result<Self, CliError> {
        for repo in ["web", "docs"] {
            make_repository(&scratch.join(repo), repo).map_err(Fault::NotWritten)?;
        }
        let mut fleet = Self {
            home: home.to_owned(),
            scratch: scratch.to_owned(),
            workers: Vec::new(),
        };
        for n in 0..FLEET.len() {
            let worker = fleet.enlist(n)?;
            fleet.workers.push(worker);
            fleet.busy(n)?;
        }
        fleet.call(0, &["claim", LOGIN])?;
        fleet.call(5, &["claim", QUEUE])?;
        fleet.call(7, &["claim", SEARCH])?;
        for n in [3, 4] {
            fleet.call(n, &["mission", "join", "settings", "--role", "developer"])?;
            fleet.call(n, &["mission", "focus", "wp:1"])?;
            fleet.call(n, &["mission", "drive", "active"])?;
        }
        // It waits until the item is free.
        fleet.workers[9].send(&["claim", LOGIN, "--wait", "1h"])?;
        fleet.asks(1, "permission for `rm -r build`")?;
        fleet.report(2, json!({"event": "idle"}))?;
        fleet.workers[5].kill()?;
        Ok(fleet)
    }

    fn enlist(&self, n: usize) -> Result<Worker, CliError> {
        let (name, repo, _) = FLEET[n];
        let mut worker = Worker::start_in(&self.home, name, &self.scratch.join(repo))?;
        let (pid, conversation) = (worker.pid().to_string(), format!("demo-{n}"));
        let words = [
            "register",
            "--agent",
            name,
            "--pid",
            &pid,
            "--native-id",
            &conversation,
        ];
        expect(&worker.call(&words)?, 0, "registering")?;
        Ok(worker)
    }

    fn call(&mut self, n: usize, words: &[&str]) -> Result<Value, CliError> {
        let call = self.workers[n].call(words)?;
        expect(&call, 0, words[0]).cloned()
    }

    fn report(&mut self, n: usize, mut event: Value) -> Result<(), CliError> {
        event["pid"] = json!(self.workers[n].pid());
        let call = self.workers[n].report(&event)?;
        expect(&call, 0, "an event").map(drop)
    }

    fn busy(&mut self, n: usize) -> Result<(), CliError> {
        self.report(n, json!({"event": "busy", "title": FLEET[n].2}))
    }

    fn asks(&mut self, n: usize, what: &str) -> Result<(), CliError> {
        self.report(n, json!({"event": "waiting", "asks": what}))
    }

    /// What happens next; after the last it begins again.
    fn step(&mut self, step: usize) -> Result<(), CliError> {
        match step % 8 {
            0 => self.busy(1),
            1 => self.asks(8, "Which of the two messages?"),
            2 => {
                // A person may have freed or given it.
                self.workers[7].call(&["release", SEARCH]).map(drop)?;
                self.report(7, json!({"event": "idle"}))
            }
            3 => {
                self.workers[5] = self.enlist(5)?;
                self.busy(5)
            }
            4 => self.busy(8),
            5 => {
                self.busy(7)?;
                self.workers[7].call(&["claim", SEARCH]).map(drop)
            }
            6 => self.asks(1, "permission for `rm -r build`"),
            _ => {
                self.workers[5].call(&["claim", QUEUE])?;
                self.workers[5].kill()
            }
        }
    }
}

/// As much of a repository as shows where an agent works.
fn make_repository(dir: &Path, name: &str) -> io::Result<()> {
    let git = dir.join(".git");
    for part in ["objects", "refs/heads"] {
        fs::create_dir_all(git.join(part))?;
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
    let remote = format!("[remote \"origin\"]\n\turl = https://github.com/acme/{name}.git\n");
    fs::write(git.join("config"), remote)
}
