//! Why a process, or all of them, cannot be inspected. Leaf module: every module here may use it.

use std::io;

/// Nothing is concluded from what could not be seen.
#[derive(Debug, thiserror::Error)]
pub enum Unseen {
    #[error("/proc shows a different pid namespace")]
    ForeignProc,
    #[error("/proc cannot be listed: {0}")]
    Unlisted(io::Error),
    #[error("cannot read process {pid}: {why}")]
    Unreadable { pid: u32, why: String },
    /// Another process has its pid now.
    #[error("process {pid} was replaced during the check")]
    Replaced { pid: u32 },
    /// The kernel answers neither question.
    #[error("pidfd_open: {pidfd}; kill: {kill}")]
    NoAnswer { pidfd: io::Error, kill: io::Error },
}
