//! Waiting for a file's lock, also for a while only.
//!
//! The kernel serves blocked waiters in order of arrival but knows no deadline, so a bounded wait blocks in
//! a thread of its own. A wait that was given up cannot be called back: its thread still stands in the
//! kernel's queue, gets the lock when its turn comes, and drops it at once. Within this process that
//! moment must not look like somebody who holds the lock, so those who gave up are kept here until they have
//! passed: [`Passing::is_the_holder`] tells a lock that is held by one of them. In another process such a
//! moment is like any other short section.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who else may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    Exclusive,
    /// Others that share it too.
    Shared,
}

/// Which file it is: device and inode.
pub(crate) type FileId = (u64, u64);

static GIVEN_UP: Mutex<Vec<Arc<Waiter>>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Waiter {
    file: File,
    id: FileId,
    /// Set when its turn came, before the lock is dropped again.
    came: AtomicBool,
}

/// Blocks until the lock is had.
pub(crate) fn block(file: &File, sharing: Sharing) -> io::Result<()> {
    loop {
        let done = match sharing {
            Sharing::Exclusive => file.lock(),
            Sharing::Shared => file.lock_shared(),
        };
        match done {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Blocks for at most `limit`; `None` when the wait was given up.
pub(crate) fn block_within(
    file: File,
    id: FileId,
    sharing: Sharing,
    limit: Duration,
) -> io::Result<Option<File>> {
    let waiter = Arc::new(Waiter {
        file,
        id,
        came: AtomicBool::new(false),
    });
    let (send, receive) = sync_channel(0);
    let thread = {
        let waiter = Arc::clone(&waiter);
        move || {
            let outcome = block(&waiter.file, sharing);
            if send.send(outcome).is_err() {
                pass(&waiter);
            }
        }
    };
    std::thread::Builder::new()
        .name("lock".into())
        .spawn(thread)?;
    match receive.recv_timeout(limit) {
        Ok(outcome) => outcome.and_then(|()| waiter.file.try_clone().map(Some)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            // Kept before the receiver goes: the thread cannot pass before it is known here.
            given_up().push(waiter);
            drop(receive);
            Ok(None)
        }
    }
}

fn pass(waiter: &Arc<Waiter>) {
    waiter.came.store(true, Ordering::SeqCst);
    if waiter.file.unlock().is_err() {
        // Closing it with the last handle frees it as well.
    }
    given_up().retain(|one| !Arc::ptr_eq(one, waiter));
}

fn given_up() -> MutexGuard<'static, Vec<Arc<Waiter>>> {
    GIVEN_UP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Those of this process who gave up on one lock and have not passed. Taken before a lock is tried.
pub(crate) struct Passing(Vec<Arc<Waiter>>);

impl Passing {
    /// Those who still stand in this file's queue.
    pub(crate) fn of(id: FileId) -> Self {
        let waiters = given_up();
        let same = waiters.iter().filter(|waiter| waiter.id == id);
        Self(same.cloned().collect())
    }

    /// Whether what was met at the try that came after was one of them, who will be gone in a moment.
    pub(crate) fn is_the_holder(&self) -> bool {
        let held_or_passed = |waiter: &Arc<Waiter>| {
            holds(waiter.file.as_raw_fd()) || waiter.came.load(Ordering::SeqCst)
        };
        self.0.iter().any(held_or_passed)
    }
}

/// Whether this very descriptor has the lock, as the kernel tells it.
fn holds(descriptor: i32) -> bool {
    fs_err::read_to_string(format!("/proc/self/fdinfo/{descriptor}"))
        .is_ok_and(|text| says_that_it_holds(&text))
}

/// Whether the text of a descriptor's `fdinfo` shows a lock that it has.
pub(crate) fn says_that_it_holds(text: &str) -> bool {
    text.lines()
        .any(|line| line.starts_with("lock:") && line.contains("FLOCK"))
}
