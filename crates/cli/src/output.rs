//! How answers and errors are shown: to people as text, to programs as exactly one JSON object.
//!
//! Data goes to stdout; errors, hints and notices to stderr. Nothing else in the program prints. Everything
//! for people goes out as [`Lines`]; notices count as told only after they were written.

use std::io;

use serde::Serialize;
use serde_json::{Map, Value};
use tenure_core::key::Key;
use tenure_core::notice::{Channel, Pending};
use tenure_core::store::StoreError;
use tenure_service::Answer;
use tenure_service::answer::{Class, Hint, Problem, body};

pub use crate::colour::{CLEAR, Painted, colours, paint, paint_for_agent};
pub use crate::columns::{Cell, table};
use crate::exit::Exit;
use crate::lines::Lines;
use crate::sink::{self, Unwritten, WriteResult};
pub use crate::standing::ago;

/// A verb's answer, ready to be shown.
#[derive(Debug, Default)]
pub struct Output {
    /// What the JSON object carries besides `v` and `notices`.
    pub json: Map<String, Value>,
    pub text: Lines,
    /// What the caller is told.
    pub notices: Pending,
    pub exit: Option<Exit>,
    /// Rows that are missing because they could not be read.
    pub damaged: Option<StoreError>,
    /// Shown with `--quiet` too, which asks for this short form.
    pub is_terse: bool,
    /// Show nothing: stdout belongs to a command that we ran.
    pub silent: bool,
}

impl Output {
    /// Nothing but an exit code.
    pub fn silent(exit: Exit) -> Self {
        Self {
            exit: Some(exit),
            silent: true,
            ..Self::default()
        }
    }

    /// An answer with one named part.
    pub fn new(name: &str, part: &impl Serialize, text: impl Into<Lines>) -> Self {
        Self::default().with(name, part).say(text)
    }

    #[must_use]
    pub fn with(mut self, name: &str, part: &impl Serialize) -> Self {
        let value = serde_json::to_value(part).unwrap_or(Value::Null);
        self.json.insert(name.to_owned(), value);
        self
    }

    #[must_use]
    pub fn say(mut self, text: impl Into<Lines>) -> Self {
        self.text.extend(&text.into());
        self
    }

    /// Sets the exit code of a negative answer.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = Some(exit);
        self
    }

    /// Adds the notices and damage of a use case's answer.
    #[must_use]
    pub fn told<T>(mut self, answer: &Answer<T>) -> Self {
        self.notices = answer.notices.clone();
        self.damaged = self.damaged.or_else(|| answer.damaged.clone());
        self
    }
}

/// The result of a verb.
pub type Outcome = Result<Output, CliError>;

/// Why a verb failed, and how it is shown.
#[derive(Debug)]
pub struct CliError {
    pub problem: Problem,
    /// The code of the class, unless a command that was run decides it.
    pub exit: Exit,
    /// The JSON object goes to stderr: stdout belongs to a command that we run.
    pub to_stderr: bool,
}

impl CliError {
    /// A failure of the command line or the set-up.
    pub fn new(class: Class, kind: &str, message: impl Into<String>, hint: Hint) -> Self {
        Problem::new(class, kind, message, hint).into()
    }

    /// The same with another hint.
    #[must_use]
    pub fn or(mut self, hint: Hint) -> Self {
        self.problem.hints.push(hint);
        self
    }

    /// For an act that only the holder of an item can do. If the item is free, the caller wants to know what became of
    /// it, not to claim it.
    #[must_use]
    pub fn of_holder(mut self, key: &Key) -> Self {
        if self.problem.kind == "free" {
            self.problem.hints = vec![Hint::run("log", [key.as_str()], "to see who held it")];
        }
        self
    }

    /// The same with an exit code of its own.
    #[must_use]
    pub fn exits(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The one object that programs get.
    pub fn object(&self) -> Value {
        self.problem.body()
    }

    fn text(&self) -> Lines {
        let problem = &self.problem;
        let mut text = Lines::default();
        let mut lines = problem.lines.iter();
        let first = lines.next().unwrap_or(&problem.message);
        text.line(format!("error: {first}"));
        lines.for_each(|line| text.line(line));
        if let Some(store) = problem.asked_store() {
            text.line(format!("store: {store}"));
        }
        for hint in problem.shown_hints() {
            text.line(format!("hint: {}", hint.sentence()));
        }
        text
    }
}

/// The hint for a state directory that cannot be used.
pub fn where_state_is() -> Hint {
    Hint::verb("config", "to see where tenure stores its state")
}

impl<T: Into<Problem>> From<T> for CliError {
    fn from(problem: T) -> Self {
        let problem = problem.into();
        Self {
            exit: Exit::of(problem.class),
            problem,
            to_stderr: false,
        }
    }
}

/// How to show things, from the flags.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// One JSON object instead of text.
    pub json: bool,
    /// No text on success.
    pub quiet: bool,
}

/// The outcome of showing an answer.
#[must_use = "an answer that was not written is a failure"]
pub struct ShowResult {
    /// The exit code of what was shown.
    exit: Exit,
    /// Where the notices went.
    pub channel: Channel,
    /// Why the answer was not written.
    failed: Option<io::Error>,
}

impl ShowResult {
    fn new(exit: Exit, written: WriteResult, channel: Channel) -> Self {
        let (channel, failed) = match written {
            Ok(()) => (channel, None),
            Err(Unwritten::ReaderLeft) => (Channel::Nowhere, None),
            Err(Unwritten::Failed(error)) => (Channel::Nowhere, Some(error)),
        };
        Self {
            exit,
            channel,
            failed,
        }
    }

