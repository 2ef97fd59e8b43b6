//! Watching one recorded process until it exits, without polling; and ending it.
//!
//! A watch covers only the recorded process: after the descriptor is open, the start is read again, and a pid
//! that was reused in between is not watched. A watch reports only that the process exited; whether that is a
//! death is judged as usual. It does not survive a crash, which closes the descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use tenure_core::process::{Process, Sighting};

use crate::{boot, process, system};

/// A process that can be watched.
#[derive(Debug)]
pub struct ProcessWatch {
    fd: OwnedFd,
}

#[derive(Debug, Default)]
pub struct ProcessWatches {
    pub open: Vec<ProcessWatch>,
    /// Whether one of the others is already gone, so nothing will ever wake its watcher.
    pub some_gone: bool,
}

impl ProcessWatches {
    /// Starts watching all of these.
    pub fn on<'a>(recorded: impl IntoIterator<Item = &'a Process>) -> Self {
        let mut watches = Self::default();
        for process in recorded {
            match ProcessWatch::open(process) {
                Some(watch) => watches.open.push(watch),
                None => watches.some_gone |= is_gone(process),
            }
        }
        watches
    }
}

/// Whether a visible process is gone.
pub fn is_gone(recorded: &Process) -> bool {
    is_in_sight(recorded)
        && match process::look(recorded.pid) {
            Sighting::Absent | Sighting::Thread { .. } => true,
            Sighting::Present { start, .. } => !start.same_start(recorded.start),
            Sighting::Unreadable(_) => false,
        }
}

fn is_in_sight(recorded: &Process) -> bool {
    boot::proc_is_own()
        && boot::pid_namespace().is_ok_and(|namespace| namespace == recorded.pid_ns)
        && boot::boot_id().is_ok_and(|boot| boot == recorded.boot)
}

impl ProcessWatch {
    /// Starts watching; `None` if it is gone, or cannot be watched from here.
    ///
    /// On `None`, the caller must check the process: only that distinguishes gone from unwatchable.
    pub fn open(recorded: &Process) -> Option<ProcessWatch> {
        if !is_in_sight(recorded) {
            return None;
        }
        let fd = system::open_pidfd(recorded.pid)?;
        match process::look(recorded.pid) {
            Sighting::Present { start, .. } if start.same_start(recorded.start) => {
                Some(ProcessWatch { fd })
            }
            _ => None,
        }
    }

    /// Starts watching the parent of this process; `None` if it is gone, or cannot be watched from here.
    pub fn parent() -> Option<ProcessWatch> {
        let parent = rustix::process::getppid()?;
        let fd = system::open_pidfd(parent.as_raw_nonzero().get().unsigned_abs())?;
        // If it was gone before, this process has another parent now.
        (rustix::process::getppid() == Some(parent)).then_some(ProcessWatch { fd })
    }

    /// Waits for at most `timeout` and returns whether the process has exited, with all its threads.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        // A timeout too long to represent never expires.
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let span = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
            match poll(&mut fds, span.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends it a signal, and never another process: the descriptor refers to this one only.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        system::signal_pidfd(self.fd.as_fd(), signal)
    }
}

impl AsFd for ProcessWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
