//! The agents that run on this machine for this user, registered or not.
//!
//! A process that only started the real one (a node wrapper, a program that re-executes itself) is not listed:
//! of a parent and a child with the same name, the child is the agent. A process that exits during the check is
//! skipped.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tenure_core::agent;
use tenure_core::process::{Ancestor, Observer, RunState};
use tenure_core::time::Timestamp;

use crate::system::view::View;
use crate::{clock, exit_traces, process, system};

/// As much later than it seems a process may have started.
const TWO_TICKS: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProcess {
    pub agent: &'static str,
    pub process: Ancestor,
    /// Its working directory, if visible.
    pub dir: Option<String>,
    parent: u32,
}

impl AgentProcess {
    /// When it started, at the latest: the kernel counts in ticks.
    pub fn began(&self) -> Option<Timestamp> {
        let moment = exit_traces::moment(self.process.process.start.ticks)?;
        Some(clock::timestamp(moment + TWO_TICKS))
    }
}

/// Goes through this user's processes once, lowest pid first.
pub fn agents(observer: &Observer) -> Vec<AgentProcess> {
    let mut found = all(observer);
    let wrappers: HashSet<(u32, &str)> =
        found.iter().map(|this| (this.parent, this.agent)).collect();
    found.retain(|this| !wrappers.contains(&(this.process.process.pid, this.agent)));
    found.sort_by_key(|this| this.process.process.pid);
    found
}

/// The process of this agent that has this socket open, if exactly one has and it is found in time.
pub(crate) fn with_socket(
    inode: u64,
    agent: &str,
    observer: &Observer,
    until: Instant,
) -> Option<Ancestor> {
    let has_it = |this: &AgentProcess| system::has_socket(this.process.process.pid, inode);
    let in_time = || clock::instant() < until;
    let looked_at = pids(observer).take_while(|_| in_time());
    let mut found = looked_at
        .filter_map(|pid| one(pid, observer))
        .filter(|this| this.agent == agent && has_it(this));
    let (only, None) = (found.next()?, found.next()) else {
        return None;
    };
    if !in_time() {
        return None;
    }
    // Makes sure that the descriptors belonged to the process found before.
    let pid = only.process.process.pid;
    let still = process::identify(pid, observer).ok()?;
    still.same_as(&only.process.process).then_some(only.process)
}

/// All processes that are agents, including wrappers.
fn all(observer: &Observer) -> Vec<AgentProcess> {
    pids(observer)
        .filter_map(|pid| one(pid, observer))
        .collect()
}

fn pids(observer: &Observer) -> impl Iterator<Item = u32> {
    let listed = observer.proc_is_own.then(system::pids);
    listed.into_iter().flatten().flatten().flatten()
}

fn is_own(pid: u32) -> bool {
    system::owner(pid).is_ok_and(|user| user == rustix::process::geteuid().as_raw())
}

/// The agent itself, if this process only started it; else the same process.
pub fn behind(pid: u32, observer: &Observer) -> u32 {
    let Some(spec) = agent::recognise(&process::looks(pid)) else {
        return pid;
    };
    let mut found = agents(observer).into_iter();
    let child = found.find(|this| this.parent == pid && this.agent == spec.name);
    child.map_or(pid, |this| this.process.process.pid)
}

fn one(pid: u32, observer: &Observer) -> Option<AgentProcess> {
    // The executable decides first: most processes are not agents, and are not looked at further.
    if !agent::may_be_agent(&system::executable(pid)) || !is_own(pid) {
        return None;
    }
    let View::Present(seen) = system::view(pid) else {
        return None;
    };
    if seen.stat.state == RunState::Zombie {
        return None;
    }
    let found = process::ancestor(pid, &seen, observer);
    let spec = agent::recognise(&found.looks)?;
    let dir = system::working_dir(pid).ok();
    Some(AgentProcess {
        agent: spec.name,
        parent: seen.stat.parent,
        process: found,
        dir: dir.map(|dir| dir.to_string_lossy().into_owned()),
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    fn observer() -> Observer {
        Observer {
            host: tenure_core::id::HostId::new("h"),
            boot: crate::boot::boot_id().unwrap(),
            pid_ns: crate::boot::pid_namespace().unwrap(),
            proc_is_own: true,
            shared_store: false,
        }
    }

    #[test]
    fn only_the_agent_of_this_name_has_the_socket_and_only_in_time() {
        system::prepare().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let codex = dir.path().join("codex");
        fs_err::copy("/bin/sleep", &codex).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = fs_err::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = link.to_str().unwrap().trim_start_matches("socket:[");
        let inode: u64 = inode.trim_end_matches(']').parse().unwrap();
        // The child gets the socket as its standard input.
        let mut window = Command::new(&codex)
            .arg("600")
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)))
            .spawn()
            .unwrap();
        let observer = observer();
        let soon = clock::instant() + Duration::from_secs(60);
        let found = |agent: &str, until| with_socket(inode, agent, &observer, until);
        let (own, other, late) = (
            found("codex", soon),
            found("claude", soon),
            found("codex", clock::instant()),
        );
        window.kill().unwrap();
        window.wait().unwrap();
        assert_eq!(own.map(|found| found.process.pid), Some(window.id()));
        assert_eq!(other, None);
        assert_eq!(late, None);
    }
}
