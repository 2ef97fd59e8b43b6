//! The process world of a host: a pid namespace with its own /proc, in which its workers and its keeper run and see no
//! process of the other host. Pids of the two hosts overlap.
//!
//! The first process of the namespace harms the host's keeper and reaps what workers leave. Workers are children of the
//! nemesis even so: it enters the namespace for the moment in which it starts one, and the worker itself enters the
//! mounts, before it has a second thread.
//!
//! Where this system makes no such namespaces for us, the hosts share one process table, and the report says so.
//!
//! *Crash*: the namespace ends with its first process, and that one when nobody holds its standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use tenure_core::ignore::Ignore;

use rustix::process::{WaitOptions, wait};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use super::hosts::Host;
use super::keepers::{self, Shocks};
use super::record::monotonic;

/// How long init waits before it looks for orphans again.
const ORPHANS: Duration = Duration::from_millis(20);

/// What harms the keeper of a host, and until when.
#[derive(Debug, Clone)]
pub struct Orders {
    /// The program of the first process.
    pub program: PathBuf,
    pub seed: u64,
    pub until: u64,
    /// The directory of the run.
    pub dir: PathBuf,
}

/// How it went on a host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Rest {
    pub shocks: Shocks,
    /// What went wrong when its keeper was ended.
    pub trouble: Option<String>,
}

/// Where the processes of a host run.
#[derive(Debug)]
pub enum World {
    Apart(Apart),
    /// Together with all others.
    Here(Host, JoinHandle<io::Result<Shocks>>),
}

#[derive(Debug)]
pub struct Apart {
    /// It ends with its child, the first process of the namespace.
    unshare: Child,
    asks: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
    pids: File,
    own: File,
}

impl World {
    /// Begins to harm the keeper of a host, in a namespace if there is one.
    pub fn begin(host: &Host, orders: &Orders) -> io::Result<Self> {
        if let Some(apart) = Apart::begin(host, orders)? {
            return Ok(World::Apart(apart));
        }
        let harming = keepers::harm(host.clone(), orders.seed, orders.until, &orders.dir)?;
        Ok(World::Here(host.clone(), harming))
    }

    /// Starts a worker here. Its last arguments tell it what to enter.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        match self {
            World::Apart(apart) => apart.spawn(command),
            World::Here(..) => command.spawn(),
        }
    }

    pub fn is_apart(&self) -> bool {
        matches!(self, World::Apart(_))
    }

    /// Ends the keeper, and the namespace with everything in it.
    pub fn rest(self) -> io::Result<Rest> {
        match self {
            World::Apart(apart) => apart.rest(),
            World::Here(host, harming) => rested(&host, harming),
        }
    }
}

impl Apart {
    fn begin(host: &Host, orders: &Orders) -> io::Result<Option<Self>> {
        let namespace = ["--pid", "--fork", "--mount-proc", "--kill-child"];
        let mut probe = Command::new("unshare");
        probe.args(namespace).arg("true").stderr(Stdio::null());
        if !probe.status().is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let errors = orders.dir.join(format!("host-{}.err", host.name));
        let mut unshare = Command::new("unshare")
            .args(namespace)
            .arg(&orders.program)
            .args(["host", "--name", host.name])
            .args(["--seed", &orders.seed.to_string()])
            .args(["--until", &orders.until.to_string()])
            .arg("--dir")
            .arg(&orders.dir)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(host.settings())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors)?)
            .spawn()?;
        let pipes = unshare.stdin.take().zip(unshare.stdout.take());
        let (asks, says) = pipes.ok_or_else(|| io::Error::other("a host has no pipes"))?;
        let mut says = BufReader::new(says);
        if says.read_line(&mut String::new())? == 0 {
            unshare.wait()?;
            let said = std::fs::read_to_string(errors).unwrap_or_default();
            return Err(io::Error::other(format!("a host does not start: {said}")));
        }
        let name = |name: &str| format!("/proc/{}/ns/{name}", unshare.id());
        let apart = Self {
            pids: File::open(name("pid_for_children"))?,
            own: File::open("/proc/self/ns/pid")?,
            asks: Some(asks),
            says,
            unshare,
        };
        // Only who may enter it can start workers there.
        match apart.within(|| Ok(())) {
            Ok(()) => Ok(Some(apart)),
            Err(_) => Ok(None),
        }
    }

    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mounts = format!("/proc/{}/ns/mnt", self.unshare.id());
        command.args(["--mounts", &mounts]);
        self.within(|| command.spawn())
    }

    /// Children that `f` makes are in the namespace. Other threads are not affected.
    fn within<T>(&self, f: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let pids = Some(LinkNameSpaceType::ProcessID);
        move_into_link_name_space(self.pids.as_fd(), pids)?;
        let done = f();
        move_into_link_name_space(self.own.as_fd(), pids)?;
        done
    }

    fn rest(mut self) -> io::Result<Rest> {
        drop(self.asks.take());
        let mut said = String::new();
        self.says.read_line(&mut said)?;
        self.unshare.wait()?;
        serde_json::from_str(&said).map_err(io::Error::other)
    }
}

/// If the run fails, or is over early, everything in the namespace ends with this.
impl Drop for Apart {
    fn drop(&mut self) {
        if self.unshare.kill().is_ok() {
            self.unshare.wait().ignore("only its end matters");
        }
    }
}

fn rested(host: &Host, harming: JoinHandle<io::Result<Shocks>>) -> io::Result<Rest> {
    let harmed = harming.join();
    let harmed = harmed.map_err(|_| io::Error::other("the harm of a keeper ended early"))?;
    Ok(Rest {
        shocks: harmed?,
        trouble: host.rest(),
    })
}

/// Is the first process of a namespace: harms the keeper, and ends it and everything else when nobody asks any more.
pub fn be_first(host: &Host, orders: &Orders) -> io::Result<()> {
    let harming = keepers::harm(host.clone(), orders.seed, orders.until, &orders.dir)?;
    std::thread::Builder::new().spawn(reap)?;
    let mut out = io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    if monotonic() < orders.until {
        // The run failed, or its nemesis is dead: whatever runs here ends with this process.
        return Ok(());
    }
    let rest = rested(host, harming)?;
    writeln!(out, "{}", serde_json::to_string(&rest)?)?;
    out.flush()
}

/// Reaps orphans for as long as the process lives.
fn reap() {
    loop {
        if !matches!(wait(WaitOptions::empty()), Ok(Some(_))) {
            tenure_host::pause::sleep(ORPHANS);
        }
    }
}

/// Enters the mounts of a namespace, and the directory of the run there. Must run before there is a second thread.
pub fn enter(mounts: &Path, dir: &Path) -> io::Result<()> {
    let mounts = File::open(mounts)?;
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
    std::env::set_current_dir(dir)
}
