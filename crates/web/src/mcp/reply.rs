//! An answer as the protocol carries it: the JSON body of every surface, and one line of text.
//!
//! The body is sent twice, as data and as text, because some clients show their model only the text. A hint that only a
//! person may follow is in neither.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ReadResourceResult, ResourceContents};
use serde_json::{Map, Value, json};
use tenure_core::notice::{Notice, Pending};
use tenure_core::store::StoreError;
use tenure_core::text;
use tenure_service::Answer;
use tenure_service::answer::{For, Hint, Problem, body};

use super::call;

pub type ToolResult = Result<ToolAnswer, Problem>;

/// What a tool answers.
#[derive(Debug, Default)]
pub struct ToolAnswer {
    parts: Map<String, Value>,
    line: String,
    notices: Pending,
    damaged: Option<StoreError>,
}

impl ToolAnswer {
    /// An answer in one line, with its first named part.
    pub fn new(line: impl Into<String>, name: &str, part: &impl serde::Serialize) -> Self {
        let said = Self {
            line: line.into(),
            ..Self::default()
        };
        said.with(name, part)
    }

    #[must_use]
    pub fn with(mut self, name: &str, part: &impl serde::Serialize) -> Self {
        let value = serde_json::to_value(part).unwrap_or(Value::Null);
        self.parts.insert(name.to_owned(), value);
        self
    }

    /// Adds the notices and damage of a use case's answer.
    #[must_use]
    pub fn told<T>(mut self, answer: &Answer<T>) -> Self {
        self.notices = answer.notices.clone();
        self.damaged = answer.damaged.clone();
        self
    }
}

/// An answer or a failure, ready to be sent.
#[derive(Debug)]
pub struct ToolReply {
    body: Value,
    line: String,
    is_error: bool,
    notices: Pending,
}

impl ToolReply {
    pub fn of(outcome: ToolResult) -> Self {
        match outcome {
            Ok(said) => Self::of_answer(said),
            Err(problem) => Self::of_failure(&call::explain(problem)),
        }
    }

    fn of_answer(said: ToolAnswer) -> Self {
        let mut parts = said.parts;
        let damaged = said.damaged.map(Problem::from);
        let mut line = said.line;
        if let Some(problem) = &damaged {
            parts.insert("error".into(), Value::Object(problem.error()));
            line = format!("{line}; error: {}", problem.message);
        }
        Self::new(parts, &line, said.notices, damaged.is_some())
    }

    fn of_failure(problem: &Problem) -> Self {
        let mut parts = Map::new();
        parts.insert("error".into(), Value::Object(problem.error()));
        let mut line = format!("error: {}", problem.message);
        for hint in problem.hints.iter().filter(|hint| is_for_anyone(hint)) {
            line.push_str("; ");
            line.push_str(&shown(hint));
        }
        Self::new(parts, &line, problem.notices.clone(), true)
    }

    fn new(parts: Map<String, Value>, line: &str, notices: Pending, is_error: bool) -> Self {
        let mut body = body(parts, &notices);
        drop_persons_hints(&mut body);
        Self {
            body,
            line: text::line(line).into_owned(),
            is_error,
            notices,
        }
    }

    /// What it tells the caller.
    pub fn notices(&self) -> Vec<Notice> {
        self.notices.first.clone()
    }

    fn body_text(&self) -> String {
        text::json(&self.body.to_string()).into_owned()
    }

    pub fn into_result(self) -> CallToolResult {
        let content = vec![
            ContentBlock::text(self.line.clone()),
            ContentBlock::text(self.body_text()),
        ];
        let mut result = if self.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = Some(self.body);
        result
    }
}

/// The same without what it tells the caller.
pub fn without_notices(outcome: ToolResult) -> ToolResult {
    match outcome {
        Ok(said) => Ok(ToolAnswer {
            notices: Pending::default(),
            ..said
        }),
        Err(problem) => Err(Problem {
            notices: Pending::default(),
            ..problem
        }),
    }
}

/// The body as a resource; a failure is one of the protocol, with our error object as its data.
pub fn resource(uri: &str, reply: ToolReply) -> Result<ReadResourceResult, ErrorData> {
    if reply.is_error {
        return Err(ErrorData::internal_error(reply.line, Some(reply.body)));
    }
    let text = reply.body_text();
    let contents = ResourceContents::text(text, uri).with_mime_type("application/json");
    Ok(ReadResourceResult::new(vec![contents]))
}

fn is_for_anyone(hint: &Hint) -> bool {
    hint.audience == For::Anyone
}

/// Removes every hint that is for a person only.
fn drop_persons_hints(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_persons_hints),
        Value::Object(object) => {
            if let Some(Value::Array(hints)) = object.get_mut("hints") {
                hints.retain(|hint| hint.get("for") != Some(&json!("person")));
            }
            object.values_mut().for_each(drop_persons_hints);
        }
        _ => {}
    }
}

/// A hint as a model can follow it: a call of a tool if there is one for it, else a command.
fn shown(hint: &Hint) -> String {
    let Some(verb) = hint.verb else {
        return hint.why.clone();
    };
    if let Some((tool, arguments)) = tool_call(verb, &hint.args) {
        return format!("call `{tool}` with {arguments} {}", hint.why);
    }
    let mut command = format!("tenure {verb}");
    for word in &hint.args {
        command.push(' ');
        command.push_str(&text::shell(word));
    }
    format!("run `{command}` {}", hint.why)
}

/// The tool and arguments for a command; none if no tool does the same.
fn tool_call(verb: &str, args: &[String]) -> Option<(&'static str, Value)> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    Some(match (verb, words.as_slice()) {
        ("status", []) => ("status", json!({})),
        ("ps", []) => ("sessions", json!({})),
        ("ps", ["--all"]) => ("sessions", json!({"all": true})),
        ("why", [key]) => ("why", json!({"key": key})),
        ("release", [key]) => ("release", json!({"key": key})),
        ("claim", [key]) => ("claim", json!({"keys": [key]})),
        ("claim", [key, "--wait", _]) => ("claim", json!({"keys": [key], "wait_seconds": 30})),
        ("tell", [to, message]) => ("tell", json!({"to": to, "message": message})),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_a_tool_if_one_does_the_same() {
        let wait = Hint::run("claim", ["wp:1", "--wait", "10m"], "to wait for it");
        let line = r#"call `claim` with {"keys":["wp:1"],"wait_seconds":30} to wait for it"#;
        assert_eq!(shown(&wait), line);
        let log = Hint::run("log", ["wp:1"], "to see who held it");
        assert_eq!(shown(&log), "run `tenure log wp:1` to see who held it");
        assert_eq!(shown(&Hint::step("stop it")), "stop it");
    }

    #[test]
    fn hints_for_a_person_are_dropped_wherever_they_are() {
        let take = Hint::run("takeover", ["wp:1", "--reason", "REASON"], "to take it");
        let why = Hint::run("why", ["wp:1"], "for details");
        let mut body = json!({"why": {"hints": [take, why]}, "error": {"hints": [take]}});
        drop_persons_hints(&mut body);
        assert_eq!(body["why"]["hints"].as_array().map(Vec::len), Some(1));
        assert_eq!(body["error"]["hints"], json!([]));
        let problem = Problem {
            hints: vec![take],
            ..Problem::from(StoreError::Conflict)
        };
        assert!(!ToolReply::of_failure(&problem).line.contains("takeover"));
    }
}
