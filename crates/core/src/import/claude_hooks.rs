//! claude-hooks: a `sessions.json` beside a webhook server, by agent, repository and item.
//!
//! Its agents are names of workers (`boss`, `reviewer`) that all run Claude Code: one that is no agent here is a role of
//! Claude. Three layouts are read: objects in objects (agent, repository, number), one text as the key
//! (`boss:acme/web#6`, `boss/acme/web/6`), and records that name agent, repo, issue and session_id.

use serde_json::{Map, Value};

use super::json::{Node, checked, fields, first, read, text};
use super::{ImportEntry, NotTaken, PastConversation, Record, dir};
use crate::agent;
use crate::id::{AgentName, NativeId, WorkerRole};
use crate::key::Key;

const IDS: &[&str] = &["session_id", "sessionId", "id"];
const DIRS: &[&str] = &["cwd", "dir", "worktree", "project_dir"];

/// The entries of the file.
pub fn sessions_json(content: &str, source: &str) -> Result<Vec<ImportEntry>, String> {
    let mut found = EntryList {
        source,
        entries: Vec::new(),
    };
    let members = match read(content)? {
        Node::Array(records) => {
            found.list(records);
            return Ok(found.entries);
        }
        Node::Object(members) => members,
        Node::Plain(_) => return Err("it is not a JSON object".to_owned()),
    };
    for (name, node) in checked(members) {
        match node {
            Ok(Node::Object(inner)) if name == "sessions" => {
                for (name, node) in checked(inner) {
                    found.record(&name, node, &[&name]);
                }
            }
            Ok(Node::Array(records)) if name == "sessions" => found.list(records),
            node => found.record(&name, node, &[&name]),
        }
    }
    Ok(found.entries)
}

struct EntryList<'a> {
    source: &'a str,
    entries: Vec<ImportEntry>,
}

impl EntryList<'_> {
    /// Adds records that name agent, repository and number themselves.
    fn list(&mut self, records: Vec<Node>) {
        for (at, record) in records.into_iter().enumerate() {
            self.record(&format!("entry {}", at + 1), Ok(record), &[]);
        }
    }

    /// Adds an entry, or the entries in an object of objects. `path` has the names above it.
    fn record(&mut self, name: &str, node: Result<Node, NotTaken>, path: &[&str]) {
        let content = match node {
            Err(why) => Err(why),
            Ok(Node::Object(members)) if !has_id(&members) && path.len() < 3 => {
                if members.is_empty() {
                    self.add(name, NotTaken::left("it is empty"));
                }
                for (below, node) in checked(members) {
                    let path: Vec<&str> = path.iter().copied().chain([below.as_str()]).collect();
                    self.record(&format!("{name} {below}"), node, &path);
                }
                return;
            }
            Ok(Node::Object(members)) => {
                fields(members).and_then(|fields| conversation(&fields, path))
            }
            Ok(Node::Plain(Value::String(id))) => conversation(
                &Map::from_iter([("session_id".to_owned(), id.into())]),
                path,
            ),
            Ok(Node::Plain(Value::Null)) => NotTaken::left("it has no session id"),
            Ok(_) => NotTaken::refused("it is neither a session id nor an object"),
        };
        self.add(name, content);
    }

    fn add(&mut self, name: &str, content: Result<Record, NotTaken>) {
        self.entries.push(ImportEntry {
            name: name.to_owned(),
            source: self.source.to_owned(),
            content,
        });
    }
}

fn has_id(members: &[(String, Node)]) -> bool {
    members.iter().any(|(name, _)| IDS.contains(&name.as_str()))
}

fn conversation(fields: &Map<String, Value>, path: &[&str]) -> Result<Record, NotTaken> {
    let Some(id) = first(fields, IDS)? else {
        return NotTaken::left("it has no session id");
    };
    let named = EntryName::new(fields, path)?;
    let (agent, role) = worker(&named.agent)?;
    let kind = if named.is_pull_request { "pr" } else { "issue" };
    let item = format!("{kind}:{}#{}", named.repo, named.number);
    Ok(Record::Conversation(Box::new(PastConversation {
        agent,
        role,
        item: Key::parse(&item)?,
        native_id: NativeId::parse(id)?,
        dir: first(fields, DIRS)?.map(dir).transpose()?,
        home: None,
    })))
}

/// An agent that is known here, or a role of Claude.
fn worker(name: &str) -> Result<(AgentName, WorkerRole), NotTaken> {
    let parsed = AgentName::parse(name)?;
    Ok(if agent::spec_of(&parsed).is_some() {
        (parsed, WorkerRole::default())
    } else {
        (AgentName::known("claude"), WorkerRole::parse(name)?)
    })
}

/// Agent, repository and number of an entry.
struct EntryName {
    agent: String,
    repo: String,
    number: u64,
    is_pull_request: bool,
}

impl EntryName {
    fn new(fields: &Map<String, Value>, path: &[&str]) -> Result<Self, NotTaken> {
        let number = |name: &str| match fields.get(name) {
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => text.trim_start_matches('#').parse().ok(),
            _ => None,
        };
        let pull_request = number("pr").or_else(|| number("pull_request"));
        let issue = number("issue")
            .or_else(|| number("issue_number"))
            .or_else(|| number("number"));
        if let (Some(agent), Some(repo), Some(number)) = (
            text(fields, "agent")?,
            first(fields, &["repo", "repository"])?,
            pull_request.or(issue),
        ) {
            return Ok(Self {
                agent: agent.to_owned(),
                repo: repo.to_owned(),
                number,
                is_pull_request: pull_request.is_some(),
            });
        }
        Self::of_path(path)
    }

    /// `[boss, acme/web, 6]`, or one text with all three.
    fn of_path(path: &[&str]) -> Result<Self, NotTaken> {
        let whole = path.join(":");
        let unreadable = || {
            let why = format!("{whole:?} does not name agent, repository and number");
            NotTaken::Refused(why)
        };
        let (agent, rest) = whole.split_once([':', '/', '|']).ok_or_else(unreadable)?;
        let is_pull_request = rest.contains("!") || rest.contains("/pull/") || rest.contains(":pr");
        let before = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        let repo = before
            .trim_end_matches(['#', ':', '/', '!', '|', '-'])
            .trim_end_matches("/pull")
            .trim_end_matches("/issues")
            .trim_end_matches(":pr")
            .trim_end_matches(":issue");
        // Digits that nothing divides from the name are part of it.
        let number = &rest[before.len()..];
        if repo == before {
            return Err(unreadable());
        }
        if repo.matches('/').count() != 1 {
            return Err(unreadable());
        }
        Ok(Self {
            agent: agent.to_owned(),
            repo: repo.to_owned(),
            number: number.parse().map_err(|_| unreadable())?,
            is_pull_request,
        })
    }
}
