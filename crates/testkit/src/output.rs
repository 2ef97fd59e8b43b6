//! The output of a command.

use std::fmt;

/// The exit code and all output.
///
/// Functions that run a command are `must_use`, not this type: [`Output::ok`] and [`Output::fails`]
/// have checked it, so their result may be ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit code; 128 plus the signal number if a signal ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// The one JSON object on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value @ serde_json::Value::Object(_)) => value,
            Ok(_) => panic!("standard output is JSON, but not an object\n{self}"),
            Err(error) => panic!("standard output is not one JSON object: {error}\n{self}"),
        }
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.code == 0, "expected success\n{self}");
        self
    }

    /// Asserts that it failed with this code.
    #[track_caller]
    pub fn fails(self, code: i32) -> Self {
        assert!(self.code == code, "expected exit code {code}\n{self}");
        self
    }
}

/// Everything, so that snapshots and failed assertions show the same text.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit code: {}", self.code)?;
        writeln!(f, "--- stdout\n{}", self.stdout.trim_end_matches('\n'))?;
        write!(f, "--- stderr\n{}", self.stderr.trim_end_matches('\n'))
    }
}
