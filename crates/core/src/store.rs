//! What a backend must do: get, insert, compare and set, list, append, and say what time it is.
//!
//! No rule lives behind this trait. A transaction is begun for reading or for writing; dropping it
//! without a commit undoes it. A write transaction must be serial with every other writer of the rows
//! that it locked or changed: SQLite has one writer at a time, PostgreSQL locks the row in
//! [`Tx::lock_claim`] and [`Tx::lock_session`]. Both keep unique constraints as the last word, and report
//! a lost race as [`StoreError::Conflict`], upon which the service runs the whole use case again.
//!
//! Callers lock several claim keys in ascending order only, so that two of them never wait for each other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::claim::{ClaimRecord, Hold, HoldEnd};
use crate::event::{Event, EventFilter, NewEvent};
use crate::id::{
    AgentName, Cursor, Epoch, Handle, HostId, NativeId, SessionId, SessionToken, Ticket,
};
use crate::key::Key;
use crate::mirror_failure::MirrorFailure;
use crate::mission::pointer::{Pointer, Scope};
use crate::mission::{Mission, MissionId, Participant, StoredParticipant};
use crate::notice::{Notice, NoticeId, Pending};
use crate::process::{BootId, Process};
use crate::queue::{NotedTurn, Waiter};
use crate::repository::Home;
use crate::session::{Activity, MetaKey, Session};
use crate::time::{Deadline, Now, Timestamp};
use crate::trample::{FileStamp, FileWrite, Tree};
use crate::transcript::Transcript;

/// Why a store did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else was faster; run the use case again.
    #[error("another change came first")]
    Conflict,
    /// It was in use for longer than we wait.
    #[error("the store {store} is in use by another process and did not become free")]
    Busy {
        /// Which store.
        store: String,
    },
    /// There is no room.
    #[error("the disk that holds the store {store} is full; nothing was changed")]
    Full {
        /// Which store.
        store: String,
    },
    /// It cannot be opened, read or written.
    #[error("cannot use the store {store}: {why}")]
    Unavailable {
        /// Which store.
        store: String,
        /// What stands in the way.
        why: String,
    },
    /// It opens, but what it holds is not what was written.
    #[error("the store {store} is damaged: {why}; it was left as it is")]
    Damaged {
        /// Which store.
        store: String,
        /// What is wrong.
        why: String,
    },
    /// Its newest changes were in a log that is gone.
    #[error(
        "the log {log} of the store {store} {how}, and changes were in it that are nowhere else; nothing was changed"
    )]
    LogLost {
        /// Which store.
        store: String,
        /// The log.
        log: String,
        /// What became of it.
        how: String,
    },
    /// Its file is not the one that was opened.
    #[error(
        "the store {store} was removed or replaced while it was in use; what is done in the old one does not count"
    )]
    Replaced {
        /// Which store.
        store: String,
    },
    /// A newer tenure wrote it.
    #[error(
        "the store {store} was written by a newer tenure (schema {found}, this one knows {known}); it was left as it is"
    )]
    TooNew {
        /// Which store.
        store: String,
        /// Its schema.
        found: u32,
        /// Ours.
        known: u32,
        /// The version that can use it.
        needs: String,
    },
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Reading one consistent state.
    Read,
    /// Changing state; the commit survives a power cut.
    Write,
    /// Changing nothing but heartbeats, which mean nothing after a power cut.
    Beat,
}

/// A backend.
pub trait Store {
    /// Begins a transaction.
    fn begin(&mut self, mode: Mode) -> Result<Box<dyn Tx + '_>, StoreError>;

    /// A number that changes whenever somebody else committed since it was last asked for.
    fn changes(&mut self) -> Result<u64, StoreError>;

    /// Files of which one is written to right after each commit that may matter to who waits for these: a
    /// grant, the end of a hold, a turn, a waiter that left, the end of a session. None where commits
    /// cannot be told apart: then each is worth a look.
    fn bells(&mut self, about: &[Topic]) -> Option<Vec<PathBuf>>;

