//! Sessions, their lives and where they run.

use super::StoreError;
use crate::id::{Handle, HostId, Life, SessionId, SessionToken};
use crate::process::{BootId, Process};
use crate::session::{Activity, Doing, Session};
use crate::time::{Deadline, Timestamp};
use crate::woken::Woken;

/// A process without its start time: what an index can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessPlace<'a> {
    pub host: &'a HostId,
    pub boot: &'a BootId,
    pub pid_ns: u64,
    pub pid: u32,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Include those that are closed.
    pub closed_too: bool,
    /// Only those that work in this repository.
    pub repo: Option<String>,
    /// Only those that work in exactly this directory or below.
    pub under: Option<String>,
    /// Those that are open, or were at this time or later.
    pub open_since: Option<Timestamp>,
    /// Only those that died since then.
    pub died_since: Option<Timestamp>,
    /// Only those that were cut off since then and not dismissed, newest first.
    pub cut_off_since: Option<Timestamp>,
    /// Only those whose agent said last that it does this.
    pub doing: Option<Doing>,
    /// Only children of this session in this life.
    pub parent: Option<SessionToken>,
    /// Skip unreadable rows; [`super::Tx::take_damage`] reports them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many, newest first; zero means all.
    pub limit: usize,
    /// Where counting may stop; zero counts all.
    pub count_to: usize,
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

pub trait SessionRows {
    /// A session by its id.
    fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// Those of these sessions that exist.
    fn sessions(&mut self, ids: &[SessionId]) -> Result<Vec<Session>, StoreError>;

    /// A session by its complete handle.
    fn session_by_handle(&mut self, handle: &str) -> Result<Option<Session>, StoreError>;

    /// How many sessions match a filter, whatever its limit.
    fn count_sessions(&mut self, filter: &SessionFilter) -> Result<usize, StoreError>;

    /// Ids and handles of sessions that contain `part`, open ones first; at most `limit`.
    fn match_sessions(
        &mut self,
        part: &str,
        limit: usize,
    ) -> Result<Vec<(SessionId, Handle)>, StoreError>;

    /// Open sessions whose current process is at one of these places, whatever its start; newest first within a
    /// place.
    fn sessions_at_any(&mut self, places: &[ProcessPlace<'_>]) -> Result<Vec<Session>, StoreError>;

    /// The same for open sessions whose daemon has one of these places.
    fn sessions_below_any(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<Session>, StoreError>;

    /// Sessions, newest first.
    fn list_sessions(&mut self, filter: &SessionFilter) -> Result<Vec<Session>, StoreError>;

    /// Adds a session. A taken id, handle or process is a conflict; for a process that hosts several, a taken
    /// conversation.
    fn insert_session(&mut self, session: &Session) -> Result<(), StoreError>;

    /// Replaces a session's record if its revision is still the given one, and raises the revision.
    fn update_session(&mut self, session: &Session) -> Result<(), StoreError>;

    /// Records a heartbeat of a session, with its activity and the presence of a person if given, if it is
    /// still open and in this life; returns whether it was. A lease that ends later in the same era stays: no
    /// heartbeat shortens one, whatever its sender knew. One statement, so it needs no lock.
    fn touch_session(
        &mut self,
        token: SessionToken,
        seen_at: Timestamp,
        lease: &Deadline,
        activity: Option<&Activity>,
        attended_at: Option<Timestamp>,
    ) -> Result<bool, StoreError>;

    /// Stores which branch was seen in a session's directory, if it is still open and in this life. One
    /// statement, which leaves the revision unchanged.
    fn note_branch(
        &mut self,
        token: SessionToken,
        branch: Option<&str>,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Stores that a session asked its model, and when it did so before, if it is still open and in this life. One
    /// statement, which leaves the revision unchanged.
    fn note_request(&mut self, token: SessionToken, at: Timestamp) -> Result<(), StoreError>;

    /// Stores when messages started turns in a session, if it is still open and in this life. One statement, which
    /// leaves the revision unchanged.
    fn note_woken(&mut self, token: SessionToken, woken: &Woken) -> Result<(), StoreError>;

    /// Processes at these places that are, or were, a life of some session; newest first within a place.
    fn lives_at_any(
        &mut self,
        places: &[ProcessPlace<'_>],
    ) -> Result<Vec<(SessionToken, Process)>, StoreError>;

    /// The newest lives of a session up to this one, with their processes, newest first. A life without a
    /// process is omitted.
    fn lives_up_to(
        &mut self,
        token: SessionToken,
        most: usize,
    ) -> Result<Vec<(Life, Process)>, StoreError>;

    /// Records the process of a new life.
    fn insert_life(
        &mut self,
        token: SessionToken,
        process: &Process,
        at: Timestamp,
    ) -> Result<(), StoreError>;
}
