//! The agent's process. It waits at a gate until its record is written, and leads its own process
//! group.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process_group};
use tenure_core::id::SessionToken;
use tenure_core::process::{Ancestor, Process};
use tenure_core::run::end::Exit;
use tenure_host::machine::Machine;
use tenure_host::pidfd::ProcessWatch;
use tenure_service::answer::Problem;

use super::environment::Variables;
use super::log::Output;
use tenure_app::supervise::failure;
use tenure_app::supervise::trampoline::Trampoline;

/// What an agent is started with.
pub(super) struct Setup<'a> {
    pub words: &'a [OsString],
    pub variables: &'a Variables,
    pub dir: &'a Path,
    /// The whole prompt, or nothing.
    pub input: File,
    pub output: &'a Output,
    pub errors: &'a Output,
}

#[derive(Debug)]
pub(super) struct AgentProcess {
    trampoline: Trampoline,
    pub chain: Vec<Ancestor>,
    pub process: Process,
}

impl AgentProcess {
    /// Starts a process that becomes the agent when it is let go, and exits if that never happens.
    pub fn wait_at_gate(setup: Setup<'_>, machine: &Machine) -> Result<Self, Problem> {
        let failed = |error: io::Error| failure(format!("cannot start a process: {error}"));
        let (output, errors) = (setup.output.writer(), setup.errors.writer());
        let (output, errors) = (output.map_err(failed)?, errors.map_err(failed)?);
        let trampoline = Trampoline::prepared(setup.words, |command| {
            command
                .env_clear()
                .envs(setup.variables)
                .current_dir(setup.dir)
                .stdin(Stdio::from(setup.input))
                .stdout(Stdio::from(output))
                .stderr(Stdio::from(errors))
                .process_group(0);
        })?;
        let (process, chain) = trampoline.chain(machine)?;
        Ok(Self {
            process,
            chain,
            trampoline,
        })
    }

    /// Lets it become the agent, as this session.
    pub fn release(&mut self, token: SessionToken) -> Result<(), Problem> {
        self.trampoline.release(&token.to_string())
    }

    /// How it ended, if it has. Until this returns an end, its pid cannot be reused.
    pub fn ended(&mut self) -> io::Result<Option<Exit>> {
        let status = self.trampoline.child.try_wait()?;
        Ok(status.map(exit_of))
    }

    /// A watch that wakes when it exits.
    pub fn watch(&self) -> Option<ProcessWatch> {
        ProcessWatch::open(&self.process)
    }

    /// Sends a signal to its whole group. Its end must not have been collected yet.
    pub fn signal(&self, signal: Signal) {
        if let Err(error) = signal_group(&self.process, signal)
            && error != Errno::SRCH
        {
            // Only a process of another user cannot be signalled; then wait for its end.
        }
    }
}

/// Sends a signal to the process group of a process, which is never our own group. It must not have
/// been reaped.
pub(super) fn signal_group(member: &Process, signal: Signal) -> Result<(), Errno> {
    let number = i32::try_from(member.pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or(Errno::SRCH)?;
    let group = getpgid(Some(number))?;
    if group == getpgrp() {
        return Err(Errno::PERM);
    }
    kill_process_group(group, signal)
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// The recorded exit code: 128 plus the signal number if a signal ended the agent.
pub(super) fn code_of(exit: Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(signal) => Some(128 + signal),
        Exit::Unknown => None,
    }
}
