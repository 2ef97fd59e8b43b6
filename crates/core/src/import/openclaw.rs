//! OpenClaw: which session id belongs to which session key.
//!
//! Since 2026.8 they are rows of a database for each agent, before that a `sessions.json`. Its known fault is that a
//! key gets the id of another: a spawned session's, or another key's. An id has one owner, the key that had it first;
//! the others are refused with the owner's name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::json::{Node, fields, members, text};
use super::{ImportEntry, NotTaken, PastConversation, Record};
use crate::id::{AgentName, NativeId, WorkerRole};
use crate::key::Key;
use crate::openclaw::SPAWNED;

/// What to read of an agent's database, ordered so that an id's first owner comes first.
pub const QUERY: &str = "\
    SELECT n.session_key, n.current_session_id, w.session_key \
    FROM session_nodes n LEFT JOIN session_windows w ON w.session_id = n.current_session_id \
    ORDER BY coalesce(n.created_at, n.updated_at), n.session_key";

/// One session, wherever it was kept.
struct OpenclawSession {
    key: String,
    id: Result<String, NotTaken>,
    /// The transcript that it names.
    file: Option<String>,
    /// The key that the id's window names.
    window: Option<String>,
}

/// The sessions of a `sessions.json`.
pub fn sessions_json(content: &str, source: &str) -> Result<Vec<ImportEntry>, String> {
    let mut kept: Vec<(i64, OpenclawSession)> = Vec::new();
    for (key, node) in members(content)? {
        let fields = node.and_then(|node| match node {
            Node::Object(members) => fields(members),
            _ => NotTaken::refused("it is not an object"),
        });
        let started = fields.as_ref().map_or(0, started);
        let file = fields.as_ref().ok().and_then(|fields| {
            let file = text(fields, "sessionFile").ok().flatten();
            file.map(str::to_owned)
        });
        let id = fields.and_then(|fields| match text(&fields, "sessionId")? {
            Some(id) => Ok(id.to_owned()),
            None => NotTaken::left("it has no session id"),
        });
        let window = None;
        kept.push((
            started,
            OpenclawSession {
                key,
                id,
                file,
                window,
            },
        ));
    }
    kept.sort_by_key(|(started, _)| *started);
    let kept: Vec<OpenclawSession> = kept.into_iter().map(|(_, kept)| kept).collect();
    Ok(entries(&kept, source))
}

fn started(fields: &Map<String, Value>) -> i64 {
    let of = |name: &str| fields.get(name).and_then(Value::as_i64);
    of("startedAt").or_else(|| of("updatedAt")).unwrap_or(0)
}

/// The sessions that [`QUERY`] found: key, id, and the key that the id's window names. A window that has moved to a key
/// which does not have the id any more is an entry of its own: OpenClaw runs the owner's turns as that key.
pub fn rows(rows: &[Vec<Option<String>>], source: &str) -> Vec<ImportEntry> {
    let kept = rows.iter().map(|row| {
        let cell = |at: usize| {
            row.get(at)
                .cloned()
                .flatten()
                .filter(|cell| !cell.is_empty())
        };
        OpenclawSession {
            key: cell(0).unwrap_or_default(),
            id: cell(1).ok_or_else(|| NotTaken::Left("it has no session id".into())),
            file: None,
            window: cell(2),
        }
    });
    let kept: Vec<OpenclawSession> = kept.collect();
    let holders: BTreeSet<(&str, &str)> = kept
        .iter()
        .filter_map(|one| Some((one.key.as_str(), one.id.as_ref().ok()?.as_str())))
        .collect();
    let mut found = entries(&kept, source);
    let mut moved = Vec::new();
    for (one, entry) in kept.iter().zip(&found) {
        if let (Ok(_), Ok(id), Some(window)) = (&entry.content, &one.id, &one.window)
            && *window != one.key
            && !holders.contains(&(window.as_str(), id.as_str()))
        {
            let why = format!(
                "its window names {window}, but it is the session id of {}",
                one.key
            );
            moved.push(ImportEntry {
                name: id.clone(),
                source: source.to_owned(),
                content: NotTaken::refused(why),
            });
        }
    }
    found.extend(moved);
    found
}

fn entries(kept: &[OpenclawSession], source: &str) -> Vec<ImportEntry> {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for one in kept {
        let content = match &one.id {
            Err(why) => Err(why.clone()),
            Ok(id) => owned(one, id, owners.get(id.as_str()).copied()),
        };
        if let (Ok(_), Ok(id)) = (&content, &one.id) {
            owners.insert(id, &one.key);
        }
        found.push(ImportEntry {
            name: one.key.clone(),
            source: source.to_owned(),
            content,
        });
    }
    found
}

/// The record of a session, if its id is not the one of an earlier owner.
fn owned(kept: &OpenclawSession, id: &str, owner: Option<&str>) -> Result<Record, NotTaken> {
    sound(kept, id)?;
    let Some(owner) = owner.filter(|owner| *owner != kept.key) else {
        return conversation(&kept.key, id);
    };
    let moved = if kept.window.as_ref() == Some(&kept.key) {
        "; its window has moved here"
    } else {
        ""
    };
    NotTaken::refused(format!(
        "{id} is the session id of {owner}, which had it first{moved}"
    ))
}

/// Whether an id can be the one of this key.
fn sound(kept: &OpenclawSession, id: &str) -> Result<(), NotTaken> {
    let is_spawned = SPAWNED.iter().any(|start| id.starts_with(start));
    if is_spawned && !kept.key.contains(":subagent:") {
        return NotTaken::refused(format!(
            "{id} is the id of a spawned session, but this key is not one's"
        ));
    }
    let Some(file) = &kept.file else {
        return Ok(());
    };
    let name = file.rsplit('/').next().unwrap_or(file);
    if name.contains(id) {
        Ok(())
    } else {
        NotTaken::refused(format!(
            "its transcript {name} belongs to another session than its id {id}"
        ))
    }
}

fn conversation(key: &str, id: &str) -> Result<Record, NotTaken> {
    Ok(Record::Conversation(Box::new(PastConversation {
        agent: AgentName::known("openclaw"),
        role: WorkerRole::default(),
        item: Key::parse(&format!("session:{key}"))?,
        native_id: NativeId::parse(id)?,
        dir: None,
        home: None,
    })))
}
