//! How much the machine itself holds up the processes of a run.
//!
//! A thread sleeps for ten milliseconds at a time and writes down when it woke up much later: its processor was taken
//! away, or too busy. What a checker allows for waiting grows with that, up to a limit, and the report says how much it was.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::{Log, monotonic};

/// The log of a run's stalls.
pub const STALLS: &str = "stalls.log";

const BEAT: Duration = Duration::from_millis(10);
/// How late a thread may be on a machine that does not stall, in nanoseconds.
const PUNCTUAL: u64 = 50_000_000;

/// The pulse was due at `from` and came at `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    pub from: u64,
    pub until: u64,
}

/// The stalls of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stalls {
    pub count: u64,
    pub together: Duration,
}

/// The thread, until it is ended or dropped.
#[derive(Debug)]
pub struct Pulse {
    stays: Sender<()>,
    thread: JoinHandle<io::Result<Stalls>>,
}

impl Pulse {
    pub fn begin(dir: &Path) -> io::Result<Pulse> {
        let log = Log::open(&dir.join(STALLS))?;
        let (stays, ended) = channel();
        let thread = std::thread::Builder::new().spawn(move || beat(log, &ended))?;
        Ok(Pulse { stays, thread })
    }

    pub fn end(self) -> io::Result<Stalls> {
        drop(self.stays);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the pulse panicked")))
    }
}

fn beat(mut log: Log, ended: &Receiver<()>) -> io::Result<Stalls> {
    let mut stalls = Stalls::default();
    loop {
        let due = monotonic() + u64::try_from(BEAT.as_nanos()).unwrap_or(u64::MAX);
        let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(BEAT) else {
            return Ok(stalls);
        };
        let stall = Stall {
            from: due,
            until: monotonic(),
        };
        let late = stall.until.saturating_sub(stall.from);
        if late > PUNCTUAL {
            log.write(&stall)?;
            stalls.count += 1;
            stalls.together += Duration::from_nanos(late);
        }
    }
}
