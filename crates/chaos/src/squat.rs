//! Gives the number of a process that is gone to a thread of ours, so that the number is taken and yet no
//! process leads under it.
//!
//! The kernel counts up from `ns_last_pid`, which is set to just below the wanted number first. That changes
//! which numbers everybody in the pid namespace gets, so it is done only in a namespace of the run's own.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Where the kernel says, and takes, which number was given last.
const LAST: &str = "/proc/sys/kernel/ns_last_pid";
/// Others take numbers too, so the wanted one may be gone.
const TRIES: usize = 4;

/// A thread that has a number of our choice, until it is dropped or its time is over.
#[derive(Debug)]
pub struct Squatter {
    _stays: Sender<()>,
}

/// Takes a number for a while; none where it could not be had.
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

/// The thread: tells whether it got the number, and keeps it.
fn occupy(number: u32, tell: &Sender<bool>, ended: &Receiver<()>, length: Duration) {
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let is_it = u32::try_from(own) == Ok(number);
    let is_received = tell.send(is_it).is_ok();
    if is_it && is_received {
        let (Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) =
            ended.recv_timeout(length);
    }
}
