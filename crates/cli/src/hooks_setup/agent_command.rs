//! A command line of the agent itself that changes its settings, for an agent that edits them alone.

use std::fmt;
use std::process::{Command, Stdio};

use tenure_core::text;
use tenure_service::answer::{Class, Hint};

use crate::output::CliError;

/// How much of what a failed command said is shown.
const MAX_LINES: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    program: &'static str,
    words: Vec<String>,
}

impl AgentCommand {
    pub fn of(program: &'static str, words: Vec<String>) -> Self {
        Self { program, words }
    }

    /// Runs it to its end; what it says is shown only if it fails.
    pub fn run(&self) -> Result<(), CliError> {
        let ran = Command::new(self.program)
            .args(&self.words)
            .stdin(Stdio::null())
            .output();
        let why = match ran {
            Ok(done) if done.status.success() => return Ok(()),
            Ok(done) => {
                let said = [done.stdout, done.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                let mut lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
                lines.drain(..lines.len().saturating_sub(MAX_LINES));
                format!("{}: {}", done.status, text::line(&lines.join("; ")))
            }
            Err(error) => error.to_string(),
        };
        let message = format!("{self} failed: {why}");
        let hint =
            Hint::step("run that command yourself to see why, then run the same command again");
        Err(CliError::new(Class::Invalid, "invalid", message, hint))
    }
}

impl fmt::Display for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words.iter().map(|word| text::shell(word));
        let line: Vec<String> = std::iter::once(self.program.to_owned())
            .chain(words)
            .collect();
        write!(f, "`{}`", line.join(" "))
    }
}
