//! A timer that ends this process, for the time before it is worth a thread ([`crate::watchdog`]).
//!
//! The kernel sends SIGALRM when the time is over, and the handler ends the process with 0 and without a word. That needs
//! no thread, no lock and no memory, so it works whatever the process waits for. *Crash*: nothing is kept. *Clock jump*:
//! only the monotonic clock counts. *Not covered*: a call that blocks in the kernel and cannot be interrupted (a dead disk).

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{SigEvent, SigSet, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;

/// Ends this process when its time is over, unless it is stopped before.
#[derive(Debug)]
pub struct ExitTimer {
    armed: Arc<AtomicBool>,
    /// Not deleted: it goes with the process.
    _timer: Option<ManuallyDrop<Timer>>,
}

impl ExitTimer {
    /// If there can be no timer, the process goes on without: its own limits still hold.
    pub fn start(after: Duration) -> Self {
        let armed = Arc::new(AtomicBool::new(true));
        let timer = timer(after, &armed).map(ManuallyDrop::new);
        Self {
            armed,
            _timer: timer,
        }
    }

    /// From now on something else ends this process.
    pub fn stop(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }
}

fn timer(after: Duration, armed: &Arc<AtomicBool>) -> Option<Timer> {
    let signal = Signal::SIGALRM;
    let armed = Arc::clone(armed);
    signal_hook::flag::register_conditional_shutdown(signal as i32, 0, armed).ok()?;
    // Whoever started this process may have blocked it.
    let mut alarm = SigSet::empty();
    alarm.add(signal);
    alarm.thread_unblock().ok()?;
    let notify = SigevNotify::SigevSignal {
        signal,
        si_value: 0,
    };
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify)).ok()?;
    let once = Expiration::OneShot(after.into());
    timer.set(once, TimerSetTimeFlags::empty()).ok()?;
    Some(timer)
}
