//! The differences between operating systems, behind one set of functions.
//!
//! Everything that reads /proc, or asks what only one kernel answers, is in the module of its system. The rest of tenure
//! calls the functions here and has no word of any system. They are functions, not a trait: one system is compiled, and
//! nothing is chosen while it runs. `tests/system.rs` holds for every system that has them all; docs/windows.md and
//! docs/decisions/0062 say what each other system needs.
//!
//! - *Boot and clocks*: [`boot_id`], [`pid_namespace`], [`proc_is_own`] (whether processes can be inspected at all),
//!   [`steady_millis`], [`boot_millis`], [`since_boot`], [`after_boot`].
//! - *One process*: [`view()`], [`view_self`], [`effective_uid`], [`real_uid`], [`owner`], [`executable`], [`looks`],
//!   [`working_dir`], [`environment`], [`descriptor`], [`has_socket`], [`children`], [`limit`].
//! - *All processes*: [`pids`], [`writers`], [`listening_socket`].
//! - *Its exit*: [`open_pidfd`], [`signal_pidfd`], [`end_with_parent`], [`alarm()`].
//! - *Locks*: [`locks`], [`locks_of_files_named`], [`holders_of_files_named`], [`locked_inodes`], [`readers_of_log`].
//! - *This process*: [`own_descriptors`], [`own_descriptor`], [`file_of`], [`file_id`], [`path_through`],
//!   [`own_working_dir`], [`hide_memory`].
//! - *Files and sockets*: [`listen`], [`unnamed_file`], [`reserve`], [`give_back`], [`filesystem_magic`], [`TO_BE_NAMED`],
//!   [`local_socket`], [`peer`], [`fill_random`].
//!
//! No answer is a guess. What a system cannot tell is an error, an empty answer that its reader takes for "unknown", or
//! [`View::Unreadable`](view::View): nothing but [`View::Absent`](view::View) and a thread may prove a death.
//!
//! Linux is the tested system. Elsewhere every process is unreadable and the boot id proves nothing, so sessions depend on
//! their leases alone: less is known, but nothing is wrong.

pub mod view;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use other::*;

/// What is watched of a file or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChanges {
    /// What appears and disappears in a directory, and its own removal.
    Entries,
    /// The same, and what is written to the files in it.
    EntriesAndWrites,
    /// What is written to a file.
    Writes,
}

/// Device and inode, in the form in which the kernel's locks name them.
pub type InodeId = (u32, u32, u64);

/// The lock of a whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockEntry {
    pub held: bool,
    /// The processes that took it.
    pub pids: Vec<u32>,
    pub waiting: usize,
}

/// A process that reads a database now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReader {
    pub pid: u32,
    /// Its name, if readable.
    pub name: String,
}

/// Who is on the other side of a local connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    pub uid: u32,
    pub pid: u32,
}

/// What the kernel reports about an open descriptor of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnDescriptor {
    /// Whether the lock of its file is held through it.
    pub holds_lock: bool,
    /// Whether programs that this process starts do not get it; none if unknown.
    pub closes_on_exec: Option<bool>,
}
