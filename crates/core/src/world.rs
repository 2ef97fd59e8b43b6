//! What the service asks of the machine it runs on, so that core itself has no side effects.

use std::time::Duration;

use crate::agent::{DaemonSpec, Traces};
use crate::id::NativeId;
use crate::process::{Ancestor, Observer, Process, Sighting, Signs, Survivors};
use crate::session::Workdir;
use crate::tree_lock::TreeLock;
use crate::write_conflict::RepoFile;

/// A process that is an agent, registered or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningAgent {
    pub agent: &'static str,
    pub process: Ancestor,
    /// Its working directory, if visible.
    pub dir: Option<String>,
}

/// This machine, as far as a use case needs it.
pub trait World {
    /// Who observes, and what it can see.
    fn observer(&self) -> &Observer;

    /// How long ago this machine booted, sleep included; none if unknown.
    fn since_boot(&self) -> Option<Duration>;

    /// Looks up a pid in the observer's own namespace.
    fn look(&self, pid: u32) -> Sighting;

    /// The agents that run here for this user, without the processes that only started them.
    fn agents(&self) -> Vec<RunningAgent>;

    /// Finds processes that dead sessions and runs left running; one answer for each.
    fn survivors(&self, signs: &[Signs]) -> Vec<Survivors>;

    /// A process and those above it.
    fn chain(&self, pid: u32) -> Vec<Ancestor>;

    /// The window of a conversation that a daemon runs, if the daemon itself reports it and it still runs.
    /// Never a guess.
    fn window(
        &self,
        spec: &DaemonSpec,
        daemon: &Process,
        conversation: &NativeId,
    ) -> Option<Ancestor>;

    /// Whether a process of an agent that is gone exited by itself, by its traces in the agent's own directory;
    /// none if unknown.
    fn was_orderly(&self, traces: &Traces, home: &str, gone: &Process) -> Option<bool>;

    /// Whether a turn of a conversation is in progress, as reported by its daemon; none if unknown.
    fn has_turn(
        &self,
        spec: &DaemonSpec,
        daemon: &Process,
        conversation: &NativeId,
    ) -> Option<bool>;

    /// What a directory is: its repository and branch.
    fn place(&self, dir: &str) -> Workdir;

    /// The branch that is checked out in the worktree of a directory now; none in it if HEAD is detached. None
    /// if that cannot be read. Cheap.
    fn branch(&self, dir: &str) -> Option<Option<String>>;

    /// A file's position in its repository, if it is in one.
    fn file(&self, path: &str) -> Option<RepoFile>;

    /// Which of these files and directories exist, in bounded time; yes if unknown.
    fn are_there(&self, paths: &[String]) -> Vec<bool>;

    /// The `owner/name` of the remote of the repository with this common directory, if it has one.
    fn remote(&self, common_dir: &str) -> Option<String>;

    /// The session that our lock on the linked worktree of a directory names, if there is one.
    fn tree_lock(&self, dir: &str) -> Option<String>;

    /// Makes our lock on that worktree name this session, or removes it, if possible. Never touches a lock that
    /// is not ours.
    fn set_tree_lock(&self, dir: &str, handle: Option<&str>);

    /// Lets other processes use the store, for a caller with much to write and no hurry.
    fn give_way(&self) {}

    /// Waits before another attempt after a lost race.
    fn back_off(&self, _length: Duration) {}

    /// Our locks on all linked worktrees of the repository of a directory.
    fn tree_locks(&self, dir: &str) -> Vec<TreeLock>;

    /// Makes a lock name another session, or removes it, if it still names the same one.
    fn change_tree_lock(&self, lock: &TreeLock, handle: Option<&str>);

    /// Random bytes for new ids.
    fn random(&self) -> [u8; 16];
}
