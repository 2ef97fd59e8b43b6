//! How answers and errors are shown: to people as text, to programs as exactly one JSON object.
//!
//! Data goes to stdout; errors, hints and notices to stderr. Nothing else in the program prints.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tenure_core::error::Error;
use tenure_core::notice::Notice;
use tenure_core::service::{Answer, Failure};
use tenure_core::store::StoreError;
use tenure_core::time::{Span, Timestamp};
use tenure_core::view::NoticeView;

use crate::exit::Exit;

/// A verb's answer, ready to be shown.
#[derive(Debug, Default)]
pub struct Shown {
    /// What the JSON object carries besides `v` and `notices`.
    pub json: Map<String, Value>,
    /// The same for people.
    pub text: String,
    /// What the caller is told, once.
    pub notices: Vec<Notice>,
    /// The exit code.
    pub exit: Option<Exit>,
    /// What is missing in it, because it could not be read.
    pub damaged: Option<StoreError>,
    /// Nothing is to be shown: stdout belongs to a command that we ran.
    pub silent: bool,
}

impl Shown {
    /// Nothing but an exit code.
    pub fn silent(exit: Exit) -> Self {
        Self {
            exit: Some(exit),
            silent: true,
            ..Self::default()
        }
    }

    /// An answer with one named part.
    pub fn new(name: &str, part: &impl Serialize, text: impl Into<String>) -> Self {
        Self::default().with(name, part).say(text)
    }

    /// Adds a named part.
    #[must_use]
    pub fn with(mut self, name: &str, part: &impl Serialize) -> Self {
        let value = serde_json::to_value(part).unwrap_or(Value::Null);
        self.json.insert(name.to_owned(), value);
        self
    }

    /// Adds text for people.
    #[must_use]
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.text.push_str(&text.into());
        self
    }

    /// Sets the exit code of an answer that is a no.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = Some(exit);
        self
    }

    /// Adds what a use case's answer tells the caller.
    #[must_use]
    pub fn told<T>(mut self, answer: &Answer<T>) -> Self {
        self.notices.extend(answer.notices.iter().cloned());
        self.damaged = self.damaged.or_else(|| answer.damaged.clone());
        self
    }
}

/// What a verb comes to.
pub type Outcome = Result<Shown, Trouble>;

/// Why a verb failed, ready to be shown.
#[derive(Debug)]
pub struct Trouble {
    /// The error.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hints: Vec<String>,
    /// More data for programs.
    pub data: Map<String, Value>,
    /// What the caller is told, once.
    pub notices: Vec<Notice>,
    /// The exit code.
    pub exit: Exit,
    /// The JSON object goes to stderr: stdout belongs to a command that we run.
    pub to_stderr: bool,
}

impl Trouble {
    /// A failure of the command line or the set-up.
    pub fn new(
        exit: Exit,
        kind: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.into(),
            hints: vec![hint.into()],
            data: Map::new(),
            notices: Vec::new(),
            exit,
            to_stderr: false,
        }
    }
}

impl Trouble {
    /// The one object that programs get.
    pub fn object(&self) -> Value {
        json!({"v": 1, "error": self.error(), "notices": notices_json(&self.notices)})
    }

    fn error(&self) -> Map<String, Value> {
        let mut error = Map::new();
        error.insert("kind".into(), json!(self.kind));
        error.insert("message".into(), json!(self.message));
        error.insert("hints".into(), json!(self.hints));
        error.extend(self.data.clone());
        error
    }

    fn text(&self) -> String {
        let mut text = format!("error: {}", self.message);
        for hint in &self.hints {
            let _infallible = write!(text, "\nhint: {hint}");
        }
        text
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self {
            kind: error.kind().to_owned(),
            message: error.to_string(),
            hints: error.hints(),
            data: error_data(&error),
            notices: Vec::new(),
            exit: Exit::of(error.class()),
            to_stderr: false,
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let mut trouble = Self {
            notices: failure.notices,
            ..failure.error.into()
        };
        if let Some(store) = failure.store {
            trouble.data.insert("store".into(), json!(store));
            if trouble.exit == Exit::NOT_FOUND && trouble.kind != "nobody" {
                trouble
                    .hints
                    .push(format!("the store that was asked is {store}"));
            }
        }
        trouble
    }
}

impl From<tenure_core::id::Malformed> for Trouble {
    fn from(error: tenure_core::id::Malformed) -> Self {
        Error::from(error).into()
    }
}

/// What programs get of an error besides its sentence.
fn error_data(error: &Error) -> Map<String, Value> {
    let mut data = Map::new();
    if let Some(claim) = error.claim() {
        data.insert("key".into(), json!(claim.key));
        data.insert("epoch".into(), json!(claim.epoch));
        data.insert("holder".into(), json!(claim.holder));
        data.insert("since".into(), json!(claim.acquired_at));
        data.insert("note".into(), json!(claim.note));
        data.insert("lease_until".into(), json!(claim.lease_until));
    }
    match error {
        Error::Lost { epoch, .. } => {
            data.insert("lost_epoch".into(), json!(epoch));
        }
        Error::Suspect { left, .. } => {
            let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            data.insert("left_ms".into(), json!(millis));
        }
        Error::AlreadyHeld { key, epoch } => {
            data.insert("key".into(), json!(key));
            data.insert("epoch".into(), json!(epoch));
        }
        Error::Free { key } => {
            data.insert("key".into(), json!(key));
        }
        Error::Noisy {
            key,
            handle,
            survivors,
        } => {
            data.insert("key".into(), json!(key));
            data.insert("session".into(), json!(handle));
            data.insert("survivors".into(), json!(survivors));
        }
        Error::TimedOut { why, .. } => {
            data.insert("waited_for".into(), json!(why.kind()));
        }
        Error::Ambiguous { candidates, .. } => {
            data.insert("candidates".into(), json!(candidates));
        }
        Error::CannotTell { handle, key, .. } => {
            data.insert("session".into(), json!(handle));
            data.insert("key".into(), json!(key));
        }
        Error::NotLive { handle, .. } => {
            data.insert("session".into(), json!(handle));
        }
        Error::Faulty { faults, .. } => {
            data.insert("faults".into(), json!(faults));
        }
        Error::NoMission { passed_over, .. } => {
            data.insert("passed_over".into(), json!(passed_over));
        }
        Error::Collision {
            mission,
            focus,
            drivers,
        } => {
            data.insert("mission".into(), json!(mission));
            data.insert("focus".into(), json!(focus));
            data.insert("drivers".into(), json!(drivers));
        }
        _ => {}
    }
    data
}

/// How to show things, as the flags say.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// One JSON object instead of text.
    pub json: bool,
    /// No text on success.
    pub quiet: bool,
}

