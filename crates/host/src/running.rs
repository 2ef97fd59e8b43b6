//! The agents that run on this machine for this user, whether or not anybody registered them.
//!
//! A process that only started the real one (a node wrapper, a program that starts itself once more) is
//! not listed: of two with one name, parent and child, the child is the agent. What ends while it is
//! looked at is left out.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;

use tenure_core::agent;
use tenure_core::process::{Ancestor, Observer, RunState};

use crate::stat::View;
use crate::{process, system};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub agent: &'static str,
    pub process: Ancestor,
    /// Where it works, if that can be seen.
    pub dir: Option<String>,
    parent: u32,
}

/// Looks through this user's processes once, the lowest pid first.
pub fn agents(observer: &Observer) -> Vec<Running> {
    let mut found = all(observer);
    let wrappers: HashSet<(u32, &str)> =
        found.iter().map(|this| (this.parent, this.agent)).collect();
    found.retain(|this| !wrappers.contains(&(this.process.process.pid, this.agent)));
    found.sort_by_key(|this| this.process.process.pid);
    found
}

/// The agent that has this socket open, if exactly one has.
#[cfg(target_os = "linux")]
pub(crate) fn with_socket(inode: u64, observer: &Observer) -> Option<Ancestor> {
    let wanted = format!("socket:[{inode}]");
    let has_it = |this: &Running| {
        let fds = fs_err::read_dir(format!("/proc/{}/fd", this.process.process.pid));
        let mut links = fds.into_iter().flatten().flatten().map(|fd| fd.path());
        links.any(|fd| fs_err::read_link(fd).is_ok_and(|link| link.as_os_str() == wanted.as_str()))
    };
    let mut found = all(observer).into_iter().filter(has_it);
    let (only, None) = (found.next()?, found.next()) else {
        return None;
    };
    // Whose descriptors were read is still the process that was seen before.
    let pid = only.process.process.pid;
    let still = process::identify(pid, observer).ok()?;
    still.same_as(&only.process.process).then_some(only.process)
}

/// All processes that are agents, wrappers too.
fn all(observer: &Observer) -> Vec<Running> {
    if !observer.proc_is_own {
        return Vec::new();
    }
    let own_uid = rustix::process::geteuid().as_raw();
    let Ok(entries) = fs_err::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
            (entry.metadata().ok()?.uid() == own_uid).then_some(pid)
        })
        .filter_map(|pid| one(pid, observer))
        .collect()
}

/// The agent itself, where this process only started it; else the same process.
pub fn behind(pid: u32, observer: &Observer) -> u32 {
    let Some(spec) = agent::recognise(&process::looks(pid)) else {
        return pid;
    };
    let mut found = agents(observer).into_iter();
    let child = found.find(|this| this.parent == pid && this.agent == spec.name);
    child.map_or(pid, |this| this.process.process.pid)
}

fn one(pid: u32, observer: &Observer) -> Option<Running> {
    // What it looks like decides first: most processes are no agents.
    if !agent::may_be_agent(&system::executable(pid)) {
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
    let dir = fs_err::read_link(format!("/proc/{pid}/cwd")).ok();
    Some(Running {
        agent: spec.name,
        parent: seen.stat.parent,
        process: found,
        dir: dir.map(|dir| dir.to_string_lossy().into_owned()),
    })
}
