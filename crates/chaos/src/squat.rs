//! Gives the pid of a process that is gone to a thread of ours, so that the number is taken but
//! belongs to no process.
//!
//! The kernel counts up from `ns_last_pid`, which is first set to just below the wanted number.
//! That changes the pids of everything in the pid namespace, so it is done only in a namespace of
//! the run's own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Shows and sets the pid that the kernel assigned last.
const LAST: &str = "/proc/sys/kernel/ns_last_pid";
/// Other processes take pids too, so the wanted one may be gone.
const TRIES: usize = 4;

/// A thread with a pid of our choice, until it is dropped or its time is up.
#[derive(Debug)]
pub struct Squatter {
    _stays: Sender<()>,
}

/// Takes a pid for a while; `None` if that failed.
pub fn squat(number: u32, length: Duration) -> Option<Squatter> {
    (0..TRIES).find_map(|_| try_squat(number, length))
}

fn try_squat(number: u32, length: Duration) -> Option<Squatter> {
    let below = number.checked_sub(1)?;
    std::fs::write(LAST, below.to_string()).ok()?;
    let (tell, told) = channel();
    let (stays, ended) = channel();
    let named = std::thread::Builder::new().spawn(move || occupy(number, &tell, &ended, length));
    drop(named.ok()?);
    told.recv().ok()?.then_some(Squatter { _stays: stays })
}

/// The thread: reports whether it got the pid, and keeps it.
fn occupy(number: u32, tell: &Sender<bool>, ended: &Receiver<()>, length: Duration) {
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let is_it = u32::try_from(own) == Ok(number);
    let is_received = tell.send(is_it).is_ok();
    if is_it && is_received {
        let (Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) =
            ended.recv_timeout(length);
    }
}
