//! Commands that we run for somebody: their exit codes, their signals, and how they fail to start.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};
use tenure_host::process;
use tenure_service::answer::Class;

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

/// A failure of ours while a command runs or should run.
pub fn own_trouble(message: String) -> Trouble {
    let hint = "nothing is held; run it again";
    let mut trouble = Trouble::new(Class::Internal, "internal", message, hint).exits(OWN_FAILURE);
    trouble.to_stderr = true;
    trouble
}

/// A command's words as people read them; what is not text in them is shown as such.
pub fn readable(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Why a command cannot be executed, with the code that shells give it.
pub fn exec_trouble(program: &OsStr, error: &std::io::Error) -> Trouble {
    let (exit, what) = match error.kind() {
        std::io::ErrorKind::NotFound => (Exit(127), "was not found"),
        std::io::ErrorKind::PermissionDenied => (Exit(126), "is not executable"),
        _ => (Exit(126), "cannot be executed"),
    };
    let message = format!("{} {what}: {error}", program.to_string_lossy());
    let hint = "check the command after --";
    let mut trouble = Trouble::new(Class::NotFound, "command", message, hint).exits(exit);
    trouble.to_stderr = true;
    trouble
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
    trouble.to_stderr = true;
    trouble
}

/// Sends a signal to a command that we started.
pub fn send(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal))
        && kill_process(pid, signal).is_err()
    {
        // It has just ended; waiting for it says how.
    }
}

/// Passes a signal on; what a terminal sends reaches the command by itself.
pub fn pass_on(child: &Child, signal: i32) {
    let from_terminal = [Signal::INT.as_raw(), Signal::QUIT.as_raw()].contains(&signal);
    if !(from_terminal && process::has_terminal()) {
        send(child, signal);
    }
}
