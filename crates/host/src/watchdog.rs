//! A process that must answer and exit in time, whatever its own code waits for.
//!
//! A thread waits for the deadline, which counts from the start of the process. It shares only atomics and write-once cells with the code that it watches.
//! When the time is over it takes the right to answer, and from then on the main thread cannot answer any more.
//! A second thread then makes the best answer that it can; it may use files, memory and locks, and block on
//! them. If it does, the first thread writes the prepared answer, if there is one, and ends the process. The
//! first thread makes three system calls: poll, write and exit. It takes no lock, allocates nothing, runs no
//! destructor and no exit handler.
//!
//! Invariant: exactly one of main thread, second thread and first thread answers.
//!
//! *Crash*: nothing is kept. *Clock jump*: only the monotonic clock counts. *Not covered*: a thread that blocks
//! in the kernel and cannot be killed (a dead disk) keeps its process; the answer is written before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;

/// No answer yet.
const OPEN: u8 = 0;
/// The main thread answers.
const MAIN: u8 = 1;
/// The time is over, and the second thread makes an answer.
const LATE: u8 = 2;
/// The second thread answers.
const SECOND: u8 = 3;
/// The first thread answers.
const FIRST: u8 = 4;

/// Most watched processes exit before this; the others can afford a second thread.
const SLOW: Duration = Duration::from_millis(20);
/// What a pipe accepts in one piece, without blocking if it is ready at all.
const PIECE: usize = 4096;
const STACK: usize = 128 << 10;

/// How long a process may take, from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Until then the main thread may answer.
    pub answer: Duration,
    /// Then the process exits.
    pub end: Duration,
}

/// The output when the time is over.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Late {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Watches this process until it exits.
#[derive(Debug)]
pub struct Watchdog {
    shared: Arc<WatchdogState>,
    watcher: Option<Thread>,
}

#[derive(Debug)]
struct WatchdogState {
    began: Instant,
    limits: Deadlines,
    turn: AtomicU8,
    /// The process goes on without it.
    is_done: AtomicBool,
    prepared: OnceLock<Vec<u8>>,
}

impl Watchdog {
    /// Starts watching a process that began then. `late` makes the answer when the time is over, on its own thread.
    ///
    /// If no thread can be created, the process continues unwatched: its own limits still hold.
    pub fn start(
        began: Instant,
        limits: Deadlines,
        late: impl FnOnce() -> Late + Send + 'static,
    ) -> Watchdog {
        let shared = Arc::new(WatchdogState {
            began,
            limits,
            turn: AtomicU8::new(OPEN),
            is_done: AtomicBool::new(false),
            prepared: OnceLock::new(),
        });
        let watched = Arc::clone(&shared);
        let first = thread::Builder::new().stack_size(STACK);
        let first = first.spawn(move || watch(&watched, late));
        Watchdog {
            shared,
            watcher: first.ok().map(|handle| handle.thread().clone()),
        }
    }

    /// Stops watching, for a process that answered and goes on. Whether it was in time: if not, the process is being
    /// ended.
    pub fn stop(&self) -> bool {
        if !self.take_answer() {
            return false;
        }
        self.shared.is_done.store(true, Ordering::Release);
        if let Some(watcher) = &self.watcher {
            watcher.unpark();
        }
        true
    }

    /// Sets the fallback answer; the first one counts.
    pub fn prepare(&self, answer: Vec<u8>) {
        drop(self.shared.prepared.set(answer));
    }

    pub fn prepared(&self) -> Option<&[u8]> {
        self.shared.prepared.get().map(Vec::as_slice)
    }

    /// Whether the main thread may answer. If not, the time is over and the process is being ended.
    pub fn take_answer(&self) -> bool {
        let turn = &self.shared.turn;
        let taken = turn.compare_exchange(OPEN, MAIN, Ordering::AcqRel, Ordering::Acquire);
        matches!(taken, Ok(_) | Err(MAIN))
    }

    /// Whether the main thread has the right to answer and has not answered yet.
    pub fn take_first(&self) -> bool {
        let turn = &self.shared.turn;
        let taken = turn.compare_exchange(OPEN, MAIN, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok()
    }

    /// Waits for the end of this process, for a main thread that may no longer answer.
    pub fn await_end(&self) -> ! {
        loop {
            thread::park();
        }
    }
}

impl WatchdogState {
    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    fn left(&self, limit: Duration) -> Duration {
        limit.saturating_sub(self.began.elapsed())
    }

