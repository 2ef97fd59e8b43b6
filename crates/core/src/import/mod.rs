//! What other systems kept, as records that can be taken over.
//!
//! A reader is pure: text or rows in, entries out, one for everything that was found there. An entry that cannot be
//! taken over says why, so that taken, refused and left always add up to what was read. Whether an entry fits what the
//! store already has is decided in the transaction that takes it over.

pub mod claude_hooks;
pub mod ehg;
mod json;
pub mod openclaw;
pub mod pact;
pub mod spec_kitty;

use crate::conversation::Home;
use crate::id::{AgentName, Malformed, NativeId, WorkerRole, stored_enum};
use crate::key::Key;
use crate::mission::{ApiUrl, Drive, Focus, MissionId, MissionRunId, ParticipantId, Role};
use crate::time::Timestamp;

stored_enum! {
    /// A system whose data can be taken over.
    Format, "format" {
        Openclaw = "openclaw",
        ClaudeHooks = "claude-hooks",
        SpecKitty = "spec-kitty",
        Pact = "pact",
        Ehg = "ehg",
        Tenure = "tenure",
    }
}

/// Something that another system kept.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportEntry {
    /// Its name there: a session key, a mission, a session id.
    pub name: String,
    /// The file or the table that it is in.
    pub source: String,
    pub content: Result<Record, NotTaken>,
}

/// Why an entry is not taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTaken {
    /// It is wrong.
    Refused(String),
    /// It has no place here.
    Left(String),
}

impl NotTaken {
    pub fn refused<T>(why: impl Into<String>) -> Result<T, NotTaken> {
        Err(NotTaken::Refused(why.into()))
    }

    pub fn left<T>(why: impl Into<String>) -> Result<T, NotTaken> {
        Err(NotTaken::Left(why.into()))
    }
}

impl From<Malformed> for NotTaken {
    fn from(wrong: Malformed) -> Self {
        NotTaken::Refused(wrong.to_string())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    Conversation(Box<PastConversation>),
    Session(Box<PastSession>),
    Participant(Box<PastParticipant>),
    /// The mission that was the active one of the user.
    Pointer(MissionId),
}

/// Which conversation an agent continues for an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastConversation {
    pub agent: AgentName,
    pub role: WorkerRole,
    pub item: Key,
    pub native_id: NativeId,
    /// The directory that the agent works in, if it was kept.
    pub dir: Option<String>,
    /// Where the agent keeps it; known on the machine that reads the entry.
    pub home: Option<Home>,
}

/// A session that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct PastSession {
    pub agent: AgentName,
    pub native_id: NativeId,
    pub parent: Option<NativeId>,
    pub dir: String,
    pub branch: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// How it ended, as that system has it.
    pub why: String,
    /// Metadata values.
    pub metadata: Vec<(&'static str, String)>,
}

/// Somebody's place in a mission.
#[derive(Debug, Clone, PartialEq)]
pub struct PastParticipant {
    pub mission: MissionId,
    pub participant: ParticipantId,
    pub role: Role,
    pub joined_at: Timestamp,
    pub active_at: Timestamp,
    pub drive: Drive,
    pub focus: Option<Focus>,
    pub run_id: Option<MissionRunId>,
    pub api_url: Option<ApiUrl>,
    /// For the other system; never stored with the rest.
    pub token: Option<String>,
}

/// A time as other systems write it: with a zone, or without one and then in UTC.
fn time(what: &'static str, text: &str) -> Result<Timestamp, NotTaken> {
    let text = text.trim();
    // PostgreSQL writes a blank before the time, a short zone, and up to six digits of a second.
    let mut iso = text.replacen(' ', "T", 1);
    let clock = iso.find('T').unwrap_or(0);
    let zone = iso[clock..].find(['Z', '+', '-']).map(|at| at + clock);
    match zone {
        None => iso.push('Z'),
        Some(at) if iso.len() - at == 3 => iso.push_str(":00"),
        Some(_) => {}
    }
    iso.parse()
        .map_err(|wrong: Malformed| NotTaken::Refused(format!("{what}: {}", wrong.why)))
}

/// The text of an absolute directory.
fn dir(text: &str) -> Result<String, NotTaken> {
    if text.starts_with('/') && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        NotTaken::refused(format!("its directory {text:?} is not an absolute path"))
    }
}

#[cfg(test)]
mod tests;
