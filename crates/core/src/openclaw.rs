//! What is wrong with the sessions that OpenClaw keeps: ids under a foreign key, and which of them can be given back.
//!
//! OpenClaw lets a second key take over another key's session id. Both keys' nodes then name the id, the id's window names
//! the second key, and every later turn of the first fails. An id is given back only if exactly that is what its rows
//! say, and only to the key that tenure recorded as its owner: anything else is left to a person.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::id::NativeId;
use crate::transcript::{LineProblem, Survey};

/// What to read of an agent's database.
pub const QUERY: &str = "\
    SELECT n.session_key, n.current_session_id, w.session_key, json_extract(t.event_json, '$.id') \
    FROM session_nodes n \
    LEFT JOIN session_windows w ON w.session_id = n.current_session_id \
    LEFT JOIN transcript_events t ON t.session_id = n.current_session_id AND t.seq = 0 \
        AND json_extract(t.event_json, '$.type') = 'session' \
    ORDER BY coalesce(n.created_at, n.updated_at), n.session_key";

/// How the ids of sessions begin that another session spawned.
pub(crate) const SPAWNED: &[&str] = &["delegate-", "routed-", "subagent-", "spawn-"];

/// One key as OpenClaw keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRow {
    pub key: String,
    pub id: String,
    /// The key that the id's window names.
    pub window: Option<String>,
    /// The id in the first record of its transcript.
    pub transcript: Option<String>,
}

impl SessionRow {
    /// A row of [`QUERY`]; none for a key without an id.
    pub fn read(cells: &[Option<String>]) -> Option<Self> {
        let cell = |at: usize| cells.get(at).cloned().flatten();
        let is_some = |text: &String| !text.is_empty();
        Some(Self {
            key: cell(0)?,
            id: cell(1).filter(is_some)?,
            window: cell(2),
            transcript: cell(3),
        })
    }
}

/// Two keys that name one id, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intrusion {
    pub id: String,
    pub owner: String,
    pub intruder: String,
}

/// What is wrong with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Its id belongs to another key.
    ForeignId,
    /// Its id is a spawned session's.
    SpawnedId,
    /// The transcript of its id is another session's.
    ForeignTranscript,
    /// It has the right id, but OpenClaw runs the id's turns as another key's.
    MovedWindow,
    /// A lock that no process holds keeps the gateway from starting.
    OrphanedLock,
    /// It cannot be read.
    Unreadable,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationFault {
    pub kind: FaultKind,
    pub key: String,
    pub id: String,
    pub what: String,
    /// How it can be repaired, if it can.
    pub repair: Option<Intrusion>,
}

/// What is wrong with the rows of one database. `owners` names the key that tenure recorded for an id.
pub fn faults(rows: &[SessionRow], owners: &BTreeMap<String, String>) -> Vec<ConversationFault> {
    let mut faults = Vec::new();
    for row in rows {
        let SessionRow { key, id, .. } = row;
        let same: Vec<&SessionRow> = rows.iter().filter(|other| other.id == *id).collect();
        let recorded = owners.get(id);
        // Without a record, the key that had it first.
        let owner = recorded.unwrap_or(&same[0].key);
        let mut add = |kind: FaultKind, what: String, repair: Option<Intrusion>| {
            faults.push(ConversationFault {
                kind,
                key: key.clone(),
                id: id.clone(),
                what,
                repair,
            });
        };
        if owner != key {
            let repair = recorded.and_then(|owner| intrusion(&same, owner, key));
            add(
                FaultKind::ForeignId,
                format!("its session id {id} belongs to {owner}"),
                repair,
            );
        } else if let Some(window) = row.window.as_ref().filter(|window| *window != key)
            && !same.iter().any(|other| other.key == *window)
        {
            add(
                FaultKind::MovedWindow,
                format!("the window of its session id {id} belongs to {window}"),
                None,
            );
        }
        if SPAWNED.iter().any(|start| id.starts_with(start)) && !key.contains(":subagent:") {
            let what = format!("{id} is the id of a spawned session, but this key is not one's");
            add(FaultKind::SpawnedId, what, None);
        }
        if let Some(other) = row.transcript.as_ref().filter(|other| *other != id) {
            let what = format!("the transcript of {id} begins with the id {other}");
            add(FaultKind::ForeignTranscript, what, None);
        }
    }
    faults
}

/// What to read of a session's transcript: its records in their order, null for one that OpenClaw compressed.
pub fn records_query(id: &NativeId) -> String {
    let id = id.as_str().replace('\'', "''");
    format!("SELECT event_json FROM transcript_events WHERE session_id = '{id}' ORDER BY seq")
}

