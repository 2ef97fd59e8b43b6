//! Processes as recorded and as observed.
//!
//! A pid alone identifies nothing: it is reused, and it means something else in another pid namespace, on
//! another boot, on another machine. [`Process`] has all five coordinates. What an observer can see is separate
//! ([`Sighting`], [`Ancestor`]), so that judging is a pure function.

use serde::{Deserialize, Serialize};

use crate::id::HostId;
use crate::repository::Repository;

/// A boot of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootId {
    /// The kernel's random id for this boot.
    pub id: String,
    /// Whether a container mounted over it, so that it does not identify the kernel.
    pub private: bool,
}

/// When a process started, in clock ticks since boot, with any time namespace's offset removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StartTicks {
    pub ticks: u64,
    /// Whether an offset was removed; rounding then costs up to one tick.
    pub shifted: bool,
}

impl StartTicks {
    /// No process started before this.
    pub const EARLIEST: StartTicks = StartTicks {
        ticks: 0,
        shifted: false,
    };

    /// Whether both are the start of the same process.
    pub fn same_start(self, other: StartTicks) -> bool {
        let slack = u64::from(self.shifted || other.shifted);
        self.ticks.abs_diff(other.ticks) <= slack
    }
}

/// One process life, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    pub host: HostId,
    pub boot: BootId,
    /// The inode of the pid namespace in which `pid` counts.
    pub pid_ns: u64,
    pub pid: u32,
    pub start: StartTicks,
}

impl Process {
    /// Whether both records mean the same process.
    pub fn same_as(&self, other: &Process) -> bool {
        self.host == other.host
            && self.boot == other.boot
            && self.pid_ns == other.pid_ns
            && self.pid == other.pid
            && self.start.same_start(other.start)
    }
}

/// The state of a process, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Running, sleeping, waiting for a disk: anything that is neither of the others.
    Going,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Its main thread has exited and has not been reaped.
    Zombie,
}

/// What an observer found for a pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// The kernel reports no such process.
    Absent,
    Present {
        start: StartTicks,
        state: RunState,
        threads: u32,
    },
    /// The number is a thread's now, so no process has it.
    Thread {
        /// The process that the thread belongs to.
        of: u32,
    },
    /// It could not be inspected, for this reason.
    Unreadable(String),
}

/// Who observes, and what it can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observer {
    pub host: HostId,
    pub boot: BootId,
    pub pid_ns: u64,
    /// Whether /proc shows the observer's own namespace.
    pub proc_is_own: bool,
    /// Whether the store is shared by several machines.
    pub shared_store: bool,
}

/// The appearance of a process. It decides what the process is, never whether it is alive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Looks {
    /// The path of its executable; empty if unreadable.
    pub exe: String,
    pub argv: Vec<String>,
    /// The kernel's short name for it.
    pub comm: String,
}

/// One ancestor of the caller, or the caller itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ancestor {
    /// The process, if its start could be read.
    pub process: Process,
    pub looks: Looks,
    /// Whether it leads a process session with a controlling terminal.
    pub leads_terminal: bool,
    /// Whether it was forked and runs the same executable as its parent: a part of the same program.
    pub forked: bool,
}

/// What the host observed of the caller, before any transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerFacts {
    pub observer: Observer,
    /// The caller, its parent, and so on; incomplete if something could not be read.
    pub chain: Vec<Ancestor>,
    /// Why the chain is incomplete, if it is.
    pub chain_broken: Option<String>,
    /// Whether the caller has a controlling terminal.
    pub has_terminal: bool,
    /// Whether a person is there: stdin and stderr are a terminal.
    pub at_terminal: bool,
    /// TENURE_SESSION from the environment.
    pub session_variable: Option<String>,
    /// The agents' own id variables that are set: agent, variable and value.
    pub native_variables: Vec<NativeVariable>,
    /// The caller's working directory, absolute; empty if it no longer exists.
    pub dir: String,
    pub repository: Option<Repository>,
}

/// An agent's own id variable, as found in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeVariable {
    pub agent: &'static str,
    pub name: &'static str,
    pub value: String,
}

/// How to recognise the processes that a session left running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signs {
    /// TENURE_SESSION of each of the lives that ended.
    pub tokens: Vec<String>,
    /// The agent's own id variable and the conversations that it named.
    pub natives: Vec<(&'static str, String)>,
    /// The processes of these lives; what they left running is not older than the first of them.
    pub leaders: Vec<Leader>,
}

/// A process that may have led a process session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    pub pid: u32,
    pub start: StartTicks,
}

impl Leader {
    pub fn of(process: &Process) -> Self {
        Self {
            pid: process.pid,
            start: process.start,
        }
    }

    /// Whether it may have started a process with this start.
    pub fn is_older_than(self, start: StartTicks) -> bool {
        start.ticks + u64::from(start.shifted) >= self.start.ticks
    }
}

impl Signs {
    /// Whether a process with this start may have been left running.
    pub fn may_be_of(&self, start: StartTicks) -> bool {
        let mut leaders = self.leaders.iter();
        leaders.any(|leader| leader.is_older_than(start))
    }
}

/// What a dead session left running.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survivors {
    /// Processes that still run and may still write.
    pub found: Vec<Survivor>,
    /// Why this list may be incomplete, if so.
    pub doubt: Option<String>,
}

/// A process that outlived its session.
#[derive(
    Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Survivor {
    pub pid: u32,
    /// Its command line, shortened.
    pub command: String,
}

/// Processes that were started with a variable of a run, wherever they are now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Carriers {
    pub found: Vec<Carrier>,
    /// Why it is not certain that these are all, if it is not.
    pub doubt: Option<String>,
}

/// A process that carries a variable of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carrier {
    pub process: Process,
    /// Its command line, cut short.
    pub command: String,
    /// The processes above it.
    pub above: Vec<Process>,
}

#[cfg(test)]
impl Process {
    pub(crate) fn sample(pid: u32) -> Self {
        let boot = BootId {
            id: "b".into(),
            private: false,
        };
        let start = StartTicks {
            ticks: 1,
            shifted: false,
        };
        let host = HostId::new("h");
        Self {
            host,
            boot,
            pid_ns: 1,
            pid,
            start,
        }
    }
}
