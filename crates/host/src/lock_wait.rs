//! Waiting for a file's lock, with or without a limit.
//!
//! The kernel serves blocked waiters in order of arrival but has no deadline, so a bounded wait blocks in its
//! own thread. A wait that was given up cannot be cancelled: its thread stays in the kernel's queue, gets the
//! lock when its turn comes, and releases it at once. Within this process that moment must not look like a
//! holder, so abandoned waiters are kept here until they are through: [`Passing::is_the_holder`] recognises a
//! lock held by one of them. In another process such a moment is like any other short section.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::ignore::Ignore;

use crate::system;

/// Whether others may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    Exclusive,
    /// Together with other shared holders.
    Shared,
}

/// Identifies a file: device and inode.
pub(crate) type FileId = (u64, u64);

static GIVEN_UP: Mutex<Vec<Arc<Waiter>>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Waiter {
    file: File,
    id: FileId,
    /// Set when its turn has come, before the lock is released again.
    came: AtomicBool,
}

/// Blocks until the lock is acquired.
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

/// Blocks for at most `limit`; `None` if the wait was given up.
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
            // Recorded before the receiver is dropped, so the thread cannot finish before it is known here.
            given_up().push(waiter);
            drop(receive);
            Ok(None)
        }
    }
}

fn pass(waiter: &Arc<Waiter>) {
    waiter.came.store(true, Ordering::SeqCst);
    waiter
        .file
        .unlock()
        .ignore("closing it with the last handle releases it as well");
    given_up().retain(|one| !Arc::ptr_eq(one, waiter));
}

fn given_up() -> MutexGuard<'static, Vec<Arc<Waiter>>> {
    GIVEN_UP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Abandoned waiters of this process on one lock that are not through yet. Taken before a lock is tried.
pub(crate) struct Passing(Vec<Arc<Waiter>>);

impl Passing {
    /// Those still in this file's queue.
    pub(crate) fn of(id: FileId) -> Self {
        let waiters = given_up();
        let same = waiters.iter().filter(|waiter| waiter.id == id);
        Self(same.cloned().collect())
    }

    /// Whether the holder met by the attempt that followed was one of them, which releases the lock in a
    /// moment.
    pub(crate) fn is_the_holder(&self) -> bool {
        let held_or_passed = |waiter: &Arc<Waiter>| {
            holds(waiter.file.as_raw_fd()) || waiter.came.load(Ordering::SeqCst)
        };
        self.0.iter().any(held_or_passed)
    }
}

/// Whether this descriptor itself has the lock, according to the kernel.
fn holds(descriptor: i32) -> bool {
    system::own_descriptor(descriptor).is_some_and(|found| found.holds_lock)
}
