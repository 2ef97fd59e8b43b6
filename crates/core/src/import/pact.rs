//! PACT: one directory for each session, with its team and its project.

use super::json::{needed, object, text};
use super::{ImportEntry, NotTaken, PastSession, Record, dir, time};
use crate::id::{AgentName, NativeId};

/// The context file of a session; `folder` is the name of its directory, which is in the one of its `project`, and
/// `written` when the file was last changed.
pub fn context(
    project: &str,
    folder: &str,
    content: &str,
    source: &str,
    written: crate::time::Timestamp,
) -> ImportEntry {
    let read = || {
        let fields = object(content)?;
        let id = NativeId::parse(needed(&fields, "session_id")?)?;
        if id.as_str() != folder {
            return NotTaken::refused(format!(
                "it is the file of session {id}, in the directory of another"
            ));
        }
        let started_at = match text(&fields, "started_at")? {
            Some(at) => time("started_at", at)?,
            None => written,
        };
        let metadata = [
            ("team_name", text(&fields, "team_name")?),
            ("project", Some(project)),
        ];
        Ok(Record::Session(Box::new(PastSession {
            agent: AgentName::known("claude"),
            native_id: id,
            parent: None,
            dir: dir(needed(&fields, "project_dir")?)?,
            branch: None,
            started_at,
            ended_at: written.max(started_at),
            why: "a session of PACT".to_owned(),
            metadata: metadata
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?.to_owned())))
                .collect(),
        })))
    };
    ImportEntry {
        name: folder.to_owned(),
        source: source.to_owned(),
        content: read(),
    }
}
