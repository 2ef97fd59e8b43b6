//! The files of a run: a private directory in the state directory.

use std::io;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tenure_core::id::RunId;
use tenure_core::ignore::Ignore;

/// Shows other processes that the files of a run are in use; the kernel releases it when the
/// process ends.
#[derive(Debug)]
pub struct InUse {
    _dir: OwnedFd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFiles {
    dir: PathBuf,
}

impl RunFiles {
    /// The files of a run in this state directory.
    pub fn of(state: &Path, run: &RunId) -> Self {
        Self {
            dir: state.join("runs").join(run.as_str()),
        }
    }

    /// The files in the directory that a record names.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub fn make(&self) -> io::Result<()> {
        tenure_host::file::make_dirs(&self.dir)
    }

    /// Removes everything, because the run was never started.
    pub fn remove(&self) {
        fs_err::remove_dir_all(&self.dir).ignore("nothing refers to the remains");
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// While the returned guard exists, no process takes these files for those of a dead run.
    pub fn keep_in_use(&self) -> io::Result<InUse> {
        let dir = self.opened()?;
        flock(&dir, FlockOperation::NonBlockingLockShared)?;
        Ok(InUse { _dir: dir })
    }

    /// Whether a process uses the files; true if unknown.
    pub fn is_in_use(&self) -> bool {
        let locked = self
            .opened()
            .and_then(|dir| Ok(flock(&dir, FlockOperation::NonBlockingLockExclusive)?));
        locked.is_err()
    }

    fn opened(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(open(&self.dir, flags, Mode::empty())?)
    }

    /// Whether an agent was started. The record of such a run is in some store, perhaps another
    /// one.
    pub fn has_output(&self) -> bool {
        let is_there = |file: PathBuf| fs_err::metadata(file).is_ok_and(|found| found.len() > 0);
        [self.output(), self.errors(), self.end()]
            .into_iter()
            .any(is_there)
    }

    /// The order that the runner was started with.
    pub fn order(&self) -> PathBuf {
        self.dir.join("order.json")
    }

    /// The job that the runner takes, before there is an order.
    pub fn job(&self) -> PathBuf {
        self.dir.join("job.json")
    }

    /// The agent's prompt.
    pub fn prompt(&self) -> PathBuf {
        self.dir.join("prompt")
    }

    /// The agent's standard output.
    pub fn output(&self) -> PathBuf {
        self.dir.join("output.jsonl")
    }

    /// What the run committed, if that was not published.
    pub fn patch(&self) -> PathBuf {
        self.dir.join("result.patch")
    }

    /// The agent's standard error.
    pub fn errors(&self) -> PathBuf {
        self.dir.join("errors.txt")
    }

    /// How the run ended, as its runner saw it.
    pub fn end(&self) -> PathBuf {
        self.dir.join("end.json")
    }

    /// The agent's list of conversations, while it is read.
    pub fn listing(&self) -> PathBuf {
        self.dir.join("conversations.json")
    }

    /// Since when the agent waits for its provider.
    pub fn waiting(&self) -> PathBuf {
        self.dir.join("waiting.json")
    }

    /// Stores a line next to the log, for later readers.
    pub fn note(&self, text: &str) {
        let file = fs_err::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.runner_errors());
        if file.and_then(|mut file| writeln!(file, "{text}")).is_err() {
            // The run does not depend on it.
        }
    }

    /// Errors of the runner itself.
    pub fn runner_errors(&self) -> PathBuf {
        self.dir.join("runner.txt")
    }
}
