//! Waiting for something to happen: a change of the store's files, the exit of a process, a signal.
//!
//! One poll on descriptors and no timer, so waiting costs nothing while nothing happens. A file change is only
//! a hint: it is visible before the commit that it belongs to, and the waiter must check for itself. If a store
//! has no files, or the kernel cannot watch files, every wait is shortened, and its end means nothing about the store.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};

use tenure_core::store::StoreWatch;

use crate::pidfd::ProcessWatch;
use crate::system::{FileChanges, listen};

/// How long a wait lasts if files cannot be watched.
const UNWATCHED: Duration = Duration::from_millis(25);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeCause {
    /// Files changed, so the store may have.
    Change,
    /// Something else that is watched changed.
    Beside,
    Exit,
    /// A signal arrived.
    Signal(i32),
    Timeout,
}

#[derive(Debug)]
pub struct Watch {
    changes: Option<OwnedFd>,
    /// Other watched directories.
    beside: Option<(Vec<PathBuf>, OwnedFd)>,
    /// The longest wait, if changes do not end it.
    every: Option<Duration>,
    signals: Option<&'static Signals>,
    /// Somebody who wakes it up.
    caller: Option<UnixStream>,
    with_reader: bool,
}

/// The signals of this process, for whichever watch waits: one that arrives between two waits is not lost.
#[derive(Debug)]
struct Signals {
    wake: UnixStream,
    came: Vec<(i32, Arc<AtomicBool>)>,
}

static SIGNALS: Mutex<Option<&'static Signals>> = Mutex::new(None);

/// From now on the signals that end a program only wake it up: the watch that catches signals then, or the next one.
pub fn catch_signals() -> io::Result<()> {
    Signals::of_process().map(drop)
}

impl Signals {
    fn of_process() -> io::Result<&'static Self> {
        let mut known = SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signals) = *known {
            return Ok(signals);
        }
        let (wake, ring) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let mut came = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(signal, ring.try_clone()?)?;
            came.push((signal, flag));
        }
        let signals = Box::leak(Box::new(Self { wake, came }));
        *known = Some(signals);
        Ok(signals)
    }
}

impl Watch {
    /// Watches a store.
    pub fn on(store: &StoreWatch) -> Self {
        let mut watch = Self {
            every: Some(UNWATCHED),
            ..Self::on_nothing()
        };
        watch.turn_to(store);
        watch
    }

    /// Switches to another way of watching the store; returns whether only relevant changes wake it, because
    /// relevant commits write to a wake file. On failure it keeps watching as before.
    pub fn turn_to(&mut self, store: &StoreWatch) -> bool {
        let (dir, wake_files) = match store {
            StoreWatch::Files { dir, only } => (dir, only.as_deref()),
            StoreWatch::Poll { every } => {
                (self.changes, self.every) = (None, Some(*every));
                return false;
            }
        };
        let of_dir = match wake_files {
            Some(_) => FileChanges::Entries,
            None => FileChanges::EntriesAndWrites,
        };
        let wake_files_too = wake_files.unwrap_or_default().iter();
        let watched: Vec<_> = std::iter::once((dir.as_path(), of_dir))
            .chain(wake_files_too.map(|file| (file.as_path(), FileChanges::Writes)))
            .collect();
        let Ok(fd) = listen(&watched) else {
            return false;
        };
        (self.changes, self.every) = (Some(fd), None);
        wake_files.is_some()
    }

    /// Switches to a connection over which somebody says when to check.
    pub fn turn_to_caller(&mut self, caller: UnixStream) -> io::Result<()> {
        caller.set_nonblocking(true)?;
        (self.changes, self.every) = (Some(caller.into()), None);
        Ok(())
    }

    /// Watches no store, only processes and signals.
    pub fn on_nothing() -> Self {
        Self {
            changes: None,
            beside: None,
            every: None,
            signals: None,
            caller: None,
            with_reader: false,
        }
    }