    /// Whether several machines use it.
    fn is_shared(&self) -> bool;

    /// Where it is, for people: a path, or a URL without its password.
    fn location(&self) -> String;
}

/// What a waiter waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    /// That a key becomes free, or its line moves.
    Key(Key),
    /// That a session ends.
    Session(SessionId),
}

/// Where a process is, without its start: what an index can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessPlace<'a> {
    /// The machine.
    pub host: &'a HostId,
    /// The boot.
    pub boot: &'a BootId,
    /// The pid namespace.
    pub pid_ns: u64,
    /// The pid.
    pub pid: u32,
}

impl<'a> From<&'a Process> for ProcessPlace<'a> {
    fn from(process: &'a Process) -> Self {
        Self {
            host: &process.host,
            boot: &process.boot,
            pid_ns: process.pid_ns,
            pid: process.pid,
        }
    }
}

/// One conversation in a session's lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineageEntry {
    /// The conversation.
    pub native_id: NativeId,
    /// Whether the session owns it, or only visits it.
    pub owned: bool,
    /// Since when.
    pub at: Timestamp,
}

/// A waiter before it has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewWaiter<'a> {
    /// The session that it waits for; none where the session begins with the grant.
    pub session: Option<SessionToken>,
    /// The waiting process.
    pub process: &'a Process,
    /// Since when.
    pub since: Timestamp,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Also those that are closed.
    pub closed_too: bool,
    /// Only those that work in this repository.
    pub repo: Option<String>,
    /// Only those that work in exactly this directory or below it.
    pub under: Option<String>,
    /// Only those that died, and since then.
    pub died_since: Option<Timestamp>,
    /// Only children of this session in this life.
    pub parent: Option<SessionToken>,
    /// Leave out rows that cannot be read; [`Tx::take_damage`] names them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many, the newest first; zero means all.
    pub limit: usize,
}

/// Which claims to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimFilter {
    /// Also those that nobody holds.
    pub free_too: bool,
    /// Only those that this session holds.
    pub session: Option<SessionId>,
    /// Only keys that begin with this.
    pub prefix: Option<String>,
    /// Only what is held with exactly this home.
    pub home: Option<Home>,
    /// Leave out rows that cannot be read; [`Tx::take_damage`] names them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many, in order of their keys; zero means all.
    pub limit: usize,
}

/// Which of a session's lost holds to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost<'a> {
    /// Those that ended at this time or later.
    Since(Timestamp),
    /// Those whose key begins with this.
    Below(&'a str),
}

/// One transaction.
pub trait Tx {
    /// Makes everything of this transaction last, or nothing.
    fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// What time it is for the store.
    fn now(&mut self) -> Result<Now, StoreError>;

    /// A session by its id.
    fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// A session by its id, locked against other writers until the transaction ends.
    fn lock_session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// A session by its whole handle.
    fn session_by_handle(&mut self, handle: &str) -> Result<Option<Session>, StoreError>;

    /// How many sessions a filter fits, whatever its limit.
    fn count_sessions(&mut self, filter: &SessionFilter) -> Result<usize, StoreError>;

    /// Ids and handles of sessions of which `part` is a part, open ones first; at most `limit`.
    fn match_sessions(
        &mut self,
        part: &str,
        limit: usize,
    ) -> Result<Vec<(SessionId, Handle)>, StoreError>;

