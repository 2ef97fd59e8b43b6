//! A worker of the demo: a real process that stands for a coding agent.
//!
//! It reads tenure's arguments from its stdin, a JSON list a line, runs `tenure` as its own child, as an
//! agent's tool call would, and answers with what came of it. It ends when its stdin closes, so that a
//! demo that is interrupted leaves nothing behind.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde_json::{Value, json};
use tenure_core::process::{RunState, Sighting};
use tenure_host::{pause, process};
use tenure_service::answer::{Class, Hint};

use crate::output::{CliError, Outcome, Output, put};

/// A result that is not what tenure promises.
pub fn wrong(what: String) -> CliError {
    CliError::new(
        Class::Refused,
        "demo",
        what,
        Hint::step("please report this message with the output above"),
    )
}

/// How long a worker may take to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// A worker, as the demo sees it.
pub struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// What the demo calls it.
    pub name: &'static str,
}

/// What came of a call of tenure.
pub struct Call {
    pub code: i64,
    pub json: Value,
}

impl Worker {
    /// Starts a worker on the scratch state directory.
    pub fn start(home: &Path, name: &'static str) -> Result<Self, CliError> {
        let program = tenure_host::env::program()
            .map_err(|error| wrong(format!("cannot find the tenure executable: {error}")))?;
        let mut child = Command::new(program)
            .arg("__demo-worker")
            .env("TENURE_HOME", home)
            .env("TENURE_LEASE", "200ms")
            .env("TENURE_LOCK_DELAY", "100ms")
            .env("TENURE_STALLED_AFTER", "100ms")
            .env_remove("TENURE_STORE")
            .env_remove("TENURE_SESSION")
            .current_dir(home.parent().unwrap_or(home))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| wrong(format!("a worker did not start: {error}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(wrong("a worker has no pipes".into()));
        };
        Ok(Self {
            child,
            input: Some(input),
            output: BufReader::new(output),
            name,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for a call without waiting for its answer.
    pub fn send(&mut self, arguments: &[&str]) -> Result<(), CliError> {
        let failed = |error: std::io::Error| wrong(format!("cannot write to a worker: {error}"));
        let Some(input) = &mut self.input else {
            return Err(wrong("a worker was closed".into()));
        };
        writeln!(input, "{}", json!(arguments))
            .and_then(|()| input.flush())
            .map_err(failed)
    }

    /// Waits for the answer to the oldest call.
    pub fn receive(&mut self) -> Result<Call, CliError> {
        let mut text = String::new();
        self.output
            .read_line(&mut text)
            .map_err(|error| wrong(format!("cannot read from a worker: {error}")))?;
        let answer: Value = serde_json::from_str(&text)
            .map_err(|_| wrong(format!("a worker answered with {text:?}")))?;
        Ok(Call {
            code: answer["code"].as_i64().unwrap_or(-1),
            json: answer["json"].clone(),
        })
    }

    /// Runs tenure in the worker and waits for the answer.
    pub fn call(&mut self, arguments: &[&str]) -> Result<Call, CliError> {
        self.send(arguments)?;
        self.receive()
    }

    /// Ends the worker as a crash would.
    pub fn kill(&mut self) -> Result<(), CliError> {
        let failed = |error: std::io::Error| wrong(format!("a worker did not die: {error}"));
        self.child.kill().map_err(failed)?;
        self.child.wait().map(|_| ()).map_err(failed)
    }

    /// Stops the worker: it lives, but does nothing.
    pub fn stop(&self) -> Result<(), CliError> {
        self.signal(Signal::STOP)?;
        let tries = PATIENCE.as_millis() / 5;
        for _ in 0..tries {
            let seen = process::look(self.pid());
            if matches!(
                seen,
                Sighting::Present {
                    state: RunState::Stopped,
                    ..
                }
            ) {
                return Ok(());
            }
            pause::sleep(Duration::from_millis(5));
        }
        Err(wrong("a worker did not stop".into()))
    }

    pub fn go_on(&self) -> Result<(), CliError> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), CliError> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| wrong("a worker has no pid".into()))?;
        kill_process(pid, signal).map_err(|error| wrong(format!("cannot signal a worker: {error}")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.input = None;
        if matches!(self.child.try_wait(), Ok(None)) && self.child.kill().is_ok() {
            let reaped = self.child.wait();
            debug_assert!(reaped.is_ok(), "a killed child can be waited for");
        }
    }
}

pub fn run() -> Outcome {
    // A demo that is killed takes its workers along, also one that is stopped.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| wrong(error.to_string()))?;
    let program = tenure_host::env::program().map_err(|error| wrong(error.to_string()))?;
    for text in std::io::stdin().lines() {
        let text = text.map_err(|error| wrong(error.to_string()))?;
        let arguments: Vec<String> =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let output = Command::new(&program)
            .args(&arguments)
            .arg("--json")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| wrong(error.to_string()))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let json: Value = serde_json::from_str(&printed).unwrap_or(Value::Null);
        let answer = json!({"code": output.status.code(), "json": json});
        if !put(&answer.to_string())? {
            break;
        }
    }
    Ok(Output::default())
}
