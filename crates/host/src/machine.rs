//! This machine as core's use cases see it.
//!
//! Anything that could fail later fails when a [`Machine`] is created: without a boot id, a
//! namespace, the clock's offsets or random bytes, nothing may be recorded.

use std::io;
use std::path::Path;
use std::time::Duration;

use tenure_core::agent::{DaemonSpec, Traces};
use tenure_core::id::{HostId, NativeId};
use tenure_core::process::{Ancestor, Observer, Process, Sighting, Signs, Survivors};
use tenure_core::session::Workdir;
use tenure_core::tree_lock::TreeLock;
use tenure_core::world::{RunningAgent, World};
use tenure_core::write_conflict::RepoFile;

use crate::git::Worktree;
use crate::{
    boot, clock, git, pause, presence, process, random, running, survivors, system, tree_lock,
};

/// This machine, seen from this process.
#[derive(Debug, Clone)]
pub struct Machine {
    observer: Observer,
}

impl Machine {
    /// Finds out what this process can see.
    pub fn new(host: HostId) -> io::Result<Machine> {
        system::prepare()?;
        random::bytes::<16>()?;
        let observer = Observer {
            host,
            boot: boot::boot_id()?,
            pid_ns: boot::pid_namespace()?,
            proc_is_own: boot::proc_is_own(),
            // The store overrides this if several machines share it.
            shared_store: false,
        };
        Ok(Machine { observer })
    }
}

impl World for Machine {
    fn observer(&self) -> &Observer {
        &self.observer
    }

    fn since_boot(&self) -> Option<Duration> {
        Some(clock::since_boot().0)
    }

    fn look(&self, pid: u32) -> Sighting {
        process::look(pid)
    }

    fn survivors(&self, signs: &[Signs]) -> Vec<Survivors> {
        survivors::find(signs, &self.observer)
    }

    fn chain(&self, pid: u32) -> Vec<Ancestor> {
        process::chain_from(pid, &self.observer).0
    }

    fn window(
        &self,
        spec: &DaemonSpec,
        daemon: &Process,
        conversation: &NativeId,
    ) -> Option<Ancestor> {
        crate::window::find(spec, daemon, conversation, &self.observer)
    }

    fn was_orderly(&self, traces: &Traces, home: &str, gone: &Process) -> Option<bool> {
        crate::exit_traces::was_orderly(traces, Path::new(home), gone, &self.observer)
    }

    fn has_turn(
        &self,
        spec: &DaemonSpec,
        daemon: &Process,
        conversation: &NativeId,
    ) -> Option<bool> {
        crate::window::has_turn(spec, daemon, conversation)
    }

    fn place(&self, dir: &str) -> Workdir {
        let worktree = git::worktree(Path::new(dir));
        Workdir {
            dir: dir.to_owned(),
            repo: worktree.as_ref().map(Worktree::repo),
            branch: worktree.and_then(|found| found.branch),
        }
    }

    fn agents(&self) -> Vec<RunningAgent> {
        let found = running::agents(&self.observer).into_iter();
        let as_agent = |one: running::AgentProcess| RunningAgent {
            agent: one.agent,
            process: one.process,
            dir: one.dir,
        };
        found.map(as_agent).collect()
    }

    fn branch(&self, dir: &str) -> Option<Option<String>> {
        git::branch(Path::new(dir))
    }

    fn file(&self, path: &str) -> Option<RepoFile> {
        git::file(Path::new(path))
    }

    fn are_there(&self, paths: &[String]) -> Vec<bool> {
        presence::of(paths)
    }

    fn remote(&self, common_dir: &str) -> Option<String> {
        git::remote(Path::new(common_dir))
    }

    fn tree_lock(&self, dir: &str) -> Option<String> {
        tree_lock::named_in(Path::new(dir))
    }

    fn set_tree_lock(&self, dir: &str, handle: Option<&str>) {
        tree_lock::set(Path::new(dir), handle);
    }

    fn give_way(&self) {
        // Waiters for SQLite retry every few milliseconds, at most every hundred.
        pause::sleep(Duration::from_millis(25));
    }

    fn back_off(&self, length: Duration) {
        pause::sleep(length);
    }

    fn tree_locks(&self, dir: &str) -> Vec<TreeLock> {
        tree_lock::all(Path::new(dir))
    }

    fn change_tree_lock(&self, lock: &TreeLock, handle: Option<&str>) {
        tree_lock::change(lock, handle);
    }

    fn random(&self) -> [u8; 16] {
        random::bytes()
            .expect("the kernel gave random bytes when this machine was made and does not stop")
    }
}