impl Style {
    /// Shows an answer and returns the exit code.
    pub fn show(self, shown: &Shown) -> Exit {
        if shown.silent {
            return shown.exit.unwrap_or(Exit::DONE);
        }
        let damaged = shown.damaged.clone();
        let damaged = damaged.map(|error| Trouble::from(Error::from(error)));
        if self.json {
            let mut object = Map::new();
            object.insert("v".into(), json!(1));
            object.extend(shown.json.clone());
            if let Some(trouble) = &damaged {
                object.insert("error".into(), Value::Object(trouble.error()));
            }
            object.insert("notices".into(), notices_json(&shown.notices));
            line(&mut std::io::stdout(), &Value::Object(object).to_string());
        } else {
            tell(&shown.notices);
            if !self.quiet && !shown.text.is_empty() {
                line(&mut std::io::stdout(), shown.text.trim_end_matches('\n'));
            }
            if let Some(trouble) = &damaged {
                line(&mut std::io::stderr(), &trouble.text());
            }
        }
        match damaged {
            Some(trouble) => trouble.exit,
            None => shown.exit.unwrap_or(Exit::DONE),
        }
    }

    /// Shows a failure and returns the exit code.
    pub fn show_trouble(self, trouble: &Trouble) -> Exit {
        if self.json {
            let object = trouble.object();
            match trouble.to_stderr {
                true => line(&mut std::io::stderr(), &object.to_string()),
                false => line(&mut std::io::stdout(), &object.to_string()),
            }
        } else {
            tell(&trouble.notices);
            line(&mut std::io::stderr(), &trouble.text());
        }
        trouble.exit
    }
}

/// Notices as the JSON shows them.
pub fn notices_json(notices: &[Notice]) -> Value {
    let views: Vec<NoticeView> = notices.iter().map(NoticeView::from).collect();
    json!(views)
}

/// Tells people what they must be told.
pub fn tell(notices: &[Notice]) {
    for notice in notices {
        line(
            &mut std::io::stderr(),
            &format!("notice: {}", notice.message),
        );
    }
}

/// Writes a line. A reader that went away (`tenure log | head`) is no failure of ours.
pub fn line(out: &mut dyn Write, text: &str) {
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        // Nobody is left to tell.
    }
}

/// Whether text on stdout may carry colour; asked once, however many words there are to paint.
fn colours() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| std::io::stdout().is_terminal() && wants_colour())
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Paints a word for a terminal.
pub fn paint(word: &str, state: &str) -> String {
    match colours() {
        true => painted(word, state),
        false => word.to_owned(),
    }
}

/// Paints words for a program that shows them on its own terminal.
pub fn paint_for_agent(words: &str, state: &str) -> String {
    match wants_colour() {
        true => painted(words, state),
        false => words.to_owned(),
    }
}

fn painted(word: &str, state: &str) -> String {
    let colour = match state {
        "live" | "busy" | "held" => "32",
        "waiting" => "1;35",
        "idle" => "36",
        "unknown" | "suspect" | "stalled" => "33",
        "dead" => "31",
        _ => "2",
    };
    format!("\u{1b}[{colour}m{word}\u{1b}[0m")
}

/// A time as people say it.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let age = at.age_at(now);
    if age < Duration::from_secs(1) {
        return "just now".into();
    }
    format!("{} ago", Span(age))
}

/// Lines up columns; the last one is not padded.
pub fn table(head: &[&str], rows: &[Vec<Cell>]) -> String {
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.text.chars().count());
            cells.chain([head[column].len()]).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    let titles: Vec<Cell> = head.iter().map(|title| Cell::plain(*title)).collect();
    for row in std::iter::once(&titles).chain(rows) {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            text.push_str(&cell.painted());
            if column + 1 < row.len() {
                let missing = widths[column].saturating_sub(cell.text.chars().count());
                text.push_str(&" ".repeat(missing + 2));
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// A cell of a table, perhaps coloured.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    state: Option<&'static str>,
}

impl Cell {
    /// A cell without colour.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            state: None,
        }
    }

    /// A cell in the colour of a state.
    pub fn state(text: impl Into<String>, state: &'static str) -> Self {
        Self {
            text: text.into(),
            state: Some(state),
        }
    }

    fn painted(&self) -> String {
        match self.state {
            Some(state) => paint(&self.text, state),
            None => self.text.clone(),
        }
    }
}
