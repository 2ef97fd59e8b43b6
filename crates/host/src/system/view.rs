//! What a look at one process yields, whichever system it is.

use tenure_core::process::{RunState, StartTicks};

/// What a kernel reports about one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The kernel's short name for it; invalid bytes are replaced.
    pub comm: String,
    pub state: RunState,
    /// The pid of its parent; 0 if that is outside the namespace.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// The process session that it belongs to.
    pub session: u32,
    pub has_terminal: bool,
    /// Its controlling terminal by device number; 0 if it has none.
    pub terminal: u64,
    /// The process group in the foreground of that terminal; 0 if there is none.
    pub foreground: u32,
    /// Whether it was forked and has executed nothing since.
    pub forked: bool,
    pub threads: u32,
    /// Its start in ticks, as shown to this observer.
    pub start: u64,
}

/// An observed process, with its start made comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    pub stat: Stat,
    /// Its start without the time namespace's offset.
    pub start: StartTicks,
}

/// The result of looking up a pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// The kernel reports none.
    Absent,
    Present(ProcessStat),
    /// The number is a thread's now, so no process has it.
    Thread {
        /// The process that the thread belongs to.
        of: u32,
    },
    /// It could not be read, for this reason.
    Unreadable(String),
}
