//! Commands that we run for the caller: their signals, and errors when they start.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use tenure_core::ignore::Ignore;
use tenure_host::process;
use tenure_service::answer::{Class, Hint, Problem};

use crate::unfinished::{By, Unfinished};

/// Why a command cannot be executed.
pub fn cannot_run(program: &OsStr, error: &io::Error) -> Unfinished {
    let program = program.to_string_lossy();
    let (by, message, hint) = match error.kind() {
        io::ErrorKind::NotFound => (
            By::MissingProgram,
            format!("{program} was not found"),
            "check the command; it must be a path, or a name on PATH",
        ),
        io::ErrorKind::PermissionDenied => (
            By::UnusableProgram,
            format!("{program} is not executable"),
            "check the command; if it is a program, make it executable",
        ),
        _ => (
            By::UnusableProgram,
            format!("cannot execute {program}: {error}"),
            "check that it is a program for this machine",
        ),
    };
    let problem = Problem::new(Class::NotFound, "command", message, Hint::step(hint));
    Unfinished { problem, by }
}

/// An error of tenure itself while a command runs or should run.
pub fn failure(message: String) -> Problem {
    let hint = Hint::step("run it again; no claim is held");
    Problem::new(Class::Internal, "internal", message, hint)
}

/// A command that has ended, and how is unknown: a process that ignores the ends of its children cannot wait for one.
pub fn unwaited(error: &io::Error) -> Problem {
    let message = format!("the command has ended, but its exit code is unknown: {error}");
    let hint = Hint::step("start tenure from a program that does not ignore SIGCHLD");
    Problem::new(Class::Internal, "internal", message, hint)
}

/// A command line for people; bytes that are not UTF-8 are replaced.
pub fn readable(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Sends a signal to a command that we started.
pub fn send(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, signal).ignore("it has just ended; waiting for it returns how");
    }
}

/// Passes a signal on. A signal from a terminal reaches the command by itself.
pub fn pass_on(child: &Child, signal: i32) {
    let Some(signal) = Signal::from_named_raw(signal) else {
        return;
    };
    let from_terminal = [Signal::INT, Signal::QUIT].contains(&signal);
    if !(from_terminal && process::has_terminal()) {
        send(child, signal);
    }
}
