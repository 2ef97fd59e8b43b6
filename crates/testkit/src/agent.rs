//! A worker that looks like an agent, and the commands that it runs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::command::Cmd;
use crate::job::ProcessJob;
use crate::output::Output;
use crate::pinned::Stat;
use crate::poll::poll;
use crate::space::Space;
use crate::worker::{self, WorkerHandle};

/// A process with an agent's name, which runs commands as its direct children.
///
/// Dropping it kills it and everything it started that the test knows of.
#[derive(Debug)]
pub struct Agent {
    worker: Arc<WorkerHandle>,
    space: Arc<Space>,
}

impl Agent {
    pub(crate) fn new(worker: WorkerHandle, space: Arc<Space>) -> Agent {
        Agent {
            worker: Arc::new(worker),
            space,
        }
    }

    /// Its pid, in its own pid namespace.
    pub fn pid(&self) -> u32 {
        self.worker.process().started().pid
    }

    /// Waits until what is written now is clearly newer than its start: the kernel gives both times in ticks, and a
    /// reader allows for two of them.
    #[track_caller]
    pub fn outlives_its_first_ticks(&self) {
        let from = Instant::now();
        let is_over = || (from.elapsed() > Duration::from_millis(50)).then_some(());
        poll(
            Duration::from_secs(10),
            "its start is over, in ticks of the kernel",
            is_over,
        );
    }

    /// What /proc shows about it; `None` once it is gone and reaped.
    pub fn stat(&self) -> Option<Stat> {
        let here = self.worker.process().here();
        Stat::read(here.pid).filter(|stat| stat.start == here.start)
    }

    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn tenure(&self, args: &[&str]) -> Output {
        self.run(self.space.place.tenure_with(args))
    }

    /// Runs tenure with variables set, or unset.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn tenure_env(&self, env: &[(&str, Option<&str>)], args: &[&str]) -> Output {
        let mut cmd = self.space.place.tenure_with(args);
        for (key, value) in env {
            cmd = match value {
                Some(value) => cmd.env(key, *value),
                None => cmd.unset(key),
            };
        }
        self.run(cmd)
    }

    /// Runs tenure in a directory.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn tenure_in(&self, dir: &Path, args: &[&str]) -> Output {
        self.run(self.space.place.tenure_with(args).dir(dir))
    }

    /// Runs `sh -c line`, with `tenure` on PATH.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn tenure_shell(&self, line: &str) -> Output {
        self.run(Cmd::shell(line))
    }

    /// Runs tenure with this standard input.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn tenure_stdin(&self, args: &[&str], stdin: &str) -> Output {
        self.run(self.space.place.tenure_with(args).stdin(stdin))
    }

    /// Runs a command and waits for it.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn run(&self, cmd: Cmd) -> Output {
        self.start(cmd).wait()
    }

    /// Starts a command without waiting for it.
    #[track_caller]
    pub fn start(&self, cmd: Cmd) -> Background {
        let job = ProcessJob::start(&self.worker, &self.space.place, cmd);
        Background {
            pid: job.process().started().pid,
            job,
            worker: Arc::clone(&self.worker),
            _space: Arc::clone(&self.space),
        }
    }

    /// Starts another agent as a child of this one, in the same process session.
    pub fn nest(&self, name: &str) -> Agent {
        self.nest_with(name, &[])
    }

    /// The same, with arguments on its command line.
    pub fn nest_with(&self, name: &str, args: &[&str]) -> Agent {
        let worker = self.worker.nested(&self.space.place, name, args);
        Agent::new(worker, Arc::clone(&self.space))
    }

    /// Starts a command that is reparented at once but keeps its environment and process session.
    #[track_caller]
    pub fn orphan(&self, cmd: Cmd) -> u32 {
        let order = self.space.place.order(cmd);
        self.worker.orphan(order).started().pid
    }

    /// Kills it with -9 and waits until it is gone. Its children keep running, as they do in real
    /// use.
    pub fn kill9(&self) {
        self.worker.hand_over(self.space.plain());
        worker::kill9(self.worker.process());
    }

    /// Stops it with a signal and waits until it is stopped.
    pub fn stop(&self) {
        self.worker.hand_over(self.space.plain());
        self.worker.process().signal(Signal::STOP);
        self.await_state("stopped", |state| state == 'T');
    }

    /// Continues it and waits until it runs again.
    pub fn cont(&self) {
        self.worker.process().signal(Signal::CONT);
        self.await_state("going", |state| state != 'T');
    }

    fn await_state(&self, what: &str, is: impl Fn(char) -> bool) {
        let what = format!("{} is {what}", self.worker.label());
        poll(self.worker.patience(), &what, || {
            let stat = self.stat().unwrap_or_else(|| panic!("{what}: it is gone"));
            is(stat.state).then_some(())
        });
    }

    /// Whether it is running or stopped, not dead.
    pub fn is_alive(&self) -> bool {
        !self.worker.process().is_gone()
    }

    /// Lets it exit by itself, with everything that it started, including nested agents.
    pub fn close(&self) {
        self.worker.close();
    }

    /// How long it may take to answer, and a command to end. The default is 60 seconds.
    pub fn set_patience(&self, patience: Duration) {
        self.worker.set_patience(patience);
    }
}

impl Drop for Agent {
    /// A [`Background`] may still hold the worker.
    fn drop(&mut self) {
        self.worker.end();
    }
}

/// A command that an agent started.
#[derive(Debug)]
pub struct Background {
    pub pid: u32,
    job: ProcessJob,
    worker: Arc<WorkerHandle>,
    /// Keeps the directory with its output alive.
    _space: Arc<Space>,
}

impl Background {
    /// Waits for it to end. Its exit code is lost if its agent ended first.
    #[track_caller]
    #[must_use = "what a command answered is there to be checked"]
    pub fn wait(self) -> Output {
        self.job.finish(&self.worker)
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.job.stdout()
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        self.job.stderr()
    }

    /// Whether it is running or stopped, not dead.
    pub fn is_alive(&self) -> bool {
        !self.job.process().is_gone()
    }

    /// Kills it with -9 and waits until it is gone.
    pub fn kill9(&self) {
        worker::kill9(self.job.process());
    }

    /// Sends it a signal; false if it is gone.
    pub fn signal(&self, signal: Signal) -> bool {
        self.job.process().signal(signal)
    }
}
