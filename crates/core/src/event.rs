//! Events: the append-only record of what changed, who did it, by what means, on what evidence.

use serde::{Deserialize, Serialize};

use crate::id::{Cursor, Epoch, SessionId};
use crate::key::Key;
use crate::time::Timestamp;

/// What kind of change an event records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub enum EventKind {
    /// A session came to be.
    #[serde(rename = "session.registered")]
    Registered,
    /// A session entered another conversation.
    #[serde(rename = "session.rotated")]
    Rotated,
    /// A session went on in a new process.
    #[serde(rename = "session.resumed")]
    Resumed,
    /// A session ended by its own act.
    #[serde(rename = "session.ended")]
    Ended,
    /// A session's process was proved dead.
    #[serde(rename = "session.died")]
    Died,
    /// A dead session's conversation and claims went to another.
    #[serde(rename = "session.moved")]
    Moved,
    /// A session's title, place or metadata changed.
    #[serde(rename = "session.changed")]
    Changed,
    /// A subagent of a session started or stopped.
    #[serde(rename = "session.subagent")]
    Subagent,
    /// A tool's use would have been, or was, under another session's feet.
    #[serde(rename = "session.trampled")]
    Trampled,
    /// A session was told something.
    #[serde(rename = "session.told")]
    Told,
    /// A session declared a time of silence.
    #[serde(rename = "lease.renewed")]
    Renewed,
    /// A claim was granted.
    #[serde(rename = "claim.granted")]
    Granted,
    /// A claim was given back.
    #[serde(rename = "claim.released")]
    Released,
    /// An item was finished.
    #[serde(rename = "claim.done")]
    Done,
    /// A claim ended without an act of its holder.
    #[serde(rename = "claim.freed")]
    Freed,
    /// A claim was taken from its holder.
    #[serde(rename = "claim.taken")]
    Taken,
    /// A claim was handed to another session.
    #[serde(rename = "claim.handed")]
    Handed,
    /// A transcript or an id was refused, because it is another's.
    #[serde(rename = "contamination")]
    Contamination,
    /// A session became a participant of a mission.
    #[serde(rename = "mission.joined")]
    MissionJoined,
    /// A session left a mission.
    #[serde(rename = "mission.left")]
    MissionLeft,
    /// A participant's role, focus or drive changed.
    #[serde(rename = "mission.changed")]
    MissionChanged,
    /// A pointer to a mission was set or cleared.
    #[serde(rename = "mission.used")]
    MissionUsed,
    /// The store is another file than it was: copied, moved or restored.
    #[serde(rename = "store.moved")]
    StoreMoved,
    /// The newest changes of the store are gone.
    #[serde(rename = "store.rolled_back")]
    StoreRolledBack,
}

impl EventKind {
    /// The name that the store and the JSON write.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Registered => "session.registered",
            EventKind::Rotated => "session.rotated",
            EventKind::Resumed => "session.resumed",
            EventKind::Ended => "session.ended",
            EventKind::Died => "session.died",
            EventKind::Moved => "session.moved",
            EventKind::Changed => "session.changed",
            EventKind::Subagent => "session.subagent",
            EventKind::Trampled => "session.trampled",
            EventKind::Told => "session.told",
            EventKind::Renewed => "lease.renewed",
            EventKind::Granted => "claim.granted",
            EventKind::Released => "claim.released",
            EventKind::Done => "claim.done",
            EventKind::Freed => "claim.freed",
            EventKind::Taken => "claim.taken",
            EventKind::Handed => "claim.handed",
            EventKind::Contamination => "contamination",
            EventKind::MissionJoined => "mission.joined",
            EventKind::MissionLeft => "mission.left",
            EventKind::MissionChanged => "mission.changed",
            EventKind::MissionUsed => "mission.used",
            EventKind::StoreMoved => "store.moved",
            EventKind::StoreRolledBack => "store.rolled_back",
        }
    }
}

/// An event before the store gave it a place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub kind: EventKind,
    pub session: Option<SessionId>,
    /// The session that did it, where that is another.
    pub actor: Option<SessionId>,
    /// The claim key that it is about.
    pub key: Option<Key>,
    /// The epoch after the change.
    pub epoch: Option<Epoch>,
    /// By what means: `claim`, `takeover`, `death`, `lease`, `end`.
    pub mechanism: &'static str,
    pub evidence: String,
    pub reason: Option<String>,
}

/// An event as the log keeps it. Kinds that a newer version wrote are kept as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub cursor: Cursor,
    pub at: Timestamp,
    pub kind: String,
    pub session: Option<SessionId>,
    /// The session that did it, where that is another.
    pub actor: Option<SessionId>,
    /// The claim key that it is about.
    pub key: Option<String>,
    /// The epoch after the change.
    pub epoch: Option<Epoch>,
    pub mechanism: String,
    pub evidence: String,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub key: Option<Key>,
    /// Only events about or by this session.
    pub session: Option<SessionId>,
    pub after: Option<Cursor>,
    /// Only events recorded at or after this time.
    pub since: Option<Timestamp>,
    /// Leave out rows that cannot be read; the transaction names them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many; the newest where `after` is not given, the oldest where it is.
    pub limit: usize,
}
