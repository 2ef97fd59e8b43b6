//! Processes of this machine: whether they exist, which ones they are, and our ancestors.
//!
//! A pid is only ever recorded together with its start, and a start is only taken from a process that the
//! kernel confirmed. If another process may have taken a pid between two reads, the reads are compared and the
//! answer is refused, not guessed. If /proc shows another pid namespace, nothing is read at all. A crash leaves
//! nothing behind.

use std::collections::HashSet;

use tenure_core::process::{
    Ancestor, Observer, Process, ProcessAppearance, RunState, Sighting, StartTicks,
};

use crate::system;
use crate::system::view::{ProcessStat, View};
use crate::unseen::Unseen;

/// How often an interrupted walk restarts.
const WALKS: usize = 3;

/// Why a pid cannot be recorded as a process.
#[derive(Debug, thiserror::Error)]
pub enum IdentifyError {
    #[error("there is no process {pid}")]
    NoSuchProcess { pid: u32 },
    #[error("there is no process {pid}; it is a thread of process {of}")]
    Thread {
        pid: u32,
        /// The process that the thread belongs to.
        of: u32,
    },
    /// It belongs to another user.
    #[error("process {pid} belongs to another user (uid {uid})")]
    OtherUser { pid: u32, uid: u32 },
    /// A zombie: it only waits to be reaped.
    #[error("process {pid} has exited")]
    Exited { pid: u32 },
    #[error("cannot inspect process {pid}: {why}")]
    Unreadable { pid: u32, why: String },
}

/// Looks up a pid in our own namespace.
pub fn look(pid: u32) -> Sighting {
    match system::view(pid) {
        View::Absent => Sighting::Absent,
        View::Present(seen) => Sighting::Present {
            start: seen.start,
            state: seen.stat.state,
            threads: seen.stat.threads,
        },
        View::Thread { of } => Sighting::Thread { of },
        View::Unreadable(why) => Sighting::Unreadable(why),
    }
}

/// The record of a live process of our own user.
pub fn identify(pid: u32, observer: &Observer) -> Result<Process, IdentifyError> {
    if !observer.proc_is_own {
        let why = Unseen::ForeignProc.to_string();
        return Err(IdentifyError::Unreadable { pid, why });
    }
    let before = present(pid)?;
    let uid = system::effective_uid(pid);
    // Read again: only then does the uid belong to the recorded start.
    let after = present(pid)?;
    if before.start != after.start {
        return Err(IdentifyError::NoSuchProcess { pid });
    }
    let uid = uid.map_err(|error| IdentifyError::Unreadable {
        pid,
        why: error.to_string(),
    })?;
    if uid != rustix::process::geteuid().as_raw() {
        return Err(IdentifyError::OtherUser { pid, uid });
    }
    if after.stat.state == RunState::Zombie && after.stat.threads <= 1 {
        return Err(IdentifyError::Exited { pid });
    }
    Ok(record(pid, after.start, observer))
}

/// A live process of any user.
pub(crate) fn of_anyone(pid: u32, observer: &Observer) -> Option<Process> {
    let seen = present(pid).ok()?;
    (seen.stat.state != RunState::Zombie).then(|| record(pid, seen.start, observer))
}

fn present(pid: u32) -> Result<ProcessStat, IdentifyError> {
    match system::view(pid) {
        View::Present(seen) => Ok(seen),
        View::Absent => Err(IdentifyError::NoSuchProcess { pid }),
        View::Thread { of } => Err(IdentifyError::Thread { pid, of }),
        View::Unreadable(why) => Err(IdentifyError::Unreadable { pid, why }),
    }
}

fn record(pid: u32, start: StartTicks, observer: &Observer) -> Process {
    Process {
        host: observer.host.clone(),
        boot: observer.boot.clone(),
        pid_ns: observer.pid_ns,
        pid,
        start,
    }
}

/// The appearance of a process; unreadable parts stay empty.
pub fn looks(pid: u32) -> ProcessAppearance {
    system::looks(pid, None)
}

/// Our own process and its ancestors, up to the top; and why the chain is incomplete, if it is.
pub fn chain(observer: &Observer) -> (Vec<Ancestor>, Option<String>) {
    chain_from(std::process::id(), observer)
}

/// The same for any process: itself, its parent, and so on.
///
/// If a process on the way exits during the walk, those below it get another parent, so the walk restarts.
pub fn chain_from(pid: u32, observer: &Observer) -> (Vec<Ancestor>, Option<String>) {
    let mut walk = climb(pid, observer, |_| true);
    for _ in 1..WALKS {
        if walk.1.is_none() || !observer.proc_is_own {
            break;
        }
        walk = climb(pid, observer, |_| true);
    }
    walk
}

/// The nearest matching ancestor of this process; nothing above it is read.
pub fn nearest(observer: &Observer, mut fits: impl FnMut(&Ancestor) -> bool) -> Option<Ancestor> {
    let mut found = false;
    let (mut chain, _) = climb(std::os::unix::process::parent_id(), observer, |ancestor| {
        found = fits(ancestor);
        !found
    });
    chain.pop().filter(|_| found)
}

/// The ancestors of this process, up to the first for which `ends` is true.
pub fn above(observer: &Observer, mut ends: impl FnMut(&Ancestor) -> bool) -> Vec<Ancestor> {
    let parent = std::os::unix::process::parent_id();
    climb(parent, observer, |ancestor| !ends(ancestor)).0
}

/// A process and its ancestors, as long as `goes_on` is true.
///
/// The only limit is the kernel's number of pids: each is visited once.
fn climb(
    pid: u32,
    observer: &Observer,
    mut goes_on: impl FnMut(&Ancestor) -> bool,
) -> (Vec<Ancestor>, Option<String>) {
    if !observer.proc_is_own {
        return (Vec::new(), Some(Unseen::ForeignProc.to_string()));
    }
    let mut chain: Vec<Ancestor> = Vec::new();
    let mut visited = HashSet::new();
    let mut pid = pid;
    while pid != 0 {
        let seen = match present(pid) {
            Ok(seen) => seen,
            Err(error) => return (chain, Some(error.to_string())),
        };
        // No parent is younger than its child. One that is has reused the pid of the real parent, which exited
        // during the walk. A pid that appears twice was reused as well.
        let is_younger = |below: &Ancestor| below.process.start.ticks < seen.start.ticks;
        if chain.last().is_some_and(is_younger) || !visited.insert(pid) {
            return (chain, Some(Unseen::Replaced { pid }.to_string()));
        }
        let parent = seen.stat.parent;
        let this = ancestor(pid, &seen, observer);
        let goes = goes_on(&this);
        chain.push(this);
        if pid == 1 || !goes {
            break;
        }
        pid = parent;
    }
    (chain, None)
}

pub(crate) fn ancestor(pid: u32, seen: &ProcessStat, observer: &Observer) -> Ancestor {
    Ancestor {
        process: record(pid, seen.start, observer),
        looks: system::looks(pid, Some(&seen.stat.comm)),
        leads_terminal: seen.stat.session == pid && seen.stat.has_terminal,
        forked: seen.stat.forked,
    }
}

/// Whether this process has a controlling terminal; no if unreadable.
pub fn has_terminal() -> bool {
    system::view_self().is_ok_and(|seen| seen.stat.has_terminal)
}
