//! A process pinned by a pidfd, so that it is never confused with a later one with the same pid.
//!
//! The descriptor is checked against the recorded start after it was opened. If they differ, or the
//! process no longer exists, the recorded one is gone, and every method reports that.
//!
//! A process in a pid namespace below the test's has one pid there and another one here. What it is
//! called there identifies it to its own worker; signals and /proc use the pid here.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::protocol::Started;

#[derive(Debug)]
pub struct Pinned {
    started: Started,
    /// The same process by its pid in this test's namespace.
    here: Started,
    /// None if it was already gone.
    fd: Option<OwnedFd>,
}

impl Pinned {
    /// Holds the process that was started.
    pub fn open(started: Started) -> io::Result<Pinned> {
        let pid = i32::try_from(started.pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other(format!("{} is no pid", started.pid)))?;
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => Stat::read(started.pid)
                .is_some_and(|stat| stat.start == started.start)
                .then_some(fd),
            Err(Errno::SRCH) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Pinned {
            started,
            here: started,
            fd,
        })
    }

    /// The same for a process that is named as in a pid namespace below this one.
    pub fn open_in(space: &PidSpace, started: Started) -> io::Result<Pinned> {
        let Some(pid) = space.pid_here(started.pid) else {
            return Ok(Pinned {
                started,
                here: started,
                fd: None,
            });
        };
        let here = Started { pid, ..started };
        Ok(Pinned {
            started,
            ..Self::open(here)?
        })
    }

    /// What it is called in its own pid namespace.
    pub fn started(&self) -> Started {
        self.started
    }

    /// What it is called in the pid namespace of this test.
    pub fn here(&self) -> Started {
        self.here
    }

    /// Its descriptor, unless it was gone from the start.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Sends a signal; false if the process is gone.
    pub fn signal(&self, signal: Signal) -> bool {
        self.fd
            .as_ref()
            .is_some_and(|fd| pidfd_send_signal(fd, signal).is_ok())
    }

    /// Whether it has exited with all its threads; it may still be a zombie.
    pub fn is_gone(&self) -> bool {
        self.wait_gone(Duration::ZERO)
    }

    /// Waits for it to exit; false on timeout.
    pub fn wait_gone(&self, patience: Duration) -> bool {
        let Some(fd) = &self.fd else { return true };
        ready(&[fd.as_fd()], patience).is_some()
    }
}

/// A pid namespace below the one of this test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PidSpace(PathBuf);

impl PidSpace {
    /// The namespace of a process here.
    pub fn of(pid: u32) -> Option<PidSpace> {
        std::fs::read_link(format!("/proc/{pid}/ns/pid"))
            .ok()
            .map(PidSpace)
    }

    /// The pid here of a process that has this one there; `None` if there is none.
    pub fn pid_here(&self, there: u32) -> Option<u32> {
        let all = std::fs::read_dir("/proc").ok()?.flatten();
        let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(|pid| pid_within(*pid) == Some(there) && Self::of(*pid).as_ref() == Some(self))
    }
}

/// The pid that a process has in its own namespace.
fn pid_within(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let all = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    all.split_whitespace().next_back()?.parse().ok()
}

/// Waits for one of the descriptors to become readable; `None` on timeout.
pub fn ready(fds: &[BorrowedFd<'_>], patience: Duration) -> Option<usize> {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let span = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut polled: Vec<_> = fds
            .iter()
            .map(|fd| PollFd::new(fd, PollFlags::IN))
            .collect();
        match poll(&mut polled, Some(&span)) {
            Ok(_) => return polled.iter().position(|fd| !fd.revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// The fields of /proc/PID/stat that tests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub state: char,
    pub parent: u32,
    pub session: u32,
    /// The controlling terminal; 0 for none.
    pub terminal: i64,
    /// When it started, in clock ticks.
    pub start: u64,
}

impl Stat {
    /// Reads it; `None` if there is no such process.
    pub fn read(pid: u32) -> Option<Stat> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may contain anything, including parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            terminal: fields.get(4)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether a process runs. One that ended may stay in /proc until its parent reaps it, and some parents
    /// never do: tmux misses the end of a window's program while it runs its helper for utmp.
    pub fn runs(pid: u32) -> bool {
        Stat::read(pid).is_some_and(|stat| stat.state != 'Z')
    }
}
