//! Exit codes of commands that we run for the caller.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;
use tenure_app::unfinished::{By, Unfinished};
use tenure_app::watch::WatchEnd;

use crate::exit::Exit;
use crate::output::CliError;

/// Our own failures, when the exit code is otherwise the command's.
pub const OWN_FAILURE: Exit = Exit::OWN_FAILURE;

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

/// The exit code of a verb that runs until it is interrupted. An interrupt or a reader that left is a success.
pub fn exit_of_watching<T>(ended: &WatchEnd<T>) -> Exit {
    let enough = [Signal::INT, Signal::PIPE].map(Signal::as_raw);
    match ended {
        WatchEnd::Signal(signal) if !enough.contains(signal) => signal_exit(*signal),
        WatchEnd::Done(_) | WatchEnd::Signal(_) => Exit::DONE,
    }
}

/// A signal, or a program that does not start, gets the code that shells use.
pub fn unfinished(failed: Unfinished) -> CliError {
    let failure = CliError::from(failed.problem);
    match failed.by {
        By::Problem => failure,
        By::Signal(signal) => failure.exits(signal_exit(signal)),
        By::MissingProgram => failure.exits(Exit::COMMAND_NOT_FOUND),
        By::UnusableProgram => failure.exits(Exit::COMMAND_NOT_EXECUTABLE),
    }
}

/// Held, timed out, unknown and refused use the conflict code; everything else is our own failure.
pub fn conflict_or_failure(mut failure: CliError, conflict: Exit) -> CliError {
    let conflicts = [
        Exit::HELD,
        Exit::TIMED_OUT,
        Exit::CANNOT_TELL,
        Exit::REFUSED,
    ];
    let is_final = failure.exit.0 >= OWN_FAILURE.0;
    if !is_final {
        failure.exit = if conflicts.contains(&failure.exit) {
            conflict
        } else {
            OWN_FAILURE
        };
    }
    // Stdout belongs to the command.
    failure.to_stderr = true;
    failure
}