    /// The exit code. An answer that could not be written is always a failure.
    pub fn end(self, changed: bool) -> Exit {
        let Some(error) = self.failed else {
            return self.exit;
        };
        let failure = unwritten(&error, changed);
        sink::mention(failure.text().as_str());
        failure.exit
    }
}

/// An answer that could not be written.
fn unwritten(error: &io::Error, changed: bool) -> CliError {
    let (message, hint) = if changed {
        (
            format!("the change was made, but the output could not be written: {error}"),
            Hint::verb("log", "to see what was changed"),
        )
    } else {
        (
            format!("the output could not be written: {error}"),
            Hint::step("free up space where stdout goes, then run it again"),
        )
    };
    CliError::new(Class::Internal, "output_failed", message, hint)
}

/// Writes a line of a stream to stdout; false if the reader has left.
pub fn put(text: &str) -> Result<bool, CliError> {
    is_read(sink::out(text))
}

/// Writes part of an answer to stdout, without the end of a line; false if the reader has left.
pub fn put_part(text: &str) -> Result<bool, CliError> {
    is_read(sink::part(text))
}

fn is_read(written: WriteResult) -> Result<bool, CliError> {
    match written {
        Ok(()) => Ok(true),
        Err(Unwritten::ReaderLeft) => Ok(false),
        Err(Unwritten::Failed(error)) => Err(unwritten(&error, false)),
    }
}

impl Style {
    pub fn show(self, shown: &Output) -> ShowResult {
        let damaged = shown.damaged.clone();
        let damaged = damaged.map(CliError::from);
        let exit = match &damaged {
            Some(failure) => failure.exit,
            None => shown.exit.unwrap_or(Exit::DONE),
        };
        if shown.silent {
            return ShowResult::new(exit, Ok(()), Channel::Nowhere);
        }
        if self.json {
            let mut parts = shown.json.clone();
            if let Some(failure) = &damaged {
                let error = failure.problem.error();
                parts.insert("error".into(), Value::Object(error));
            }
            let written = sink::out(&body(parts, &shown.notices).to_string());
            let channel = sink::channel(&io::stdout(), true, self.quiet);
            return ShowResult::new(exit, written, channel);
        }
        let channel = self.tell(&shown.notices);
        let is_hushed = self.quiet && !shown.is_terse;
        let written = if is_hushed || shown.text.is_empty() {
            Ok(())
        } else {
            sink::out(shown.text.as_str())
        };
        if let Some(failure) = &damaged {
            sink::mention(failure.text().as_str());
        }
        let showed = ShowResult::new(exit, written, channel);
        // The notices went to stderr even if the answer was not written.
        ShowResult { channel, ..showed }
    }

    pub fn show_error(self, failure: &CliError) -> ShowResult {
        let exit = failure.exit;
        let ended = |written: &WriteResult, channel| ShowResult {
            exit,
            channel: if written.is_ok() {
                channel
            } else {
                Channel::Nowhere
            },
            // The error has its own code; there is nowhere else to report.
            failed: None,
        };
        if self.json {
            let object = failure.object().to_string();
            let (written, channel) = if failure.to_stderr {
                (sink::err(&object), self.on_stderr())
            } else {
                (
                    sink::out(&object),
                    sink::channel(&io::stdout(), true, self.quiet),
                )
            };
            if let (Err(Unwritten::Failed(_)), false) = (&written, failure.to_stderr) {
                sink::mention(failure.text().as_str());
            }
            return ended(&written, channel);
        }
        let channel = self.tell(&failure.problem.notices);
        sink::mention(failure.text().as_str());
        ended(&Ok(()), channel)
    }

    /// The channel that stdout is for a JSON object.
    pub fn json_channel(self) -> Channel {
        sink::channel(&io::stdout(), true, self.quiet)
    }

    /// The channel that stderr is.
    fn on_stderr(self) -> Channel {
        sink::channel(&io::stderr(), self.json, self.quiet)
    }

    /// Prints notices on stderr; returns the channel they went to.
    pub fn tell(self, notices: &Pending) -> Channel {
        let mut text = Lines::default();
        for notice in notices.iter() {
            text.line(format!("notice: {}", notice.message));
        }
        if notices.more > 0 {
            text.line(format!(
                "notice: {} more; run `tenure status` to see them",
                notices.more
            ));
        }
        self.say_told(&text)
    }

    /// Writes the final object of a command's run to stderr; returns the channel its notices went to.
    pub fn report(self, object: &Value) -> Channel {
        match sink::err(&object.to_string()) {
            Ok(()) => self.on_stderr(),
            Err(_) => Channel::Nowhere,
        }
    }

    fn say_told(self, text: &Lines) -> Channel {
        if text.is_empty() {
            return Channel::Nowhere;
        }
        match sink::err(text.as_str()) {
            Ok(()) => sink::channel(&io::stderr(), false, self.quiet),
            Err(_) => Channel::Nowhere,
        }
    }
}

/// Prints one line on stderr; a failure to do so is ignored.
pub fn warn(text: impl AsRef<str>) {
    sink::mention(Lines::from(text.as_ref()).as_str());
}

/// `1 line`, `2 lines`.
#[allow(clippy::needless_pass_by_value)] // numbers
pub fn count<N: std::fmt::Display + PartialEq + From<u8>>(number: N, one: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {one}{plural}")
}
