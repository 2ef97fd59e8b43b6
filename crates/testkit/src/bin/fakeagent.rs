//! A worker: a process with any name that starts what the test asks for.
//!
//! It reads its task from standard input, see [`tenure_testkit::protocol`]. It ends when the test's
//! end of the socket closes, and then also ends the processes that it started and that still run;
//! no others. If it is killed with -9 it ends none of them, which is how tests make survivors.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure_testkit::pinned::{Pinned, Stat};
use tenure_testkit::protocol::{ProcessOrder, Started, WorkerMode, WorkerReply, WorkerRequest};
use tenure_testkit::real::end_all_at_home;

/// How long a child may show no environment before it counts as having none.
const SETTLED: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match be() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the worker's log; if writing to it fails, there is nowhere left to
            // report.
            writeln!(io::stderr(), "fakeagent: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn be() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    match serde_json::from_str(&text)? {
        WorkerMode::Launch(order) => {
            let started = identify(&order.command()?.spawn()?)?;
            writeln!(io::stdout(), "{}", serde_json::to_string(&started)?)
        }
        WorkerMode::Work {
            socket,
            lead,
            terminal,
        } => {
            if lead {
                rustix::process::setsid()?;
            }
            // Kept open while this runs: a terminal that no process has open hangs up.
            let _terminal = terminal.map(|path| take_terminal(&path)).transpose()?;
            AgentWorker::default().serve(&UnixStream::connect(socket)?)
        }
        WorkerMode::Keep { socket, home } => {
            rustix::process::setsid()?;
            end_all_at_home(&UnixStream::connect(socket)?, &home);
            Ok(())
        }
        WorkerMode::Become { terminal, argv } => {
            rustix::process::setsid()?;
            let terminal = take_terminal(&terminal)?;
            let (program, args) = argv
                .split_first()
                .ok_or_else(|| io::Error::other("there is nothing to become"))?;
            Err(Command::new(program)
                .args(args)
                .stdin(terminal.try_clone()?)
                .stdout(terminal.try_clone()?)
                .stderr(terminal)
                .exec())
        }
    }
}

fn take_terminal(path: &Path) -> io::Result<File> {
    let terminal = File::options().read(true).write(true).open(path)?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    Ok(terminal)
}

/// A child that was not reaped yet keeps its pid, so this cannot be another process.
fn identify(child: &Child) -> io::Result<Started> {
    let stat = Stat::read(child.id())
        .ok_or_else(|| io::Error::other(format!("/proc/{}/stat cannot be read", child.id())))?;
    settle(child.id());
    Ok(Started {
        pid: child.id(),
        start: stat.start,
    })
}

/// Waits until the child shows its environment. The kernel lets the parent of a fork continue
/// before that, and for a moment the new program seems to have no variables at all.
fn settle(pid: u32) {
    let deadline = Instant::now() + SETTLED;
    while Instant::now() < deadline {
        let going = Stat::runs(pid);
        let empty = std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|all| all.is_empty());
        if !(going && empty) {
            return;
        }
        std::thread::yield_now();
    }
}

#[derive(Default)]
struct AgentWorker {
    /// Direct children that the test has not waited for yet, and the channel that reports their
    /// end.
    children: HashMap<u32, Receiver<io::Result<ExitStatus>>>,
    /// All processes to end with this worker.
    charges: Vec<Pinned>,
}

impl AgentWorker {
    fn serve(&mut self, socket: &UnixStream) -> io::Result<()> {
        let mut lines = BufReader::new(socket).lines();
        let mut answers = socket;
        let served = loop {
            // When a test is killed, its end closes, with or without an error.
            let Some(Ok(line)) = lines.next() else {
                break Ok(());
            };
            let reply = serde_json::from_str(&line)
                .map_err(io::Error::from)
                .and_then(|request| self.answer(request))
                .unwrap_or_else(|error| WorkerReply::Failed(error.to_string()));
            let mut text = serde_json::to_string(&reply)?;
            text.push('\n');
            if let Err(error) = answers.write_all(text.as_bytes()) {
                break Err(error);
            }
        };
        for charge in &self.charges {
            charge.signal(Signal::KILL);
        }
        served
    }

    fn answer(&mut self, request: WorkerRequest) -> io::Result<WorkerReply> {
        match request {
            WorkerRequest::Start(order) => self.start(&order).map(WorkerReply::Started),
            WorkerRequest::Orphan(order) => self.orphan(order).map(WorkerReply::Started),
            WorkerRequest::Wait(pid) => self.wait(pid).map(WorkerReply::Ended),
            WorkerRequest::Adopt(started) => {
                self.charge(started)?;
                Ok(WorkerReply::Done)
            }
        }
    }

    fn charge(&mut self, started: Started) -> io::Result<()> {
        self.charges.retain(|charge| !charge.is_gone());
        self.charges.push(Pinned::open(started)?);
        Ok(())
    }

    /// A thread per child reaps it as soon as it exits, as a real agent does.
    fn start(&mut self, order: &ProcessOrder) -> io::Result<Started> {
        let mut child = order.command()?.spawn()?;
        let started = identify(&child)?;
        self.charge(started)?;
        let (ended, end) = channel();
        std::thread::spawn(move || {
            // If this worker is ending, nothing receives the status any more.
            ended.send(child.wait()).ok();
        });
        self.children.insert(started.pid, end);
        Ok(started)
    }

    fn wait(&mut self, pid: u32) -> io::Result<i32> {
        let end = self
            .children
            .remove(&pid)
            .ok_or_else(|| io::Error::other(format!("{pid} is no child of this worker")))?;
        let status = end.recv().map_err(io::Error::other)??;
        let signal = status.signal().map(|signal| 128 + signal);
        status
            .code()
            .or(signal)
            .ok_or_else(|| io::Error::other(format!("{pid} ended without a code")))
    }

    fn orphan(&mut self, order: ProcessOrder) -> io::Result<Started> {
        let mut launcher = Command::new(std::env::current_exe()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = launcher.stdin.take() {
            input.write_all(&serde_json::to_vec(&WorkerMode::Launch(order))?)?;
        }
        let output = launcher.wait_with_output()?;
        if !output.status.success() {
            let message = format!("the orphan was not started: {}", output.status);
            return Err(io::Error::other(message));
        }
        let started = serde_json::from_slice(&output.stdout)?;
        self.charge(started)?;
        Ok(started)
    }
}