    /// Also wakes when a file in one of these directories changes; returns whether that works.
    pub fn turn_beside(&mut self, dirs: &[PathBuf]) -> bool {
        if self.beside.as_ref().is_some_and(|(known, _)| known == dirs) {
            return true;
        }
        let changes = FileChanges::EntriesAndWrites;
        let watched: Vec<_> = dirs.iter().map(|dir| (dir.as_path(), changes)).collect();
        self.beside = if watched.is_empty() {
            None
        } else {
            listen(&watched).ok().map(|fd| (dirs.to_vec(), fd))
        };
        self.beside.is_some()
    }

    /// From now on the signals that end a program only wake it up.
    pub fn catch_signals(&mut self) -> io::Result<()> {
        self.signals = Some(Signals::of_process()?);
        Ok(())
    }

    /// From now on what this stream receives wakes it up.
    pub fn wake_by(&mut self, caller: UnixStream) -> io::Result<()> {
        caller.set_nonblocking(true)?;
        self.caller = Some(caller);
        Ok(())
    }

    /// From now on a closed standard output counts as SIGPIPE.
    pub fn end_with_reader(&mut self) {
        self.with_reader = true;
    }

    /// Waits for the first thing that happens, for at most this long.
    pub fn wait(
        &self,
        processes: &[ProcessWatch],
        at_most: Option<Duration>,
    ) -> io::Result<WakeCause> {
        if let Some(signal) = self.signal() {
            return Ok(WakeCause::Signal(signal));
        }
        let limit = at_most.into_iter().chain(self.every).min();
        let mut fds: Vec<BorrowedFd<'_>> = processes.iter().map(AsFd::as_fd).collect();
        let process_count = fds.len();
        fds.extend(self.beside.as_ref().map(|(_, fd)| fd.as_fd()));
        fds.extend(self.changes.as_ref().map(AsFd::as_fd));
        fds.extend(self.signals.as_ref().map(|signals| signals.wake.as_fd()));
        let caller_at = fds.len();
        fds.extend(self.caller.as_ref().map(AsFd::as_fd));
        let mut polled: Vec<PollFd<'_>> = fds
            .iter()
            .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
            .collect();
        let output = io::stdout();
        if self.with_reader {
            // With no events requested, the kernel reports only errors: that the other end is closed.
            polled.push(PollFd::new(&output, PollFlags::empty()));
        }
        let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Ok(WakeCause::Timeout),
            Ok(_) => {}
            Err(Errno::INTR) => {
                return Ok(self.signal().map_or(WakeCause::Change, WakeCause::Signal));
            }
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        if let Some(signal) = self.signal() {
            return Ok(WakeCause::Signal(signal));
        }
        if self.with_reader && ready.last() == Some(&true) {
            return Ok(WakeCause::Signal(SIGPIPE));
        }
        if ready[..process_count].contains(&true) {
            return Ok(WakeCause::Exit);
        }
        if let Some((_, fd)) = &self.beside
            && ready[process_count]
        {
            drain(fd);
            return Ok(WakeCause::Beside);
        }
        if let Some(caller) = &self.caller
            && ready[caller_at]
        {
            drain(caller);
            return Ok(WakeCause::Beside);
        }
        if let Some(fd) = &self.changes {
            drain(fd);
        }
        Ok(WakeCause::Change)
    }

    /// A signal that arrived and was not reported yet.
    fn signal(&self) -> Option<i32> {
        let signals = self.signals?;
        let found = signals
            .came
            .iter()
            .find(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        if found.is_some() {
            let mut bytes = [0; 64];
            while (&signals.wake)
                .read(&mut bytes)
                .is_ok_and(|count| count > 0)
            {}
        }
        found.map(|(signal, _)| *signal)
    }
}

/// All pending changes are one event, however many files they touched.
fn drain(fd: impl AsFd + Copy) {
    let mut bytes = [0; 4096];
    while rustix::io::read(fd, &mut bytes).is_ok_and(|count| count > 0) {}
}