/// Checks the records of a session's transcript. A compressed one is only counted.
pub fn survey(id: &NativeId, records: &[Option<String>]) -> Survey {
    let mut survey = Survey::default();
    for record in records {
        match record {
            Some(record) => survey.take(id, format!("{record}\n").as_bytes()),
            None => survey.lines += 1,
        }
    }
    let first = records.first().and_then(Option::as_deref);
    let first: Value = serde_json::from_str(first.unwrap_or_default()).unwrap_or_default();
    if first["type"] == "session"
        && let Some(other) = first["id"].as_str().filter(|other| *other != id.as_str())
    {
        let what = format!("it belongs to conversation {other}");
        survey.problems.insert(
            0,
            LineProblem {
                line: 1,
                kind: "foreign",
                what,
            },
        );
    }
    survey
}

/// The intrusion, if the rows of an id are exactly as one leaves them.
fn intrusion(same: &[&SessionRow], owner: &str, intruder: &str) -> Option<Intrusion> {
    let [first, second] = same else {
        return None;
    };
    let is_pair = [&first.key, &second.key].iter().any(|key| *key == owner)
        && [&first.key, &second.key].iter().any(|key| *key == intruder);
    let window = first.window.as_deref();
    let is_moved = window == Some(owner) || window == Some(intruder);
    (is_pair && is_moved).then(|| Intrusion {
        id: first.id.clone(),
        owner: owner.to_owned(),
        intruder: intruder.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, id: &str, window: &str) -> SessionRow {
        SessionRow {
            key: key.into(),
            id: id.into(),
            window: Some(window.into()),
            transcript: None,
        }
    }

    fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |(id, key): &(&str, &str)| ((*id).to_owned(), (*key).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn an_id_goes_back_to_its_recorded_owner() {
        let rows = [row("a", "1", "b"), row("b", "1", "b")];
        let found = faults(&rows, &owned(&[("1", "a")]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].key.as_str(), found[0].kind),
            ("b", FaultKind::ForeignId)
        );
        let repair = found[0].repair.as_ref().unwrap();
        assert_eq!(
            (repair.owner.as_str(), repair.intruder.as_str()),
            ("a", "b")
        );
        // The owner need not be the key that had it first.
        let found = faults(&rows, &owned(&[("1", "b")]));
        assert_eq!(found[0].repair.as_ref().unwrap().owner, "b");
    }

    #[test]
    fn what_no_intrusion_leaves_is_not_repaired() {
        let unknown = faults(&[row("a", "1", "b"), row("b", "1", "b")], &owned(&[]));
        assert_eq!(unknown.len(), 1);
        assert_eq!(unknown[0].repair, None, "tenure recorded no owner");
        let three = [row("a", "1", "b"), row("b", "1", "b"), row("c", "1", "b")];
        let found = faults(&three, &owned(&[("1", "a")]));
        assert!(
            found.iter().all(|fault| fault.repair.is_none()),
            "{found:?}"
        );
        let elsewhere = [row("a", "1", "d"), row("b", "1", "d")];
        let found = faults(&elsewhere, &owned(&[("1", "a")]));
        assert!(
            found.iter().all(|fault| fault.repair.is_none()),
            "{found:?}"
        );
        let alone = faults(&[row("b", "1", "b")], &owned(&[("1", "a")]));
        assert_eq!(alone[0].repair, None, "its owner names another id");
    }

    #[test]
    fn records_of_another_conversation_are_named() {
        let id = NativeId::parse("1").unwrap();
        let record = |text: &str| Some(text.to_owned());
        let own = record(r#"{"type":"session","id":"1"}"#);
        let sound = survey(&id, &[own.clone(), None, record("{}")]);
        assert_eq!((sound.lines, sound.problems), (3, vec![]));
        let foreign = survey(&id, &[record(r#"{"type":"session","id":"2"}"#)]);
        assert_eq!(foreign.problems[0].kind, "foreign");
        let torn = survey(&id, &[own, record("{\"a\":")]);
        assert_eq!(
            (torn.problems[0].line, torn.problems[0].kind),
            (2, "malformed")
        );
    }

    #[test]
    fn ids_that_cannot_be_a_keys_are_named() {
        let sound = [
            row("a", "1", "a"),
            row("x:subagent:1", "subagent-1", "x:subagent:1"),
        ];
        assert_eq!(faults(&sound, &owned(&[("1", "a")])), []);
        let spawned = faults(&[row("a", "delegate-1", "a")], &owned(&[]));
        assert_eq!(spawned[0].kind, FaultKind::SpawnedId);
        let moved = faults(&[row("a", "1", "z")], &owned(&[]));
        assert_eq!(moved[0].kind, FaultKind::MovedWindow);
        let foreign = SessionRow {
            transcript: Some("2".into()),
            ..row("a", "1", "a")
        };
        assert_eq!(
            faults(&[foreign], &owned(&[]))[0].kind,
            FaultKind::ForeignTranscript
        );
    }
}
