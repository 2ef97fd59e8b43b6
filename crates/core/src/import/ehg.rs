//! EHG: the table `claude_sessions`, from its database or as CSV.
//!
//! Its sessions become history. A claim that is open there is not granted: who holds it may be long dead. The entry has
//! the command that takes it.

use serde_json::{Map, Value};

use super::json::{Node, fields, first, needed, object, read, text};
use super::{ImportEntry, NotTaken, PastSession, Record, time};
use crate::id::{AgentName, NativeId};
use crate::key::Key;
use crate::text::shell;

/// What to read of its database: every row as a JSON object. Without a schema the server finds the table.
pub fn query(schema: Option<&str>) -> String {
    let schema = schema.map_or(String::new(), |schema| format!("{schema}."));
    format!("SELECT row_to_json(s)::text FROM {schema}claude_sessions s ORDER BY s.created_at")
}

/// The columns without which a table is not `claude_sessions`.
pub const COLUMNS: &[&str] = &["session_id", "status", "created_at", "heartbeat_at"];

/// The entries of a row that is a JSON object.
pub fn json_row(text: &str, source: &str) -> Vec<ImportEntry> {
    match object(text) {
        Ok(fields) => row(&fields, source),
        Err(why) => vec![ImportEntry {
            name: "a row".to_owned(),
            source: source.to_owned(),
            content: Err(why),
        }],
    }
}

/// The entries of a row: the session, and the claim that it has open.
pub fn row(fields: &Map<String, Value>, source: &str) -> Vec<ImportEntry> {
    let name = text(fields, "session_id").ok().flatten();
    let entry = |name: &str, content| ImportEntry {
        name: name.to_owned(),
        source: source.to_owned(),
        content,
    };
    let name = name.unwrap_or("a row without session_id");
    let mut entries = vec![entry(name, session(fields))];
    let is_open = matches!(
        text(fields, "status"),
        Ok(Some("active" | "idle" | "stale"))
    );
    if let (true, Ok(Some(item))) = (is_open, first(fields, &["sd_key", "sd_id"])) {
        let content = match Key::parse(&format!("sd:{item}")) {
            Ok(key) => NotTaken::left(format!(
                "the claim of {name} is open there; take it with: tenure claim {}",
                shell(key.as_str())
            )),
            Err(wrong) => Err(wrong.into()),
        };
        entries.push(entry(item, content));
    }
    entries
}

fn session(fields: &Map<String, Value>) -> Result<Record, NotTaken> {
    let native_id = NativeId::parse(needed(fields, "session_id")?)?;
    let started_at = time("created_at", needed(fields, "created_at")?)?;
    let ended_at = match first(fields, &["released_at", "heartbeat_at"])? {
        Some(at) => time("its end", at)?,
        None => started_at,
    };
    let status = text(fields, "status")?.unwrap_or("active");
    let why = match first(fields, &["released_reason", "stale_reason"])? {
        Some(why) => format!("EHG: {status}, {why}"),
        None => format!("EHG: {status}"),
    };
    let metadata = [
        ("ehg_host", text(fields, "hostname")?),
        ("ehg_track", text(fields, "track")?),
        ("ehg_sd", first(fields, &["sd_key", "sd_id"])?),
    ];
    Ok(Record::Session(Box::new(PastSession {
        agent: AgentName::known("claude"),
        native_id,
        parent: parent(fields)?,
        dir: first(fields, &["worktree_path", "codebase"])?
            .unwrap_or("unknown")
            .to_owned(),
        branch: text(fields, "current_branch")?.map(str::to_owned),
        started_at,
        ended_at: ended_at.max(started_at),
        why,
        metadata: metadata
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?.to_owned())))
            .collect(),
    })))
}

/// The session that started it: a column, or a value in its metadata, which a CSV has as text.
fn parent(row: &Map<String, Value>) -> Result<Option<NativeId>, NotTaken> {
    let of_column = text(row, "parent_session_id")?.map(str::to_owned);
    let inside = match row.get("metadata") {
        Some(Value::Object(metadata)) => Some(metadata.clone()),
        Some(Value::String(written)) if !written.trim().is_empty() => written_metadata(written)?,
        _ => None,
    };
    let of_metadata = inside.and_then(|metadata| {
        let parent = metadata.get("parent_session_id")?;
        parent.as_str().map(str::to_owned)
    });
    let named = of_column.or(of_metadata).filter(|id| !id.is_empty());
    Ok(named.as_deref().map(NativeId::parse).transpose()?)
}

fn written_metadata(written: &str) -> Result<Option<Map<String, Value>>, NotTaken> {
    let wrong = |why| NotTaken::Refused(format!("its metadata: {why}"));
    match read(written).map_err(wrong)? {
        Node::Object(members) => fields(members).map(Some).map_err(|why| match why {
            NotTaken::Refused(why) => wrong(why),
            left @ NotTaken::Left(_) => left,
        }),
        _ => Ok(None),
    }
}
