//! A command that a worker runs, from its start to its output.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::command::Cmd;
use crate::output::Output;
use crate::pinned::Pinned;
use crate::place::TestRoot;
use crate::worker::WorkerHandle;

#[derive(Debug)]
pub(crate) struct ProcessJob {
    process: Arc<Pinned>,
    program: String,
    arguments: Vec<String>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl ProcessJob {
    #[track_caller]
    pub(crate) fn start(worker: &WorkerHandle, place: &TestRoot, cmd: Cmd) -> ProcessJob {
        let (program, arguments) = (cmd.program.clone(), cmd.args.clone());
        let order = place.order(cmd);
        let (stdout, stderr) = (order.stdout.clone(), order.stderr.clone());
        ProcessJob {
            process: worker.start(order),
            program,
            arguments,
            stdout,
            stderr,
        }
    }

    pub(crate) fn process(&self) -> &Pinned {
        &self.process
    }

    pub(crate) fn stdout(&self) -> String {
        read(&self.stdout)
    }

    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// Waits for its end. Only then is the worker asked for the exit code, so that others can use
    /// the worker meanwhile.
    #[track_caller]
    pub(crate) fn finish(&self, worker: &WorkerHandle) -> Output {
        let patience = worker.patience();
        assert!(
            self.process.wait_gone(patience),
            "did not end within {patience:?}: {} {}\n--- stdout\n{}\n--- stderr\n{}",
            self.program,
            self.arguments.join(" "),
            self.stdout(),
            self.stderr()
        );
        Output {
            code: worker.wait(self.process.started().pid),
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }
}

pub(crate) fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}
