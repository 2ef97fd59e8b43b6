//! Where the files of a run are: a directory of its own in the state directory, for the owner alone.

use std::io;
use std::path::{Path, PathBuf};

use tenure_core::id::RunId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFiles {
    dir: PathBuf,
}

impl RunFiles {
    /// Of a run of this state directory.
    pub fn of(state: &Path, run: &RunId) -> Self {
        Self {
            dir: state.join("runs").join(run.as_str()),
        }
    }

    /// In the directory that a record names.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub fn make(&self) -> io::Result<()> {
        tenure_host::file::make_dirs(&self.dir)
    }

    /// Removes everything: the run was never started.
    pub fn remove(&self) {
        if fs_err::remove_dir_all(&self.dir).is_err() {
            // What is left of it is named by nothing.
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the runner was started with.
    pub fn order(&self) -> PathBuf {
        self.dir.join("order.json")
    }

    /// The job that the runner takes, before there is an order.
    pub fn job(&self) -> PathBuf {
        self.dir.join("job.json")
    }

    /// What the agent was given to read.
    pub fn prompt(&self) -> PathBuf {
        self.dir.join("prompt")
    }

    /// The agent's standard output.
    pub fn output(&self) -> PathBuf {
        self.dir.join("output.jsonl")
    }

    /// The agent's standard error.
    pub fn errors(&self) -> PathBuf {
        self.dir.join("errors.txt")
    }

    /// How the run ended, as its runner saw it.
    pub fn end(&self) -> PathBuf {
        self.dir.join("end.json")
    }

    /// What the agent lists as its conversations, while that is read.
    pub fn listing(&self) -> PathBuf {
        self.dir.join("conversations.json")
    }

    /// What went wrong in the runner itself.
    pub fn runner_errors(&self) -> PathBuf {
        self.dir.join("runner.txt")
    }
}
