//! A command that gets each event as JSON on stdin: one process at a time, in order.
//!
//! What comes while a hundred events wait is counted and handed over as one digest. A command that hangs holds up only
//! its own events; the watch goes on, and its end ends the command, if need be by SIGKILL.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tenure_core::time::Timestamp;

use super::channel::stdin_with;
use super::event::Notification;

/// How many events wait before the rest becomes a digest.
pub const MAX_WAITING: usize = 100;
/// How long a command may go on after SIGTERM.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// The events that wait for the command.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Notification>,
    /// How many came after that, by reason, and when the last one did.
    beyond: Option<(BTreeMap<String, usize>, Timestamp)>,
    is_over: bool,
    running: Option<Pid>,
}

impl Queue {
    fn push(&mut self, event: Notification) {
        if self.beyond.is_none() && self.waiting.len() < MAX_WAITING {
            return self.waiting.push_back(event);
        }
        let (counts, at) = self
            .beyond
            .get_or_insert_with(|| (BTreeMap::new(), event.at));
        *counts.entry(event.event).or_default() += 1;
        *at = event.at;
    }

    fn pop(&mut self) -> Option<Notification> {
        let next = self.waiting.pop_front();
        next.or_else(|| {
            let (counts, at) = self.beyond.take()?;
            Some(Notification::digest(counts, at))
        })
    }

    /// How many events were not handed over.
    fn left(&self) -> usize {
        let beyond = self.beyond.iter().flat_map(|(counts, _)| counts.values());
        self.waiting.len() + beyond.sum::<usize>()
    }
}

type SharedQueue = Arc<(Mutex<Queue>, Condvar)>;

/// The command, and what waits for it.
pub struct Handler {
    shared: SharedQueue,
    thread: Option<JoinHandle<()>>,
}

impl Handler {
    /// `warn` says what went wrong with one event; the next one gets a process of its own.
    pub fn start(command: String, warn: fn(&str)) -> Self {
        let shared = SharedQueue::default();
        let own = Arc::clone(&shared);
        Self {
            shared,
            thread: Some(std::thread::spawn(move || run_all(&own, &command, warn))),
        }
    }

    pub fn push(&self, event: Notification) {
        lock(&self.shared).push(event);
        self.shared.1.notify_one();
    }

    /// Ends the command that runs; returns how many events it did not get.
    pub fn end(mut self) -> usize {
        let mut queue = lock(&self.shared);
        queue.is_over = true;
        let left = queue.left();
        signal(queue.running, Signal::TERM);
        self.shared.1.notify_all();
        let runs = |queue: &mut Queue| queue.running.is_some();
        let waited = (self.shared.1).wait_timeout_while(queue, ENDS_WITHIN, runs);
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        signal(queue.running, Signal::KILL);
        drop(queue);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            // It has reported its own panic.
        }
        left
    }
}

fn lock(shared: &SharedQueue) -> MutexGuard<'_, Queue> {
    // A thread that panicked left a queue that is still one.
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn signal(running: Option<Pid>, signal: Signal) {
    if let Some(group) = running
        && kill_process_group(group, signal).is_err()
    {
        // It has ended by itself.
    }
}

fn run_all(shared: &SharedQueue, command: &str, warn: fn(&str)) {
    while let Some(event) = next(shared) {
        let about = event.headline();
        match run(shared, command, &event) {
            Ok(status) if status.success() || lock(shared).is_over => {}
            Ok(status) => warn(&format!("warning: the command failed ({status}): {about}")),
            Err(error) => warn(&format!(
                "warning: the command did not start ({error}): {about}"
            )),
        }
    }
}

/// Waits for the next event; none at the end.
fn next(shared: &SharedQueue) -> Option<Notification> {
    let mut queue = lock(shared);
    loop {
        if queue.is_over {
            return None;
        }
        if let Some(event) = queue.pop() {
            return Some(event);
        }
        queue = (shared.1.wait(queue)).unwrap_or_else(PoisonError::into_inner);
    }
}

fn run(shared: &SharedQueue, command: &str, event: &Notification) -> std::io::Result<ExitStatus> {
    let mut child = {
        let mut queue = lock(shared);
        let child = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(stdin_with(&format!("{}\n", event.json()))?)
            .process_group(0)
            .spawn()?;
        queue.running = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if queue.is_over {
            signal(queue.running, Signal::TERM);
        }
        child
    };
    let status = child.wait();
    lock(shared).running = None;
    shared.1.notify_all();
    status
}

#[cfg(test)]
mod tests {
    use tenure_host::{clock, pause};

    use super::*;

    fn event(at: i64) -> Notification {
        let reason = if at % 2 == 0 { "died" } else { "done" };
        Notification::new(reason, Timestamp(at), None)
    }

    #[test]
    fn the_end_of_a_watch_ends_a_command_that_ignores_sigterm_and_reads_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let ready = dir.path().join("ready");
        let line = format!("trap '' TERM; : >{}; sleep 600", ready.display());
        let handler = Handler::start(line, |_| {});
        handler.push(event(1));
        handler.push(event(2));
        let began = clock::instant();
        while !ready.exists() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "it does not start"
            );
            pause::sleep(Duration::from_millis(1));
        }
        assert_eq!(handler.end(), 1);
        assert!(began.elapsed() >= ENDS_WITHIN);
    }

    #[test]
    fn a_hundred_events_wait_in_order_and_the_rest_is_one_digest() {
        let mut queue = Queue::default();
        (0..110).for_each(|at| queue.push(event(at)));
        assert_eq!(queue.left(), 110);
        for at in 0..100 {
            assert_eq!(queue.pop().unwrap().at, Timestamp(at));
            // Nothing overtakes the digest.
            queue.push(event(200));
        }
        let digest = queue.pop().unwrap();
        assert_eq!(digest.event, "digest");
        assert_eq!(digest.counts["died"], 5 + 100);
        assert_eq!(digest.counts["done"], 5);
        assert_eq!((queue.pop(), queue.left()), (None, 0));
        queue.push(event(3));
        assert_eq!(queue.pop(), Some(event(3)));
    }
}