    /// Open sessions whose present process has this place, whatever its start.
    fn sessions_at(&mut self, place: ProcessPlace<'_>) -> Result<Vec<Session>, StoreError>;

    /// Processes at this place that are, or were, a life of some session; the newest first.
    fn lives_at(
        &mut self,
        place: ProcessPlace<'_>,
    ) -> Result<Vec<(SessionToken, Process)>, StoreError>;

    /// Sessions, the newest first.
    fn list_sessions(&mut self, filter: &SessionFilter) -> Result<Vec<Session>, StoreError>;

    /// Adds a session. A taken id, handle or process is a conflict.
    fn insert_session(&mut self, session: &Session) -> Result<(), StoreError>;

    /// Replaces a session's record if its revision is still the one given, and raises the revision.
    fn update_session(&mut self, session: &Session) -> Result<(), StoreError>;

    /// Records that a session was heard of, and what it does if that is given, if it is still open and in
    /// this life; tells whether it was.
    fn touch_session(
        &mut self,
        token: SessionToken,
        seen_at: Timestamp,
        lease: &Deadline,
        activity: Option<Activity>,
    ) -> Result<bool, StoreError>;

    /// Records that a life began in a process.
    fn insert_life(
        &mut self,
        token: SessionToken,
        process: &Process,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// The session that owns a conversation.
    fn native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<SessionId>, StoreError>;

    /// Makes a session the owner of a conversation, whoever was before.
    fn set_native_owner(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        owner: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Sessions that visit a conversation which another owns.
    fn native_visitors(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Vec<SessionId>, StoreError>;

    /// Records a visit; visiting twice changes nothing.
    fn add_visit(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
        visitor: SessionId,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// The conversations that a session owns or visits, the oldest first.
    fn lineage(&mut self, session: SessionId) -> Result<Vec<LineageEntry>, StoreError>;

    /// A key's row, if the key was ever granted.
    fn claim(&mut self, key: &Key) -> Result<Option<ClaimRecord>, StoreError>;

    /// A key's row, made if it is missing, locked against other writers until the transaction ends.
    fn lock_claim(&mut self, key: &Key) -> Result<ClaimRecord, StoreError>;

    /// How many keys a filter fits, whatever its limit.
    fn count_claims(&mut self, filter: &ClaimFilter) -> Result<usize, StoreError>;

    /// Keys with their newest holds, in order.
    fn list_claims(&mut self, filter: &ClaimFilter) -> Result<Vec<ClaimRecord>, StoreError>;

    /// Adds a grant and sets its key's epoch, which must still be `before`.
    fn insert_hold(&mut self, hold: &Hold, before: Epoch) -> Result<(), StoreError>;

    /// Ends an open hold; ending one that is not open is a conflict.
    fn end_hold(&mut self, key: &Key, epoch: Epoch, end: HoldEnd) -> Result<(), StoreError>;

    /// A session's newest hold of a key.
    fn newest_hold_of(&mut self, session: SessionId, key: &Key)
    -> Result<Option<Hold>, StoreError>;

    /// A session's open holds, in order of their keys.
    fn open_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError>;

    /// Holds of a session that ended without its act (by death, lease or a takeover) and after which it was
    /// not granted the key again, in order of their keys. What was given back costs nothing here.
    fn lost_holds(&mut self, session: SessionId, which: Lost<'_>) -> Result<Vec<Hold>, StoreError>;

    /// When a session was granted something last.
    fn last_grant(&mut self, session: SessionId) -> Result<Option<Timestamp>, StoreError>;

    /// For every key that a session ever held, its newest hold of it, in order of the keys.
    fn newest_holds(&mut self, session: SessionId) -> Result<Vec<Hold>, StoreError>;

    /// Locks the paths of a repository of this name, so that overlapping keys are granted one after the
    /// other.
    fn lock_paths(&mut self, name: &str) -> Result<(), StoreError>;

    /// The homes of open holds, each once.
    fn open_homes(&mut self) -> Result<Vec<Home>, StoreError>;

    /// Keys that were stored under another spelling, and whose canonical one begins with this.
    fn spellings(&mut self, canonical: &str) -> Result<Vec<Key>, StoreError>;

    /// Puts a waiter at the end of the lines of these keys, under one new ticket.
    fn join_queue(&mut self, keys: &[Key], waiter: &NewWaiter<'_>) -> Result<Ticket, StoreError>;

    /// The line for a key, in order of arrival.
    fn queue(&mut self, key: &Key) -> Result<Vec<Waiter>, StoreError>;

    /// The lines that a session's waiters stand in.
    fn waits_of(&mut self, session: SessionId) -> Result<Vec<Waiter>, StoreError>;

    /// The lines that one waiter stands in, in order of their keys.
    fn waits_at(&mut self, ticket: Ticket) -> Result<Vec<Waiter>, StoreError>;

    /// Notes a waiter's turn, in the place of an earlier one.
    fn set_turn(&mut self, ticket: Ticket, key: &Key, turn: &NotedTurn) -> Result<(), StoreError>;

    /// Takes a waiter out of all its lines; one that is in none changes nothing.
    fn leave_queue(&mut self, ticket: Ticket) -> Result<(), StoreError>;

    /// Keeps a notice until it is delivered.
    fn add_notice(&mut self, notice: &Notice) -> Result<(), StoreError>;

    /// Whether anything waits to be told to a session.
    fn has_notices(&mut self, session: SessionId) -> Result<bool, StoreError>;

    /// What waits to be told to a session: losses first, then the oldest first; at most `limit`.
    fn pending_notices(&mut self, session: SessionId, limit: usize) -> Result<Pending, StoreError>;

    /// Keeps that these notices of a session were told; they are never returned again.
    fn mark_delivered(
        &mut self,
        session: SessionId,
        told: &[NoticeId],
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Keeps that hooks speak to the model of this session in this life.
    fn note_model_channel(&mut self, session: SessionToken) -> Result<(), StoreError>;

    /// Whether hooks speak to the model of this session in this life.
    fn has_model_channel(&mut self, session: SessionToken) -> Result<bool, StoreError>;

    /// Takes what was left out of lists because it could not be read: which row, and what is wrong with it.
    fn take_damage(&mut self) -> Vec<String>;

    /// What happened to the store itself last, if anything did: it was moved, copied or rolled back.
    fn store_news(&mut self) -> Result<Option<(Timestamp, String)>, StoreError>;

    /// Appends to the log.
    fn append_event(&mut self, event: &NewEvent, at: Timestamp) -> Result<Cursor, StoreError>;

    /// How many entries of the log a filter fits, whatever its limit.
    fn count_events(&mut self, filter: &EventFilter) -> Result<usize, StoreError>;

    /// Reads the log, the oldest first.
    fn events(&mut self, filter: &EventFilter) -> Result<Vec<Event>, StoreError>;

    /// A session's small values.
    fn metadata(&mut self, session: SessionId) -> Result<BTreeMap<MetaKey, String>, StoreError>;

    /// Sets or removes one of a session's small values.
    fn set_metadata(
        &mut self,
        session: SessionId,
        key: &MetaKey,
        value: Option<&str>,
    ) -> Result<(), StoreError>;

    /// A session's transcript of a conversation.
    fn transcript_of(
        &mut self,
        session: SessionId,
        native_id: &NativeId,
    ) -> Result<Option<Transcript>, StoreError>;

    /// The session whose transcript a path is.
    fn transcript_owner(&mut self, path: &str) -> Result<Option<SessionId>, StoreError>;

    /// Keeps a session's transcript, in the place of an earlier one of the same conversation. A path that
    /// is another session's is a conflict.
    fn set_transcript(&mut self, transcript: &Transcript) -> Result<(), StoreError>;

    /// Sets a transcript aside: it is kept, with the reason, and no longer a session's.
    fn quarantine_transcript(
        &mut self,
        transcript: &Transcript,
        why: &str,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// What was set aside of a session, with the reasons, the oldest first.
    fn quarantined_transcripts(
        &mut self,
        session: SessionId,
    ) -> Result<Vec<(Transcript, String)>, StoreError>;

    /// Who wrote a file, and when last.
    fn writers(&mut self, path: &str) -> Result<Vec<FileWrite>, StoreError>;

    /// The files that a session wrote, the newest first; at most `limit`, zero means all.
    fn writes_of(&mut self, session: SessionId, limit: usize)
    -> Result<Vec<FileWrite>, StoreError>;

    /// Keeps that a session writes a file; an earlier time of the same file is replaced.
    fn note_write(&mut self, write: &FileWrite) -> Result<(), StoreError>;

    /// Keeps what a file is that a session wrote; a file that it did not write changes nothing.
    fn stamp_write(
        &mut self,
        session: SessionId,
        path: &str,
        stamp: Option<FileStamp>,
    ) -> Result<(), StoreError>;

    /// Drops what a session wrote before a time.
    fn forget_writes(&mut self, session: SessionId, before: Timestamp) -> Result<(), StoreError>;

    /// What a session's worktree was when it last wrote there.
    fn tree_of(&mut self, session: SessionId) -> Result<Option<Tree>, StoreError>;

    /// Keeps what a session's worktree is, in the place of what it was.
    fn set_tree(&mut self, session: SessionId, tree: &Tree) -> Result<(), StoreError>;

    /// Remembers that `asker` could not see whether `holder` lives.
    fn add_doubt(&mut self, asker: SessionId, holder: SessionToken) -> Result<(), StoreError>;

    /// Whether there are holders that `asker` could not see.
    fn has_doubts(&mut self, asker: SessionId) -> Result<bool, StoreError>;

    /// Takes the holders that `asker` could not see.
    fn take_doubts(&mut self, asker: SessionId) -> Result<Vec<SessionToken>, StoreError>;

    /// Makes a mission if it is missing, and locks it against other writers until the transaction ends.
    fn lock_mission(&mut self, id: &MissionId, at: Timestamp) -> Result<(), StoreError>;

    /// Every mission that somebody ever joined, in order of their ids.
    fn list_missions(&mut self) -> Result<Vec<Mission>, StoreError>;

    /// A mission, if it is stored.
    fn mission(&mut self, id: &str) -> Result<Option<Mission>, StoreError>;

    /// A session's row in a mission.
    fn participant(
        &mut self,
        mission: &str,
        session: SessionId,
    ) -> Result<Option<StoredParticipant>, StoreError>;

    /// A mission's participants, those who joined first first.
    fn participants(&mut self, mission: &str) -> Result<Vec<StoredParticipant>, StoreError>;

    /// The rows of one session in all missions, in order of the missions.
    fn participations(&mut self, session: SessionId) -> Result<Vec<StoredParticipant>, StoreError>;

    /// Every row of every mission, those of missions that are not stored among them.
    fn all_participants(&mut self) -> Result<Vec<StoredParticipant>, StoreError>;

    /// Adds a participant. A taken participant id, or a second row of a session, is a conflict.
    fn insert_participant(&mut self, participant: &Participant) -> Result<(), StoreError>;

    /// Replaces a participant's row if its revision is still the one given, and raises the revision. When
    /// it joined is never changed.
    fn update_participant(&mut self, participant: &Participant) -> Result<(), StoreError>;

    /// Forgets a participant; tells whether there was one.
    fn remove_participant(&mut self, mission: &str, session: SessionId)
    -> Result<bool, StoreError>;

    /// The mission that a session, a repository or a user points to.
    fn pointer(&mut self, scope: &Scope) -> Result<Option<Pointer>, StoreError>;

    /// Sets or forgets a pointer.
    fn set_pointer(
        &mut self,
        scope: &Scope,
        mission: Option<&MissionId>,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Every pointer.
    fn list_pointers(&mut self) -> Result<Vec<Pointer>, StoreError>;

    /// Mirrors that could not be written and have not been written since.
    fn mirror_failures(&mut self) -> Result<Vec<MirrorFailure>, StoreError>;

    /// Keeps that a mirror could not be written, in the place of an earlier failure of the same path.
    fn set_mirror_failure(&mut self, failure: &MirrorFailure) -> Result<(), StoreError>;

    /// Forgets the failure of a mirror that was written again.
    fn clear_mirror_failure(&mut self, path: &str) -> Result<(), StoreError>;
}
