//! A timer that ends this process, for the time before it is worth a thread ([`crate::watchdog`]).
//!
//! The kernel sends SIGALRM when the time is over, and the handler ends the process with 0 and without a word. That needs
//! no thread, no lock and no memory, so it works whatever the process waits for. *Crash*: nothing is kept. *Clock jump*:
//! only the monotonic clock counts. *Not covered*: a call that blocks in the kernel and cannot be interrupted (a dead disk).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};

use crate::system::{self, Alarm};

/// Ends this process when its time is over, unless it is stopped before.
#[derive(Debug)]
pub struct ExitTimer {
    armed: Arc<AtomicBool>,
    _alarm: Option<Alarm>,
}

impl ExitTimer {
    /// If there can be no timer, the process goes on without: its own limits still hold.
    pub fn start(after: Duration) -> Self {
        let armed = Arc::new(AtomicBool::new(true));
        let alarm = alarm(after, &armed);
        Self {
            armed,
            _alarm: alarm,
        }
    }

    /// From now on something else ends this process.
    pub fn stop(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }
}

fn alarm(after: Duration, armed: &Arc<AtomicBool>) -> Option<Alarm> {
    let signal = Signal::SIGALRM;
    let armed = Arc::clone(armed);
    signal_hook::flag::register_conditional_shutdown(signal as i32, 0, armed).ok()?;
    // The parent may have blocked it.
    let mut blocked = SigSet::empty();
    blocked.add(signal);
    blocked.thread_unblock().ok()?;
    system::alarm(signal, after)
}
