//! An agent's event in our terms, and our answer in its terms.

use serde_json::{Value, json};
use tenure_core::agent_event::{Happening, QuestionText, Subagent};
use tenure_core::id::{AgentName, NativeId};
use tenure_core::key::Key;
use tenure_core::notice::NoticeId;
use tenure_core::session::Doing;
use tenure_core::time::Timestamp;

use crate::payload::Payload;

/// An event as reported by an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The agent's own name for it.
    pub name: String,
    /// The program's name, if the event has it.
    pub agent: Option<AgentName>,
    /// The program's process, if the event has it.
    pub pid: Option<u32>,
    /// Its meaning for the session.
    pub what: Happening,
    pub native_id: Option<NativeId>,
    /// The item whose conversation it is, if the agent addresses conversations by keys of its own.
    pub item: Option<Key>,
    /// The subagent in which it happened.
    pub subagent: Option<Subagent>,
    /// What the session does now, if the event shows it.
    pub doing: Option<Doing>,
    /// What it waits for a person to answer, if it does.
    pub asks: Option<QuestionText>,
    /// The kind of what it waits for, without commands, files and questions.
    pub asks_kind: Option<String>,
    /// Why it failed, is limited or retries.
    pub why: Option<String>,
    /// The kind of that, without the provider's own words.
    pub why_kind: Option<String>,
    /// Until when it is limited, or when it tries again.
    pub until: Option<Timestamp>,
    /// Whether it only shows that the model is asked.
    pub asks_model: bool,
    /// Whether it shows that a person is present.
    pub attended: bool,
    /// The messages that started its turn.
    pub woken_by: Vec<NoticeId>,
    pub dir: Option<String>,
    /// The agent's file for the conversation, if this event names it reliably.
    pub transcript: Option<String>,
    /// The tool that is about to run, or ran.
    pub tool: Option<Tool>,
    /// The beginning of what a person asked it to do.
    pub prompt: Option<String>,
    /// What the agent calls its work.
    pub title: Option<String>,
    /// Whether the model reads the answer to this event.
    pub reaches_model: bool,
    /// Whether the person reads the answer to this event, and to no other of this agent.
    pub recaps: bool,
    /// What was wrong with the payload.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tool {
    pub name: String,
    /// Whether it has not run yet.
    pub before: bool,
    /// The files that it writes, if it writes files.
    pub writes: Vec<String>,
    /// The command that it runs, if it is a shell.
    pub command: Option<String>,
    /// Where it runs the command, if not in the event's directory; may be relative to that.
    pub dir: Option<String>,
}

/// The agent's names for the tools that matter here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tools {
    /// Those that write a file, and the field that names it.
    pub(crate) writers: &'static [(&'static str, &'static str)],
    /// The one that runs a command.
    pub(crate) shell: &'static str,
    /// The field that names where it runs the command.
    pub(crate) shell_dir: Option<&'static str>,
}

impl Tool {
    pub(crate) fn read(payload: &mut Payload, before: bool, tools: &Tools) -> Option<Self> {
        let name = payload.words("tool_name")?;
        let writer = tools.writers.iter().find(|(writer, _)| *writer == name);
        let written = writer.and_then(|(_, field)| payload.text(field));
        let runs = name == tools.shell;
        Some(Self {
            before,
            writes: written.into_iter().collect(),
            command: runs.then(|| payload.text("tool_input.command")).flatten(),
            dir: tools.shell_dir.and_then(|field| payload.path(field)),
            name,
        })
    }
}

/// The answer to an event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventAnswer {
    /// For the model.
    pub context: Option<String>,
    /// For the person.
    pub message: Option<String>,
    /// Why the tool must not run.
    pub block: Option<String>,
    /// The value for TENURE_SESSION in the agent's tools.
    pub token: Option<String>,
    /// The item that owns the conversation, if the event named another with it.
    pub foreign_to: Option<String>,
    /// Whether a process of tenure is to wait beside the session for messages.
    pub waits: bool,
}

/// Our own small answer, for programs that understand it.
pub(crate) fn own_answer(answer: &EventAnswer) -> Option<Value> {
    let mut said = serde_json::Map::new();
    let mut put = |name: &str, text: &Option<String>| {
        if let Some(text) = text {
            said.insert(name.to_owned(), json!(text));
        }
    };
    put("context", &answer.context);
    put("message", &answer.message);
    put("block", &answer.block);
    if let Some(token) = &answer.token {
        said.insert("env".into(), json!({"TENURE_SESSION": token}));
    }
    if answer.waits {
        said.insert("wait".into(), json!(true));
    }
    (!said.is_empty()).then_some(Value::Object(said))
}

impl Report {
    /// An event with only its common fields.
    pub(crate) fn begin(payload: &mut Payload) -> Self {
        let name = payload.words("hook_event_name").unwrap_or_default();
        let native_id = payload.text("session_id").and_then(|text| {
            NativeId::parse(&text)
                .map_err(|wrong| payload.problem(wrong.to_string()))
                .ok()
        });
        let dir = payload.path("cwd").and_then(|dir| {
            if dir.starts_with('/') {
                return Some(dir);
            }
            payload.problem("cwd is not an absolute path".to_owned());
            None
        });
        Self {
            name,
            agent: None,
            pid: None,
            what: Happening::Other,
            native_id,
            item: None,
            subagent: None,
            doing: None,
            asks: None,
            asks_kind: None,
            why: None,
            why_kind: None,
            until: None,
            asks_model: false,
            attended: false,
            woken_by: Vec::new(),
            dir,
            transcript: None,
            tool: None,
            prompt: None,
            title: None,
            reaches_model: false,
            recaps: false,
            problems: Vec::new(),
        }
    }

    /// Finishes parsing; the problems are kept.
    pub(crate) fn finish(mut self, payload: Payload) -> Self {
        self.problems = payload.problems();
        self
    }
}
