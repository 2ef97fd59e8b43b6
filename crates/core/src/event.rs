//! Events: the append-only record of what changed, who did it, by what means, on what evidence.

use crate::id::{Cursor, Epoch, SessionId, stored_enum};
use crate::key::Key;
use crate::time::Timestamp;

stored_enum! {
    /// What kind of change an event records.
    EventKind, "kind of event" {
        /// A session came to be.
        Registered = "session.registered",
        /// A session entered another conversation.
        Rotated = "session.conversation",
        /// A session went on in a new process.
        Resumed = "session.resumed",
        /// A session ended by its own act.
        Ended = "session.ended",
        /// A session said that it was about to leave.
        Leaving = "session.leaving",
        /// A person took a session that was cut off from the list of what can be resumed.
        Dismissed = "session.dismissed",
        /// A session's process was proved dead.
        Died = "session.died",
        /// A dead session's conversation and claims went to another.
        Moved = "session.moved",
        /// A session's title, place or metadata changed.
        Changed = "session.changed",
        /// A subagent of a session started or stopped.
        Subagent = "session.subagent",
        /// A tool's use would have been, or was, under another session's feet.
        WriteConflict = "session.write_conflict",
        /// A session was told something.
        Told = "session.message",
        /// A session declared a time of silence.
        Renewed = "lease.renewed",
        /// A claim was granted.
        Granted = "claim.granted",
        /// A claim was given back.
        Released = "claim.released",
        /// An item was finished.
        Done = "claim.done",
        /// A claim ended without an act of its holder.
        Freed = "claim.freed",
        /// A claim was taken from its holder.
        Taken = "claim.taken_over",
        /// A claim was handed to another session.
        Handed = "claim.handed_off",
        /// A transcript or an id was refused, because it is another's.
        Contamination = "contamination",
        /// A session became a participant of a mission.
        MissionJoined = "mission.joined",
        /// A session left a mission.
        MissionLeft = "mission.left",
        /// A participant's role, focus or drive changed.
        MissionChanged = "mission.changed",
        /// A pointer to a mission was set or cleared.
        MissionUsed = "mission.used",
        /// The store is another file than it was: copied, moved or restored.
        StoreMoved = "store.moved",
        /// The newest changes of the store are gone.
        StoreRolledBack = "store.rolled_back",
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
