//! A process that waits at a gate and then becomes the command.
//!
//! It is our own program, started as `__exec --gate N [--echo M] -- CMD`; its main passes that to [`become_command`].

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use tenure_core::ignore::Ignore;
use tenure_core::process::{Ancestor, Process};
use tenure_core::world::World;
use tenure_host::caller::SESSION_VARIABLE;
use tenure_host::gate::{self, Echo, EchoWriter, Gate};
use tenure_host::machine::Machine;
use tenure_host::process;
use tenure_service::answer::Problem;

use super::child::{cannot_run, failure};
use crate::unfinished::Unfinished;

/// The trampoline, and later the command: one process throughout.
#[derive(Debug)]
pub struct Trampoline {
    pub child: Child,
    gate: Option<Gate>,
    /// Where it reports why it could not become the command; without it, it writes that to its
    /// stderr.
    echo: Option<Echo>,
}

impl Trampoline {
    /// A trampoline whose failure to start is reported by us.
    pub fn start(command: &[OsString]) -> Result<Self, Problem> {
        let echo = Echo::new().map_err(not_started)?;
        Self::begin(command, Some(echo), |_| {})
    }

    /// A trampoline with its own environment, directory or streams, to which it reports its
    /// failure.
    pub fn prepared(
        command: &[OsString],
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Self, Problem> {
        Self::begin(command, None, prepare)
    }

    fn begin(
        command: &[OsString],
        mut echo: Option<Echo>,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<Self, Problem> {
        let mut gate = Gate::new().map_err(not_started)?;
        let program = tenure_host::env::program().map_err(not_started)?;
        let mut own = Command::new(program);
        own.args(["__exec", "--gate", &gate.number().to_string()]);
        if let Some(echo) = &echo {
            own.args(["--echo", &echo.number().to_string()]);
        }
        own.arg("--").args(command);
        prepare(&mut own);
        let child = own.spawn().map_err(not_started)?;
        gate.child_started();
        if let Some(echo) = &mut echo {
            echo.child_started();
        }
        Ok(Self {
            child,
            gate: Some(gate),
            echo,
        })
    }

    /// Why the process, which has ended, never became the command.
    pub fn not_executed(&mut self, command: &[OsString]) -> Option<Unfinished> {
        let error = self.echo.as_mut()?.error()?;
        Some(cannot_run(&command[0], &error))
    }

    /// Its process, and that with its ancestors.
    pub fn chain(&self, machine: &Machine) -> Result<(Process, Vec<Ancestor>), Problem> {
        let (chain, broken) = process::chain_from(self.child.id(), machine.observer());
        match chain.first() {
            Some(own) => Ok((own.process.clone(), chain)),
            None => Err(failure(format!(
                "cannot inspect the command's process: {}",
                broken.unwrap_or_default()
            ))),
        }
    }

    pub fn release(&mut self, word: &str) -> Result<(), Problem> {
        match self.gate.take() {
            Some(gate) => gate
                .open(word)
                .map_err(|error| failure(format!("the command did not start: {error}"))),
            None => Ok(()),
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn not_started(error: std::io::Error) -> Problem {
    failure(format!("cannot start a process: {error}"))
}

/// A trampoline that was not let through exits by itself, but must be reaped.
impl Drop for Trampoline {
    fn drop(&mut self) {
        if self.gate.take().is_some() {
            self.child
                .wait()
                .ignore("there is nothing left to wait for");
        }
    }
}

/// Why the trampoline did not become the command.
#[derive(Debug)]
pub enum Stayed {
    /// The gate was closed: the command must not run.
    Closed,
    /// It failed, and the process that started it was not told.
    Failed(Unfinished),
    /// It failed, and the process that started it was told.
    Told(Unfinished),
}

/// Waits at the gate, then becomes the command. Returns only if it does not.
pub fn become_command(gate: i32, echo: Option<i32>, words: &[OsString]) -> Stayed {
    let failed = |error| {
        let message = format!("cannot wait for the start of the command: {error}");
        Stayed::Failed(failure(message).into())
    };
    // Taken over before anything is executed, so that the command does not inherit it.
    let mut echo = match echo.map(EchoWriter::inherited).transpose() {
        Ok(echo) => echo,
        Err(error) => return failed(error),
    };
    let word = match gate::wait(gate) {
        Ok(Some(word)) => word,
        Ok(None) => return Stayed::Closed,
        Err(error) => return failed(error),
    };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    if !word.is_empty() {
        command.env(SESSION_VARIABLE, word);
    }
    let error = command.exec();
    let why = cannot_run(&words[0], &error);
    if echo.as_mut().is_some_and(|echo| echo.tell(&error)) {
        Stayed::Told(why)
    } else {
        Stayed::Failed(why)
    }
}