    fn take(&self, from: u8, to: u8) -> bool {
        let turn = &self.turn;
        turn.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

fn watch(shared: &Arc<WatchdogState>, late: impl FnOnce() -> Late + Send + 'static) {
    let slow = SLOW.saturating_sub(shared.began.elapsed());
    thread::park_timeout(slow);
    if shared.is_done() {
        return;
    }
    let second = second_thread(shared, late);
    while !shared.left(shared.limits.answer).is_zero() && !shared.is_done() {
        thread::park_timeout(shared.left(shared.limits.answer));
    }
    if shared.is_done() {
        return second.iter().for_each(Thread::unpark);
    }
    if shared.take(OPEN, LATE)
        && let Some(second) = &second
    {
        second.unpark();
    }
    // A main thread that took the right to answer may finish, and a second thread may make an answer.
    while !shared.left(shared.limits.end).is_zero() && !shared.is_done() {
        thread::park_timeout(shared.left(shared.limits.end));
    }
    if shared.is_done() {
        return second.iter().for_each(Thread::unpark);
    }
    if shared.take(LATE, FIRST)
        && let Some(answer) = shared.prepared.get()
    {
        write_at_once(rustix::stdio::stdout(), answer);
    }
    signal_hook::low_level::exit(0);
}

/// Created before the time is over, because creating a thread may block.
fn second_thread(
    shared: &Arc<WatchdogState>,
    late: impl FnOnce() -> Late + Send + 'static,
) -> Option<Thread> {
    let shared = Arc::clone(shared);
    let second = thread::Builder::new().spawn(move || {
        while shared.turn.load(Ordering::Acquire) != LATE {
            if shared.is_done() {
                return;
            }
            thread::park();
        }
        let Ok(said) = catch_unwind(AssertUnwindSafe(late)) else {
            return;
        };
        if shared.take(LATE, SECOND) {
            write_at_once(rustix::stdio::stdout(), &said.stdout);
            write_at_once(rustix::stdio::stderr(), &said.stderr);
            signal_hook::low_level::exit(0);
        }
    });
    second.ok().map(|handle| handle.thread().clone())
}

/// Writes as much as possible without waiting for a reader.
fn write_at_once(to: BorrowedFd<'_>, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut ready = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let can_be_written =
            poll(&mut ready, Some(&now)) == Ok(1) && ready[0].revents().contains(PollFlags::OUT);
        if !can_be_written {
            return;
        }
        match rustix::io::write(to, &rest[..rest.len().min(PIECE)]) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_full_pipe_takes_what_fits_and_holds_nobody_up() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let much = vec![b'x'; 1 << 20];
        write_at_once(writer.as_fd(), &much);
        // It returned although the pipe is full and no one reads.
        let mut some = [0; 16];
        assert_eq!(rustix::io::read(&reader, &mut some), Ok(16));
        assert_eq!(some, [b'x'; 16]);
    }

    #[test]
    fn a_process_that_answered_goes_on() {
        let limits = Deadlines {
            answer: Duration::from_millis(20),
            end: Duration::from_millis(40),
        };
        let dogs: Vec<Watchdog> = (0..8)
            .map(|_| {
                let dog = Watchdog::start(Instant::now(), limits, Late::default);
                assert!(dog.stop());
                dog
            })
            .collect();
        let left = |dog: &Watchdog| Arc::strong_count(&dog.shared) > 1;
        let until = Instant::now() + Duration::from_secs(10);
        while dogs.iter().any(left) {
            assert!(Instant::now() < until, "every thread of it ends");
            thread::yield_now();
        }
    }

    #[test]
    fn the_first_answer_is_the_only_one() {
        let limits = Deadlines {
            answer: Duration::from_secs(3600),
            end: Duration::from_secs(3600),
        };
        let dog = Watchdog::start(Instant::now(), limits, Late::default);
        assert!(dog.take_answer());
        assert!(dog.take_answer(), "it has it");
        assert!(!dog.shared.take(OPEN, LATE));
        let other = Watchdog::start(Instant::now(), limits, Late::default);
        assert!(other.shared.take(OPEN, LATE));
        assert!(!other.take_answer());
    }
}
