//! Agents that a user describes in the settings: `[agents.NAME]`.
//!
//! The description is checked as a whole before anything is started, and each error names the key. Such an agent
//! writes JSON lines. Its errors are looked for in the `error` field of a line and on its standard error. Whether it
//! still has a conversation cannot be told, so that a refused resume is reported and never repeated as a fresh run.

use std::ffi::OsString;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::Value;
use tenure_core::id::{AgentName, NativeId};
use tenure_core::run::failure::{AgentFailure, ErrorClass};
use tenure_core::run::line::{Final, RunLine};
use tenure_core::run::progress::Totals;

use super::field::text;
use super::{
    Inherited, Keeps, Launch, RunSpec, Runs, StopSignal, Untrusted, Variables, read_json, stderr,
};

const ID: &str = "{id}";
const PROMPT_FILE: &str = "{prompt_file}";

/// The compiled size of a pattern is bounded.
const MAX_PATTERN: usize = 1 << 20;

/// A table of the settings, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredTable {
    pub command: Vec<String>,
    #[serde(default)]
    pub resume: Option<Vec<String>>,
    #[serde(default)]
    pub prompt: Option<String>,
    #[serde(default)]
    pub id: Option<String>,
    pub done: String,
    #[serde(default)]
    pub unknown: Option<String>,
    #[serde(default)]
    pub unusable: Option<String>,
}

/// How an agent gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBy {
    Stdin,
    /// By a file whose name is in the command.
    File,
}

