//! Commands that we run for somebody: what becomes of them as exit codes.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;
use tenure_app::supervise::{CannotRun, Why};
use tenure_app::watch::{Ended, Waited};

use crate::exit::Exit;
use crate::output::Trouble;

/// Our own failures, where the exit code is the command's.
pub const OWN_FAILURE: Exit = Exit(125);

/// A signal as an exit code, as shells have it.
pub fn signal_exit(signal: i32) -> Exit {
    Exit(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// The exit code that a command's end stands for.
pub fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit(u8::try_from(code).unwrap_or(OWN_FAILURE.0)),
        (None, Some(signal)) => signal_exit(signal),
        (None, None) => OWN_FAILURE,
    }
}

/// The exit code of a verb that shows something until somebody has seen enough: who interrupts it, or
/// reads no further, has.
pub fn exit_of_watching<T>(ended: &Ended<T>) -> Exit {
    let enough = [Signal::INT, Signal::PIPE].map(Signal::as_raw);
    match ended {
        Ended::Signal(signal) if !enough.contains(signal) => signal_exit(*signal),
        Ended::Done(_) | Ended::Signal(_) => Exit::DONE,
    }
}

/// What was waited for; a signal that ended the wait decides the exit code.
pub fn waited<T>(waited: Waited<T>) -> Result<T, Trouble> {
    match waited {
        Waited::Done(done) => Ok(done),
        Waited::Interrupted { signal, problem } => {
            Err(Trouble::from(*problem).exits(signal_exit(signal)))
        }
    }
}

/// A command that was not run has the code that shells give it.
pub fn exec_trouble(failed: CannotRun) -> Trouble {
    let exit = match failed.why {
        Why::Missing => Exit::COMMAND_NOT_FOUND,
        Why::NotExecutable => Exit::COMMAND_NOT_EXECUTABLE,
        Why::Own => OWN_FAILURE,
    };
    to_stderr(Trouble::from(failed.problem).exits(exit))
}

/// Held, timed out and cannot tell are conflicts with a code of their own; the rest is a failure of ours.
pub fn conflict_or_failure(mut trouble: Trouble, conflict: Exit) -> Trouble {
    let conflicts = [
        Exit::HELD,
        Exit::TIMED_OUT,
        Exit::CANNOT_TELL,
        Exit::REFUSED,
    ];
    let is_final = trouble.exit.0 >= OWN_FAILURE.0;
    if !is_final {
        trouble.exit = if conflicts.contains(&trouble.exit) {
            conflict
        } else {
            OWN_FAILURE
        };
    }
    to_stderr(trouble)
}

/// Stdout belongs to the command.
fn to_stderr(mut trouble: Trouble) -> Trouble {
    trouble.to_stderr = true;
    trouble
}
