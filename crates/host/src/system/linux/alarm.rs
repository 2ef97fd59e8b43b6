//! A signal to this process when a time is over.

use std::mem::ManuallyDrop;
use std::time::Duration;

use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;

/// Not deleted: it goes with the process.
#[derive(Debug)]
pub struct Alarm {
    _timer: ManuallyDrop<Timer>,
}

/// None if there can be no timer.
pub fn alarm(signal: Signal, after: Duration) -> Option<Alarm> {
    let notify = SigevNotify::SigevSignal {
        signal,
        si_value: 0,
    };
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify)).ok()?;
    let once = Expiration::OneShot(after.into());
    timer.set(once, TimerSetTimeFlags::empty()).ok()?;
    Some(Alarm {
        _timer: ManuallyDrop::new(timer),
    })
}
