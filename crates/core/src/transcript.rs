//! Transcripts: in which file an agent keeps a conversation, and how the two belong together.
//!
//! A transcript path belongs to one session. A stored path is checked whenever it is written and whenever it is
//! used, whatever its origin: the file's name must be the agent's name for this conversation, the path must not
//! belong to another session, and a subagent's file or id is never a session's. A wrong path is quarantined
//! (kept, but no longer used) and logged with both sessions, and the path is derived again from the
//! conversation's id.

use serde_json::Value;

pub use crate::agent::TranscriptLayout;
use crate::agent::spec_of;
use crate::id::{AgentName, NativeId, SessionId};
use crate::json_fault::fault_at;
use crate::repository::without_machine;
use crate::time::Timestamp;

/// A transcript that the store vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// With its machine in front if several use the store: the same path on two of them is two files.
    pub path: String,
    pub session: SessionId,
    pub native_id: NativeId,
    pub at: Timestamp,
}

impl Transcript {
    /// The path on its machine.
    pub fn file(&self) -> &str {
        without_machine(&self.path)
    }
}

/// What is wrong with a path as a session's transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contamination {
    /// The file's name belongs to another conversation.
    ForeignName {
        /// The name that it should have, if a rule gives one.
        expected: String,
    },
    /// The path belongs to another session.
    ForeignOwner(SessionId),
    /// It belongs to a subagent.
    Subagent,
    /// It is not an absolute path to a file.
    NotAPath,
}

/// Where an agent keeps its transcripts, if it keeps them in files.
pub fn layout_of(agent: &AgentName) -> Option<TranscriptLayout> {
    spec_of(agent)?.transcripts
}

/// The file name for a conversation; TIME stays.
fn filled(name: &str, native_id: &NativeId) -> String {
    match name.strip_suffix("ID8") {
        Some(before) => before
            .chars()
            .chain(native_id.as_str().chars().take(8))
            .collect(),
        None => name.replace("ID", native_id.as_str()),
    }
}

/// A pattern for the name of a conversation's file, without its ending, as `find -name` takes it; none if the agent
/// keeps no files, or if the id means something else in a pattern.
pub fn name_pattern(agent: &AgentName, native_id: &NativeId) -> Option<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let is_plain = native_id.as_str().bytes().all(plain);
    let name = layout_of(agent).filter(|_| is_plain)?.name;
    Some(filled(name, native_id).replace("TIME", "*"))
}

/// Whether a file's name is the agent's name for this conversation.
pub fn is_name_of(agent: &AgentName, native_id: &NativeId, file: &str) -> bool {
    let Some(stem) = file
        .strip_suffix(".jsonl")
        .or_else(|| file.strip_suffix(".json"))
    else {
        return false;
    };
    let id = native_id.as_str();
    match layout_of(agent).map(|layout| (layout.name, layout.name.split_once("TIME"))) {
        Some((_, Some((before, after)))) => {
            stem.starts_with(before) && stem.ends_with(&filled(after, native_id))
        }
        Some((name, None)) => stem == filled(name, native_id),
        None => stem == id || stem.ends_with(&format!("-{id}")),
    }
}

/// The expected name for the file of a conversation, if a rule gives one.
fn expected_name(agent: &AgentName, native_id: &NativeId) -> String {
    match layout_of(agent) {
        Some(layout) => format!("{}.jsonl", filled(layout.name, native_id)),
        None => format!("{native_id}.jsonl or NAME-{native_id}.jsonl"),
    }
}

/// Whether an id belongs to a subagent.
pub fn is_subagent_id(agent: &AgentName, native_id: &NativeId) -> bool {
    is_subagents(agent, native_id.as_str())
}

fn is_subagents(agent: &AgentName, name: &str) -> bool {
    let mark = spec_of(agent).and_then(|spec| spec.subagents);
    mark.is_some_and(|mark| mark.is_in(name))
}

/// Checks a path by its form and name only.
pub fn check_path(
    agent: &AgentName,
    native_id: &NativeId,
    path: &str,
) -> Result<(), Contamination> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let odd = |part: &&str| matches!(*part, "" | "." | "..") || part.contains(char::is_control);
    let Some(file) = parts
        .last()
        .filter(|_| path.starts_with('/') && !parts.iter().any(odd))
    else {
        return Err(Contamination::NotAPath);
    };
    if parts.contains(&"subagents") || is_subagents(agent, file) {
        return Err(Contamination::Subagent);
    }
    if !is_name_of(agent, native_id, file) {
        let expected = expected_name(agent, native_id);
        return Err(Contamination::ForeignName { expected });
    }
    Ok(())
}

