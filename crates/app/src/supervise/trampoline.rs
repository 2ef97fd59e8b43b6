//! A process that waits at a gate and then becomes the command.
//!
//! It is our own program, started as `__exec --gate N -- CMD`; its main passes that to [`become_command`].

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use tenure_core::process::Ancestor;
use tenure_core::world::World;
use tenure_host::caller::SESSION_VARIABLE;
use tenure_host::gate::{self, Gate};
use tenure_host::machine::Machine;
use tenure_host::process;
use tenure_service::answer::Problem;

use super::child::{cannot_run, failure};
use crate::unfinished::Unfinished;

/// The trampoline and then the command: one process all along.
#[derive(Debug)]
pub struct Trampoline {
    pub child: Child,
    gate: Option<Gate>,
}

impl Trampoline {
    pub fn start(command: &[OsString]) -> Result<Self, Problem> {
        Self::prepared(command, |_| {})
    }

    /// The same with another environment, directory or streams than ours.
    pub fn prepared(
        command: &[OsString],
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Self, Problem> {
        let failed = |error: std::io::Error| failure(format!("cannot start a process: {error}"));
        let mut gate = Gate::new().map_err(failed)?;
        let program = tenure_host::env::program().map_err(failed)?;
        let mut own = Command::new(program);
        own.args(["__exec", "--gate", &gate.number().to_string(), "--"])
            .args(command);
        prepare(&mut own);
        let child = own.spawn().map_err(failed)?;
        gate.child_started();
        Ok(Self {
            child,
            gate: Some(gate),
        })
    }

    pub fn chain(&self, machine: &Machine) -> Result<Vec<Ancestor>, Problem> {
        let (chain, broken) = process::chain_from(self.child.id(), machine.observer());
        match broken {
            Some(why) if chain.is_empty() => Err(failure(format!(
                "cannot inspect the command's process: {why}"
            ))),
            _ => Ok(chain),
        }
    }

    pub fn let_go(&mut self, word: &str) -> Result<(), Problem> {
        match self.gate.take() {
            Some(gate) => gate
                .open(word)
                .map_err(|error| failure(format!("the command did not start: {error}"))),
            None => Ok(()),
        }
    }
}

/// A trampoline that was not let through ends by itself; it must still be waited for.
impl Drop for Trampoline {
    fn drop(&mut self) {
        if self.gate.take().is_some() && self.child.wait().is_err() {
            // Nothing is left to wait for.
        }
    }
}

/// Waits at the gate, then becomes the command. Returns only where it does not; without a reason where the
/// gate was closed, because the command must not run.
pub fn become_command(gate: i32, words: &[OsString]) -> Option<Unfinished> {
    let word = match gate::wait(gate) {
        Ok(word) => word?,
        Err(error) => {
            return Some(
                failure(format!("cannot wait for the start of the command: {error}")).into(),
            );
        }
    };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    if !word.is_empty() {
        command.env(SESSION_VARIABLE, word);
    }
    let error = command.exec();
    Some(cannot_run(&words[0], &error))
}
