//! Runs, and agents that are parked on a host.

use super::StoreError;
use crate::conversation::fitness::Left;
use crate::id::{AgentName, HostId, NativeId, RunId, SessionId, WorkerRole};
use crate::key::Key;
use crate::process::BootId;
use crate::run::{Park, Run};
use crate::time::Timestamp;

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of exactly this item.
    pub item: Option<Key>,
    pub agent: Option<AgentName>,
    /// Only those whose outcome is a failure.
    pub failed: bool,
    /// Only those without a recorded end.
    pub open: bool,
    /// Only those that were created at this time or later.
    pub since: Option<Timestamp>,
    /// Only those that are older than this one, which was created then.
    pub before: Option<(Timestamp, RunId)>,
    /// Leave out rows that cannot be read; [`super::Tx::take_damage`] names them. Only for lists that are shown.
    pub readable_only: bool,
    /// At most this many, the newest first; zero means all.
    pub limit: usize,
    /// Where counting may stop; zero counts all.
    pub count_to: usize,
}

/// Which runs that were cut off are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutOff<'a> {
    /// In exactly this directory.
    In(&'a str),
    Of(&'a AgentName, &'a WorkerRole, &'a Key),
}

/// Rows of a transaction.
pub trait RunRows {
    fn run_by_id(&mut self, id: &RunId) -> Result<Option<Run>, StoreError>;

    /// Ids of runs that begin with a part, with or without `r-`, the newest first.
    fn match_runs(&mut self, part: &str, limit: usize) -> Result<Vec<RunId>, StoreError>;

    /// The run without a recorded end of an agent in a role and the item whose conversation it continues.
    fn open_run_of(
        &mut self,
        agent: &AgentName,
        role: &WorkerRole,
        root: &Key,
    ) -> Result<Option<Run>, StoreError>;

    /// The runs without a recorded end of all agents and roles that continue this item's conversations.
    fn open_runs_of(&mut self, root: &Key) -> Result<Vec<Run>, StoreError>;

    /// The runs without a recorded end in exactly this directory of a host, those that share it too.
    fn open_runs_in(&mut self, host: &HostId, dir: &str) -> Result<Vec<Run>, StoreError>;

    /// The run without a recorded end that a session is in.
    fn open_run_of_session(&mut self, session: SessionId) -> Result<Option<Run>, StoreError>;

    /// The newest run of a session.
    fn newest_run_of_session(&mut self, session: SessionId) -> Result<Option<Run>, StoreError>;

    /// The newest run of each of these sessions that has one.
    fn newest_runs_of_sessions(&mut self, sessions: &[SessionId]) -> Result<Vec<Run>, StoreError>;

    /// All runs of these sessions.
    fn runs_of_sessions(&mut self, sessions: &[SessionId]) -> Result<Vec<Run>, StoreError>;

    /// The runs of a host's present boot that ended with [`Run::was_cut_off`], in a directory or of an agent and the
    /// item whose conversation they continued.
    fn runs_cut_off(
        &mut self,
        host: &HostId,
        boot: &BootId,
        place: CutOff<'_>,
    ) -> Result<Vec<Run>, StoreError>;

    /// Runs, the newest first.
    fn list_runs(&mut self, filter: &RunFilter) -> Result<Vec<Run>, StoreError>;

    /// How many a filter fits, whatever its limit and where it begins. At least `count_to` where there are more.
    fn count_runs(&mut self, filter: &RunFilter) -> Result<usize, StoreError>;

    /// Adds a run. A second open one of a conversation, or of a directory that neither shares, is a conflict.
    fn insert_run(&mut self, run: &Run) -> Result<(), StoreError>;

    /// Replaces a run if its revision is still the one given, and raises the revision. Agent, role, item, host and
    /// when it was created are never changed.
    fn update_run(&mut self, run: &Run) -> Result<(), StoreError>;

    /// What the newest run that ended in a native id left of it, with that run.
    fn newest_left(
        &mut self,
        agent: &AgentName,
        native_id: &NativeId,
    ) -> Result<Option<(RunId, Left)>, StoreError>;

    /// Whether an agent is parked on a host, over or not.
    fn park(&mut self, agent: &AgentName, host: &HostId) -> Result<Option<Park>, StoreError>;

    /// All parks, in order of agents and hosts.
    fn parks(&mut self) -> Result<Vec<Park>, StoreError>;

    /// Parks an agent on a host in place of `before`; another one there is a conflict.
    fn set_park(&mut self, before: Option<&Park>, park: &Park) -> Result<(), StoreError>;

    /// Forgets a park; none changes nothing.
    fn clear_park(&mut self, agent: &AgentName, host: &HostId) -> Result<(), StoreError>;
}