/// Where the file of a new conversation will be, in the folder of this agent's transcripts.
pub fn new_file_path(
    agent: &AgentName,
    native_id: &NativeId,
    folder: &str,
    dir: &str,
) -> Option<String> {
    let place = layout_of(agent)?.new_file?;
    let dashed: String = dir
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let (before, name) = place.rsplit_once('/')?;
    let name = filled(name, native_id);
    let before = before.replace("DIR", &dashed);
    Some(format!("{folder}/{before}/{name}.jsonl"))
}

/// What is wrong with a line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct LineProblem {
    /// The line's number, from one.
    pub line: u64,
    /// `torn`, `malformed` or `foreign`.
    pub kind: &'static str,
    /// What was found.
    pub what: String,
}

/// Checks one whole line.
pub fn check_line(native_id: &NativeId, number: u64, line: &[u8]) -> Option<LineProblem> {
    let problem = |kind, what: String| {
        Some(LineProblem {
            line: number,
            kind,
            what,
        })
    };
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => return problem("malformed", fault_at(&error)),
    };
    if !value.is_object() {
        return problem("malformed", "it is not a JSON object".into());
    }
    let foreign = conversations_in(&value).find(|id| *id != native_id.as_str())?;
    problem("foreign", format!("it belongs to conversation {foreign}"))
}

/// How many problems of one transcript are listed.
pub const MAX_PROBLEMS: usize = 1000;

/// The result of checking every line of a transcript.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Survey {
    pub lines: u64,
    pub problems: Vec<LineProblem>,
    /// How many more problems there are than are listed.
    pub more: usize,
}

impl Survey {
    /// Checks the next line; only the last one may lack its newline.
    pub fn take(&mut self, native_id: &NativeId, line: &[u8]) {
        self.lines += 1;
        let problem = match line.strip_suffix(b"\n") {
            Some(whole) => check_line(native_id, self.lines, whole),
            None => Some(LineProblem {
                line: self.lines,
                kind: "torn",
                what: format!("the last {} bytes are not a complete line", line.len()),
            }),
        };
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.extend(problem);
        } else {
            self.more += usize::from(problem.is_some());
        }
    }
}

/// Checks complete lines before they are appended; lists at most `most` problems.
pub fn check_lines(native_id: &NativeId, lines: &[u8], most: usize) -> Vec<LineProblem> {
    let check = |(index, line): (usize, &[u8])| {
        let whole = line.strip_suffix(b"\n").unwrap_or(line);
        check_line(native_id, index as u64 + 1, whole)
    };
    let all = lines.split_inclusive(|byte| *byte == b'\n').enumerate();
    all.filter_map(check).take(most).collect()
}

