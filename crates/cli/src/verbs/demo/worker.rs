//! A worker of the demo: a real process that stands for a coding agent.
//!
//! It reads tenure's arguments and input from its stdin, a JSON object a line, runs `tenure` as its own child, as an
//! agent's tool call would, and answers with what came of it. It ends when its stdin closes, so that a
//! demo that is interrupted leaves nothing behind.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tenure_core::process::{RunState, Sighting};
use tenure_host::{pause, process, system};
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

/// What can go wrong with a worker.
#[derive(Debug)]
pub enum Fault {
    NoProgram(io::Error),
    NotStarted(io::Error),
    NoPipes,
    NotWritten(io::Error),
    NotRead(io::Error),
    Nonsense(String),
    NotDead(io::Error),
    NotStopped,
    NotSignalled(io::Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram(error) => write!(f, "cannot find the tenure executable: {error}"),
            Self::NotStarted(error) => write!(f, "a worker did not start: {error}"),
            Self::NoPipes => write!(f, "a worker has no pipes"),
            Self::NotWritten(error) => write!(f, "cannot write to a worker: {error}"),
            Self::NotRead(error) => write!(f, "cannot read from a worker: {error}"),
            Self::Nonsense(text) => write!(f, "a worker answered with {text:?}"),
            Self::NotDead(error) => write!(f, "a worker did not die: {error}"),
            Self::NotStopped => write!(f, "a worker did not stop"),
            Self::NotSignalled(error) => write!(f, "cannot signal a worker: {error}"),
        }
    }
}

impl From<Fault> for CliError {
    fn from(fault: Fault) -> Self {
        wrong(fault.to_string())
    }
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
pub struct CallResult {
    pub code: i64,
    pub json: Value,
}

impl Worker {
    /// Starts a worker on the scratch state directory.
    pub fn start(home: &Path, name: &'static str) -> Result<Self, CliError> {
        Self::start_in(home, name, home.parent().unwrap_or(home))
    }

    /// The same in another directory.
    pub fn start_in(home: &Path, name: &'static str, dir: &Path) -> Result<Self, CliError> {
        let program = tenure_host::env::program().map_err(Fault::NoProgram)?;
        let mut child = Command::new(program)
            .arg("__demo-worker")
            .env("TENURE_HOME", home)
            .env("TENURE_LEASE", "200ms")
            .env("TENURE_LOCK_DELAY", "100ms")
            .env_remove("TENURE_STORE")
            .env_remove("TENURE_SESSION")
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Fault::NotStarted)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Fault::NoPipes.into());
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
        self.send_with(arguments, None)
    }

    fn send_with(&mut self, arguments: &[&str], stdin: Option<&Value>) -> Result<(), CliError> {
        let input = self.input.as_mut().ok_or(Fault::NoPipes)?;
        let stdin = stdin.map(Value::to_string);
        writeln!(input, "{}", json!({"arguments": arguments, "stdin": stdin}))
            .and_then(|()| input.flush())
            .map_err(Fault::NotWritten)?;
        Ok(())
    }

    /// Waits for the answer to the oldest call.
    pub fn receive(&mut self) -> Result<CallResult, CliError> {
        let mut text = String::new();
        self.output.read_line(&mut text).map_err(Fault::NotRead)?;
        let answer: Value = serde_json::from_str(&text).map_err(|_| Fault::Nonsense(text))?;
        Ok(CallResult {
            code: answer["code"].as_i64().unwrap_or(-1),
            json: answer["json"].clone(),
        })
    }

    /// Runs tenure in the worker and waits for the answer.
    pub fn call(&mut self, arguments: &[&str]) -> Result<CallResult, CliError> {
        self.send(arguments)?;
        self.receive()
    }

    /// Reports an event, as an agent's hooks do.
    pub fn report(&mut self, event: &Value) -> Result<CallResult, CliError> {
        self.send_with(&["hook", "generic"], Some(event))?;
        self.receive()
    }

    /// Ends the worker as a crash would.
    pub fn kill(&mut self) -> Result<(), CliError> {
        self.child.kill().map_err(Fault::NotDead)?;
        self.child.wait().map_err(Fault::NotDead)?;
        Ok(())
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
        Err(Fault::NotStopped.into())
    }

    pub fn go_on(&self) -> Result<(), CliError> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), CliError> {
        let signalled = kill_process(Pid::from_child(&self.child), signal);
        signalled.map_err(|error| Fault::NotSignalled(error.into()))?;
        Ok(())
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

/// What a worker is asked for.
#[derive(serde::Deserialize)]
struct DemoRequest {
    arguments: Vec<String>,
    stdin: Option<String>,
}

impl DemoRequest {
    fn run(&self, program: &Path) -> io::Result<std::process::Output> {
        let mut child = Command::new(program)
            .args(&self.arguments)
            .arg("--json")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let (Some(mut input), Some(text)) = (child.stdin.take(), &self.stdin) {
            input.write_all(text.as_bytes())?;
        }
        child.wait_with_output()
    }
}

pub fn run() -> Outcome {
    // A demo that is killed takes its workers along, also one that is stopped.
    system::end_with_parent(Signal::KILL).map_err(|error| wrong(error.to_string()))?;
    let program = tenure_host::env::program().map_err(|error| wrong(error.to_string()))?;
    for text in std::io::stdin().lines() {
        let text = text.map_err(|error| wrong(error.to_string()))?;
        let request: DemoRequest =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let output = request.run(&program);
        let output = output.map_err(|error| wrong(error.to_string()))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let json: Value = serde_json::from_str(&printed).unwrap_or(Value::Null);
        let answer = json!({"code": output.status.code(), "json": json});
        if !put(&answer.to_string())? {
            break;
        }
    }
    Ok(Output::default())
}
