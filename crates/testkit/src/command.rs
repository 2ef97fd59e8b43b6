//! A command for a worker to run.

use std::path::{Path, PathBuf};

/// A program with its arguments, variables, directory and input.
#[derive(Debug, Clone)]
#[must_use = "a command does nothing until a worker runs it"]
pub struct Cmd {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, Option<String>)>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) stdin: Option<String>,
}

impl Cmd {
    /// A program; a bare name is searched on PATH, where `tenure` is found.
    pub fn new(program: impl Into<String>) -> Cmd {
        Cmd {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            dir: None,
            stdin: None,
        }
    }

    /// A line for `sh -c`.
    pub fn shell(line: &str) -> Cmd {
        Cmd::new("sh").args(["-c", line])
    }

    pub fn arg(mut self, arg: impl Into<String>) -> Cmd {
        self.args.push(arg.into());
        self
    }

    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Cmd {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, key: &str, value: impl Into<String>) -> Cmd {
        self.env.push((key.to_owned(), Some(value.into())));
        self
    }

    pub fn unset(mut self, key: &str) -> Cmd {
        self.env.push((key.to_owned(), None));
        self
    }

    /// Runs it in this directory instead of the worker's.
    pub fn dir(mut self, dir: &Path) -> Cmd {
        self.dir = Some(dir.to_owned());
        self
    }

    /// Sets its standard input; the default is empty.
    pub fn stdin(mut self, text: impl Into<String>) -> Cmd {
        self.stdin = Some(text.into());
        self
    }
}