/// The conversations that a line names; most lines name one or none.
fn conversations_in(line: &Value) -> impl Iterator<Item = &str> {
    let direct = ["sessionId", "session_id"]
        .into_iter()
        .filter_map(|name| line.get(name)?.as_str());
    let is_meta = line.get("type").and_then(Value::as_str) == Some("session_meta");
    let meta = line
        .get("payload")
        .filter(|_| is_meta)
        .and_then(|payload| payload.get("id")?.as_str());
    direct.chain(meta)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &'static str) -> AgentName {
        AgentName::known(name)
    }

    fn id(text: &str) -> NativeId {
        NativeId::parse(text).unwrap()
    }

    #[test]
    fn each_agent_names_its_files_in_its_own_way() {
        let native = id("b2d6a746-0000-4000-8000-000000000001");
        let full = "b2d6a746-0000-4000-8000-000000000001";
        assert!(is_name_of(
            &agent("claude"),
            &native,
            &format!("{full}.jsonl")
        ));
        assert!(!is_name_of(
            &agent("claude"),
            &native,
            &format!("x-{full}.jsonl")
        ));
        assert!(is_name_of(
            &agent("codex"),
            &native,
            &format!("rollout-2026-11-15T01-02-03-{full}.jsonl")
        ));
        assert!(!is_name_of(
            &agent("codex"),
            &native,
            &format!("{full}.jsonl")
        ));
        assert!(is_name_of(
            &agent("gemini"),
            &native,
            "session-2026-11-15T01-02-b2d6a746.jsonl"
        ));
        assert!(!is_name_of(
            &agent("gemini"),
            &native,
            "session-2026-11-15T01-02-b2d6a747.jsonl"
        ));
        assert!(is_name_of(
            &agent("mine"),
            &native,
            &format!("log-{full}.jsonl")
        ));
        assert!(!is_name_of(&agent("mine"), &native, &format!("{full}.txt")));
    }

    #[test]
    fn a_conversation_without_a_file_has_a_place_where_a_rule_tells() {
        let place = |name| new_file_path(&agent(name), &id("abc"), "/h/p", "/w/a.b");
        assert_eq!(place("claude").as_deref(), Some("/h/p/-w-a-b/abc.jsonl"));
        let qwen = "/h/p/-w-a-b/chats/abc.jsonl";
        assert_eq!(place("qwen").as_deref(), Some(qwen));
        assert_eq!(check_path(&agent("qwen"), &id("abc"), qwen), Ok(()));
        assert_eq!(place("codex"), None);
        assert_eq!(place("mine"), None);
    }

    #[test]
    fn f_t02_a_subagents_file_and_id_are_never_a_main_ones() {
        let native = id("abc");
        let check = |path: &str| check_path(&agent("claude"), &native, path);
        assert_eq!(check("/h/p/abc.jsonl"), Ok(()));
        assert_eq!(
            check("/h/p/abc/subagents/agent-1.jsonl"),
            Err(Contamination::Subagent)
        );
        assert_eq!(check("/h/p/agent-abc.jsonl"), Err(Contamination::Subagent));
        assert!(is_subagent_id(&agent("claude"), &id("agent-a2a8")));
        assert!(is_subagent_id(
            &agent("openclaw"),
            &id("agent:main:subagent:1")
        ));
        assert!(!is_subagent_id(&agent("claude"), &native));
    }

    #[test]
    fn f_t01_a_path_with_another_conversations_name_is_refused() {
        let check = |path: &str| check_path(&agent("claude"), &id("abc"), path);
        assert!(matches!(
            check("/h/p/other.jsonl"),
            Err(Contamination::ForeignName { .. })
        ));
        for bad in [
            "abc.jsonl",
            "",
            "/h/../abc.jsonl",
            "/h//abc.jsonl",
            "/h/\n/abc.jsonl",
            "/",
        ] {
            assert_eq!(check(bad), Err(Contamination::NotAPath), "{bad:?}");
        }
    }

    #[test]
    fn lines_are_checked_against_their_conversation() {
        let native = id("abc");
        let problem =
            |line: &str| check_line(&native, 7, line.as_bytes()).map(|problem| problem.kind);
        assert_eq!(problem(r#"{"sessionId":"abc","type":"user"}"#), None);
        assert_eq!(problem(r#"{"type":"summary"}"#), None);
        assert_eq!(problem(r#"{"sessionId":"xyz"}"#), Some("foreign"));
        assert_eq!(
            problem(r#"{"type":"session_meta","payload":{"id":"xyz"}}"#),
            Some("foreign")
        );
        assert_eq!(
            problem(r#"{"session_id":"abc","sessionId":"xyz"}"#),
            Some("foreign")
        );
        for malformed in [r#"{"sessionId":"#, "", "[]", "1", "null", "\"{}\"", "{} {}"] {
            assert_eq!(problem(malformed), Some("malformed"), "{malformed:?}");
        }
        assert_eq!(
            check_line(&native, 1, b"{\"text\":\"\xff\"}").map(|problem| problem.kind),
            Some("malformed")
        );
    }

    #[test]
    fn a_survey_counts_every_line_and_lists_as_many_problems_as_fit() {
        let mut survey = Survey::default();
        survey.take(&id("abc"), b"{}\n");
        for _ in 0..MAX_PROBLEMS {
            survey.take(&id("abc"), b"not json\n");
        }
        survey.take(&id("abc"), b"{}\n");
        survey.take(&id("abc"), b"{\"torn");
        assert_eq!(
            (survey.lines, survey.problems.len(), survey.more),
            (MAX_PROBLEMS as u64 + 3, MAX_PROBLEMS, 1)
        );
        assert_eq!(survey.problems[0].line, 2);
        let mut torn = Survey::default();
        torn.take(&id("abc"), b"{}");
        assert_eq!(torn.problems[0].kind, "torn");
    }

    #[test]
    fn each_line_is_checked_before_any_is_appended() {
        let found = |lines: &str| -> Vec<(u64, &str)> {
            check_lines(&id("abc"), lines.as_bytes(), 2)
                .iter()
                .map(|problem| (problem.line, problem.kind))
                .collect()
        };
        assert_eq!(found("{}\n{\"sessionId\":\"abc\"}\n"), []);
        assert_eq!(
            found("{}\n\n{\"sessionId\":\"xyz\"}\n{\n"),
            [(2, "malformed"), (3, "foreign")]
        );
    }
}
