//! Payloads from files, changed in a few fields.

use serde_json::{Value, json};
use tenure_core::forge::ForgeEvent;
use tenure_forges::{Forge, Headers, forge};

/// Fields by their JSON pointers, and their new values.
pub type Changes = Vec<(&'static str, Value)>;

pub fn row(kind: &str) -> &'static Forge {
    forge(kind).unwrap()
}

#[allow(clippy::disallowed_methods)] // our own files
#[track_caller]
pub fn fixture(name: &str) -> Value {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let text = std::fs::read_to_string(format!("{dir}/{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The payload with some of its fields set; a field is named by its JSON pointer.
#[track_caller]
pub fn with(name: &str, changes: &[(&str, Value)]) -> Value {
    let mut payload = fixture(name);
    for (path, value) in changes {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = payload.pointer_mut(parent).unwrap();
        parent[key] = value.clone();
    }
    payload
}

pub fn headers(pairs: &[(&str, &str)]) -> Headers {
    pairs.iter().copied().collect()
}

/// What a row of a table says about an event, on one line.
pub fn told(event: Option<&ForgeEvent>) -> String {
    let Some(event) = event else {
        return "nothing".to_owned();
    };
    let item = event.item.as_ref().map_or("-", |item| item.as_str());
    let mut line = format!("{} {item} by {}", event.kind.as_str(), event.actor.name());
    if event.is_edit {
        line.push_str(" edit");
    }
    if !event.added.is_empty() {
        line.push_str(&format!(" +{}", event.added.join(",")));
    }
    if !event.removed.is_empty() {
        line.push_str(&format!(" -{}", event.removed.join(",")));
    }
    line
}

pub fn no_changes() -> Changes {
    Vec::new()
}

/// One change.
pub fn action(name: &str) -> Changes {
    vec![("/action", json!(name))]
}
