//! Events: the append-only log of what changed, who did it, how, and on what evidence.

use std::time::Duration;

use crate::id::{Cursor, Epoch, SessionId, stored_enum};
use crate::key::Key;
use crate::time::Timestamp;

stored_enum! {
    EventKind, "kind of event" {
        /// A session was created.
        Registered = "session.registered",
        /// A session entered another conversation.
        Rotated = "session.conversation",
        /// A session continued in a new process.
        Resumed = "session.resumed",
        /// A session ended by its own act.
        Ended = "session.ended",
        /// A session announced that it was about to exit.
        Leaving = "session.leaving",
        /// A person removed a cut-off session from the list of what can be resumed.
        Dismissed = "session.dismissed",
        /// A session's process was proved dead.
        Died = "session.died",
        /// The conversation and claims of a dead session moved to another one.
        Moved = "session.moved",
        /// A session's title, place or metadata changed.
        Changed = "session.changed",
        /// A subagent of a session started or stopped.
        Subagent = "session.subagent",
        /// A session entered a conversation that another one is in.
        Twin = "session.twin",
        /// A tool call conflicted, or would have conflicted, with another session.
        WriteConflict = "session.write_conflict",
        /// A session was sent a message.
        Told = "session.message",
        /// Somebody answered from elsewhere what a session asked a person.
        Answered = "session.answered",
        /// A session announced a time of silence.
        Renewed = "lease.renewed",
        /// A claim was granted.
        Granted = "claim.granted",
        /// A claim was released.
        Released = "claim.released",
        /// An item was marked as done.
        Done = "claim.done",
        /// A claim ended without an act of its holder.
        Freed = "claim.freed",
        /// A claim was taken from its holder.
        Taken = "claim.taken_over",
        /// A claim whose holder was dead, or whose lease was over, went to another session.
        Replaced = "claim.replaced",
        /// A claim was handed to another session.
        Handed = "claim.handed_off",
        /// A transcript or an id was refused because it belongs to another session.
        Contamination = "contamination",
        /// A session became a participant of a mission.
        MissionJoined = "mission.joined",
        /// A session left a mission.
        MissionLeft = "mission.left",
        /// A participant's role, focus or drive changed.
        MissionChanged = "mission.changed",
        /// A pointer to a mission was set or cleared.
        MissionUsed = "mission.used",
        /// A conversation got another native id, or another home.
        ConversationSet = "conversation.set",
        /// A conversation was dropped, or its native id proved to be unknown or unusable.
        ConversationDropped = "conversation.dropped",
        /// The agent of a conversation has deleted it.
        ConversationLost = "conversation.lost",
        /// An item continues another item's conversation.
        ConversationLinked = "conversation.linked",
        /// An item has its own conversation again.
        ConversationUnlinked = "conversation.unlinked",
        /// A conversation closed with the last of its items.
        ConversationClosed = "conversation.closed",
        /// A closed conversation came back with one of its items.
        ConversationReopened = "conversation.reopened",
        /// A run was recorded, before its agent started.
        RunStarting = "run.starting",
        /// The agent of a run was started.
        RunBegun = "run.begun",
        /// The conversation of a run was unknown to its agent, and the run went on in a fresh one.
        RunFellBack = "run.fell_back",
        /// Someone asked a run to stop.
        RunStopAsked = "run.stop_asked",
        /// A run ended, and how.
        RunEnded = "run.ended",
        /// A job was queued, or queued again.
        JobQueued = "job.queued",
        /// An event joined a job that was waiting.
        JobJoined = "job.joined",
        /// A runner took a job, or recorded its run.
        JobTaken = "job.taken",
        /// The agent of a job's run was started.
        JobBegun = "job.begun",
        /// A job could not be started and is queued again.
        JobReturned = "job.returned",
        /// A job waits for a time or for a person.
        JobParked = "job.parked",
        JobEnded = "job.ended",
        JobCancelled = "job.cancelled",
        /// A person published the result of a job, or decided against it.
        JobResult = "job.result",
        /// A taker reported about a job that another one has by now.
        JobLate = "job.late",
        /// A token of the HTTP API was made.
        TokenMade = "token.made",
        /// A token of the HTTP API was revoked.
        TokenRevoked = "token.revoked",
        /// Data of another system was taken over.
        Imported = "import",
        /// The store is not the same file any more: it was copied, moved or restored.
        StoreMoved = "store.moved",
        /// The newest changes of the store are lost.
        StoreRolledBack = "store.rolled_back",
    }
}

/// How long events are stored.
pub const KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 3600);

/// Whether a reader that has read up to `after` may have missed events because the log now begins at `oldest`. One that
/// has read nothing yet misses nothing.
pub fn has_missed(after: Cursor, oldest: Cursor) -> bool {
    after.0 > 0 && after.0 + 1 < oldest.0
}

/// An event before the store gave it a position in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub kind: EventKind,
    pub session: Option<SessionId>,
    /// The session that acted, if it is another one.
    pub actor: Option<SessionId>,
    /// The claim key that it is about.
    pub key: Option<Key>,
    /// The epoch after the change.
    pub epoch: Option<Epoch>,
    /// How it happened: `claim`, `takeover`, `death`, `lease`, `end`.
    pub mechanism: &'static str,
    pub evidence: String,
    pub reason: Option<String>,
}

/// An event as the log stores it. Kinds written by a newer version are kept as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub cursor: Cursor,
    pub at: Timestamp,
    pub kind: String,
    pub session: Option<SessionId>,
    /// The session that acted, if it is another one.
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
    pub kind: Option<EventKind>,
    /// Only events about or by this session.
    pub session: Option<SessionId>,
    pub after: Option<Cursor>,
    /// Only events recorded at or after this time.
    pub since: Option<Timestamp>,
    /// Skip unreadable rows; the transaction reports them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many: the newest without `after`, the oldest with it.
    pub limit: usize,
    /// Where counting may stop; zero counts all.
    pub count_to: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_read_up_to_the_start_of_the_log_or_nothing_yet_has_missed_nothing() {
        let cases = [
            (0, 1, false),
            (0, 9, false),
            (8, 9, false),
            (9, 9, false),
            (7, 9, true),
        ];
        for (after, oldest, expected) in cases {
            assert_eq!(
                has_missed(Cursor(after), Cursor(oldest)),
                expected,
                "{after} {oldest}"
            );
        }
    }
}