/// What is wrong with a table; its name is told by the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongTable {
    #[error("{0}")]
    Name(String),
    #[error("tenure knows this agent; choose another name")]
    Known,
    #[error("{key} is empty; give the program and its arguments")]
    Empty { key: &'static str },
    #[error("{key} contains {placeholder}, which {why}")]
    NotThere {
        key: &'static str,
        placeholder: &'static str,
        why: &'static str,
    },
    #[error("{key} needs {placeholder}")]
    Needs {
        key: &'static str,
        placeholder: &'static str,
    },
    #[error("prompt is {0:?}; expected \"stdin\" or \"file\"")]
    Prompt(String),
    #[error("resume needs id, a JSON pointer to the conversation's id in the stream")]
    ResumeWithoutId,
    #[error("{key} is {value:?}; expected a JSON pointer such as \"/session_id\" or \"/result\"")]
    Pointer { key: &'static str, value: String },
    #[error("{key} is not a valid regular expression ({why})")]
    Pattern { key: &'static str, why: String },
    #[error("{key} also matches an empty text; make it more specific")]
    MatchesAll { key: &'static str },
}

/// An agent by configuration, checked.
#[derive(Debug, Clone)]
pub struct Configured {
    spec: RunSpec,
    command: Vec<String>,
    resume: Option<Vec<String>>,
    prompt: PromptBy,
    id: Option<String>,
    done: String,
    unknown: Option<Regex>,
    unusable: Option<Regex>,
}

impl Configured {
    /// Checks a table; `is_known` tells the agents that have rows of their own.
    pub fn check(
        agent: &str,
        table: ConfiguredTable,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<Self, WrongTable> {
        if let Err(wrong) = AgentName::parse(agent) {
            return Err(WrongTable::Name(wrong.why));
        }
        if is_known(agent) {
            return Err(WrongTable::Known);
        }
        let prompt = prompt_by(table.prompt.as_deref())?;
        check_command("command", &table.command, prompt, false)?;
        if let Some(resume) = &table.resume {
            check_command("resume", resume, prompt, true)?;
            if table.id.is_none() {
                return Err(WrongTable::ResumeWithoutId);
            }
        }
        if let Some(id) = &table.id {
            check_pointer("id", id)?;
        }
        check_pointer("done", &table.done)?;
        Ok(Self {
            spec: SPEC,
            command: table.command,
            resume: table.resume,
            prompt,
            id: table.id,
            done: table.done,
            unknown: pattern("unknown", table.unknown.as_deref())?,
            unusable: pattern("unusable", table.unusable.as_deref())?,
        })
    }

    pub fn prompt(&self) -> PromptBy {
        self.prompt
    }

    /// Whether a conversation can be continued.
    pub fn resumes(&self) -> bool {
        self.resume.is_some()
    }

    fn failure(&self, told: &str) -> AgentFailure {
        let says = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|one| one.is_match(told));
        let class = if says(&self.unknown) {
            ErrorClass::UnknownConversation
        } else if says(&self.unusable) {
            ErrorClass::History
        } else {
            ErrorClass::Other
        };
        AgentFailure::new(class, told)
    }
}

const SPEC: RunSpec = RunSpec {
    chooses_id: false,
    has_title: false,
    stop: StopSignal::Terminate,
    compacts: false,
    resumes_anywhere: false,
    keeps: Keeps::CannotTell,
    untrusted: Untrusted::NoSwitch,
    takes_budget: false,
    tells_in_file: false,
    reserved: &[],
    reserved_untrusted: &[],
    program_below_script: &[],
    keys: &[],
    answered: None,
};

impl Runs for Configured {
    fn spec(&self) -> &RunSpec {
        &self.spec
    }

    fn command(&self, launch: &Launch<'_>) -> Vec<OsString> {
        let fill = |word: &String| {
            let word = launch
                .resume
                .map_or(word.clone(), |id| word.replace(ID, id.as_str()));
            launch
                .prompt_file
                .map_or(word.clone(), |file| word.replace(PROMPT_FILE, file))
        };
        let line = match launch.resume {
            Some(_) => self.resume.as_ref().unwrap_or(&self.command),
            None => &self.command,
        };
        let words = line
            .iter()
            .map(fill)
            .chain(launch.arguments.iter().cloned());
        words.map(OsString::from).collect()
    }

    fn environment(&self, _: &Launch<'_>, _: Inherited<'_>) -> Variables {
        Vec::new()
    }

    /// Any line but an error is taken for work: what an unknown agent writes cannot be told from a turn.
    fn read(&self, line: &[u8]) -> Vec<RunLine> {
        read_json(line, |line| {
            let id = self
                .id
                .as_ref()
                .and_then(|pointer| line.pointer(pointer)?.as_str());
            let id = id.and_then(|id| NativeId::parse(id).ok());
            let mut lines: Vec<RunLine> = id.map(RunLine::Named).into_iter().collect();
            if let Some(told) = error_in(line) {
                lines.push(RunLine::Problem(self.failure(told)));
                return lines;
            }
            lines.push(RunLine::TurnBegan);
            if let Some(answer) = line.pointer(&self.done).filter(|answer| !answer.is_null()) {
                let answer = answer.as_str().map(str::to_owned);
                lines.push(RunLine::Thought);
                lines.push(RunLine::Final(Final::success(answer)));
            }
            lines
        })
    }

    fn read_stderr(&self, _: &str) -> Option<RunLine> {
        None
    }

    fn own_error(&self, _: i32, stderr: &str) -> AgentFailure {
        let plain = stderr::plain(stderr);
        let failure = self.failure(&plain);
        let shown = stderr::failure(&plain, &[]);
        AgentFailure {
            class: failure.class,
            ..shown
        }
    }

    fn read_tail(&self, _: &str) -> Vec<RunLine> {
        Vec::new()
    }

    fn totals(&self, _: &str) -> Option<Totals> {
        None
    }
}

/// The error that a line tells: a text, or an object with a message.
fn error_in(line: &Value) -> Option<&str> {
    text(line, "/error").or(text(line, "/error/message"))
}

fn prompt_by(prompt: Option<&str>) -> Result<PromptBy, WrongTable> {
    match prompt {
        None | Some("stdin") => Ok(PromptBy::Stdin),
        Some("file") => Ok(PromptBy::File),
        Some(value) => Err(WrongTable::Prompt(value.to_owned())),
    }
}

fn check_command(
    key: &'static str,
    line: &[String],
    prompt: PromptBy,
    resumes: bool,
) -> Result<(), WrongTable> {
    if line.first().is_none_or(|program| program.trim().is_empty()) {
        return Err(WrongTable::Empty { key });
    }
    let by_file = prompt == PromptBy::File;
    for (placeholder, is_needed, why) in [
        (ID, resumes, "only resume can use"),
        (PROMPT_FILE, by_file, "needs prompt = \"file\""),
    ] {
        let has = line.iter().any(|word| word.contains(placeholder));
        if has && !is_needed {
            return Err(WrongTable::NotThere {
                key,
                placeholder,
                why,
            });
        }
        if !has && is_needed {
            return Err(WrongTable::Needs { key, placeholder });
        }
    }
    Ok(())
}

/// RFC 6901; the whole line is no place for an id or an answer.
fn check_pointer(key: &'static str, value: &str) -> Result<(), WrongTable> {
    let escapes = value.split('~').skip(1);
    let mut escapes = escapes.map(|rest| rest.starts_with(['0', '1']));
    if value.starts_with('/') && escapes.all(|is_right| is_right) {
        return Ok(());
    }
    Err(WrongTable::Pointer {
        key,
        value: value.to_owned(),
    })
}

/// The cause on one line. Above it the library draws the pattern with marks below it.
fn cause(error: &regex::Error) -> String {
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return "it is too large".to_owned();
    }
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

fn pattern(key: &'static str, value: Option<&str>) -> Result<Option<Regex>, WrongTable> {
    let Some(value) = value else {
        return Ok(None);
    };
    let built = RegexBuilder::new(value).size_limit(MAX_PATTERN).build();
    let built = built.map_err(|error| WrongTable::Pattern {
        key,
        why: cause(&error),
    })?;
    if built.is_match("") {
        return Err(WrongTable::MatchesAll { key });
    }
    Ok(Some(built))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(change: &Value) -> Result<Configured, WrongTable> {
        let mut table = json!({
            "command": ["mine", "--json"],
            "resume": ["mine", "--json", "--resume", "{id}"],
            "prompt": "stdin",
            "id": "/session_id",
            "done": "/result",
            "unknown": "no such session",
            "unusable": "(?i)context too long",
        });
        for (key, value) in change.as_object().unwrap() {
            table[key] = value.clone();
        }
        let table = serde_json::from_value(table).unwrap();
        Configured::check("mine", table, |name| name == "claude")
    }

    fn launch<'a>(resume: Option<&'a NativeId>, arguments: &'a [String]) -> Launch<'a> {
        Launch {
            resume,
            intended: None,
            title: "t",
            dir: "/w",
            trusted: true,
            budget_usd: None,
            arguments,
            prompt_file: Some("/tmp/prompt"),
        }
    }

    #[test]
    fn its_lines_are_filled_in() {
        let mine = checked(&json!({})).unwrap();
        let id = NativeId::parse("s1").unwrap();
        let more = ["--fast".to_owned()];
        assert_eq!(
            mine.command(&launch(None, &more)),
            ["mine", "--json", "--fast"]
        );
        let resumed = mine.command(&launch(Some(&id), &[]));
        assert_eq!(resumed, ["mine", "--json", "--resume", "s1"]);
        let by_file = checked(&json!({
            "prompt": "file",
            "command": ["mine", "--prompt={prompt_file}"],
            "resume": ["mine", "{id}", "{prompt_file}"],
        }));
        let by_file = by_file.unwrap();
        assert_eq!(by_file.prompt(), PromptBy::File);
        let line = by_file.command(&launch(Some(&id), &[]));
        assert_eq!(line, ["mine", "s1", "/tmp/prompt"]);
    }

    #[test]
    fn its_stream_is_read_by_the_table() {
        let mine = checked(&json!({})).unwrap();
        let id = NativeId::parse("s1").unwrap();
        assert_eq!(
            mine.read(br#"{"session_id":"s1","step":1}"#),
            [RunLine::Named(id), RunLine::TurnBegan]
        );
        let done = mine.read(br#"{"result":"well"}"#);
        assert!(done.contains(&RunLine::Final(Final::success(Some("well".into())))));
        assert!(
            !mine
                .read(br#"{"result":null}"#)
                .iter()
                .any(|line| matches!(line, RunLine::Final(_)))
        );
        let error = mine.read(br#"{"error":{"message":"no such session: s1"}}"#);
        let unknown = AgentFailure::new(ErrorClass::UnknownConversation, "no such session: s1");
        assert_eq!(error, [RunLine::Problem(unknown)]);
        let text = mine.read(br#"{"text":"no such session"}"#);
        assert_eq!(text, [RunLine::TurnBegan]);
        let told = mine.own_error(1, "note\n\u{1b}[31mError: Context too long\u{1b}[0m\n");
        assert_eq!(
            told,
            AgentFailure::new(ErrorClass::History, "Error: Context too long")
        );
    }

    #[test]
    fn each_error_names_its_key() {
        for (change, expected) in [
            (
                json!({"command": []}),
                "command is empty; give the program and its arguments",
            ),
            (
                json!({"resume": [" "]}),
                "resume is empty; give the program and its arguments",
            ),
            (
                json!({"command": ["mine", "{id}"]}),
                "command contains {id}, which only resume can use",
            ),
            (json!({"resume": ["mine"]}), "resume needs {id}"),
            (
                json!({"command": ["mine", "{prompt_file}"]}),
                "command contains {prompt_file}, which needs prompt = \"file\"",
            ),
            (json!({"prompt": "file"}), "command needs {prompt_file}"),
            (
                json!({"prompt": "argv"}),
                "prompt is \"argv\"; expected \"stdin\" or \"file\"",
            ),
            (
                json!({"id": null}),
                "resume needs id, a JSON pointer to the conversation's id in the stream",
            ),
            (
                json!({"id": "session_id"}),
                "id is \"session_id\"; expected a JSON pointer such as \"/session_id\" or \"/result\"",
            ),
            (
                json!({"done": ""}),
                "done is \"\"; expected a JSON pointer such as \"/session_id\" or \"/result\"",
            ),
            (
                json!({"done": "/a~2"}),
                "done is \"/a~2\"; expected a JSON pointer such as \"/session_id\" or \"/result\"",
            ),
            (
                json!({"unusable": ".*"}),
                "unusable also matches an empty text; make it more specific",
            ),
        ] {
            assert_eq!(checked(&change).unwrap_err().to_string(), expected);
        }
        let wrong = checked(&json!({"unknown": "("})).unwrap_err().to_string();
        assert!(
            wrong.ends_with("not a valid regular expression (unclosed group)"),
            "{wrong}"
        );
        let huge = checked(&json!({"unknown": "(?:a{1000}){1000}"})).unwrap_err();
        assert!(matches!(huge, WrongTable::Pattern { .. }), "{huge}");
    }

    #[test]
    fn a_name_is_its_own() {
        let table = || -> ConfiguredTable {
            serde_json::from_value(json!({"command": ["x"], "done": "/d"})).unwrap()
        };
        let known = Configured::check("claude", table(), |name| name == "claude");
        assert_eq!(
            known.unwrap_err().to_string(),
            "tenure knows this agent; choose another name"
        );
        let name = Configured::check("My Agent", table(), |_| false).unwrap_err();
        assert!(matches!(name, WrongTable::Name(_)), "{name}");
        assert!(
            !Configured::check("x", table(), |_| false)
                .unwrap()
                .resumes()
        );
        let unknown_key = json!({"command": ["x"], "done": "/d", "comand": 1});
        assert!(serde_json::from_value::<ConfiguredTable>(unknown_key).is_err());
    }
}
