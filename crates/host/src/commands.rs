//! The commands that an agent runs now: children of its process that lead a process session of their own.
//!
//! Agents start a person's commands apart from their own terminal. Their hooks, servers and helpers stay in their own
//! process session. What cannot be read is not counted: no answer says only that nothing was seen.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tenure_core::process::{Process, RunState};

use crate::env::Environment;
use crate::stat::View;
use crate::{read, seat, system};

/// How many threads and children are looked at.
const MOST: usize = 512;

/// The longest list of children that is read.
const LONGEST: u64 = 64 * 1024;

/// Which conversation a command belongs to: the variable that has its id.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    pub variable: &'a str,
    pub id: &'a str,
    /// Whether the process has other conversations too, so that a command without the variable may be theirs.
    pub shared: bool,
}

/// For how long the newest command of a process has been running.
pub fn newest(above: &Process, of: Of<'_>) -> Option<Duration> {
    let own_session = seat::present(above)?.stat.session;
    let ages = children(above.pid).into_iter().filter_map(|pid| {
        let View::Present(seen) = system::view(pid) else {
            return None;
        };
        let is_apart = seen.stat.session == pid && own_session != pid;
        let runs = seen.stat.parent == above.pid && seen.stat.state != RunState::Zombie;
        (is_apart && runs && of.has(pid)).then(|| age(seen.stat.start))
    });
    let newest = ages.min();
    // Only then did all of it belong to this process.
    seat::present(above)?;
    newest
}

impl Of<'_> {
    fn has(self, pid: u32) -> bool {
        let named = Environment::of(pid).and_then(|all| all.var(self.variable));
        match named {
            Some(id) => id == self.id,
            None => !self.shared,
        }
    }
}

/// The children of all threads: each is listed with the thread that started it.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs_err::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten().take(MOST);
    let lists = tasks.filter_map(|task| read::start(&task.path().join("children"), LONGEST).ok());
    let mut found: Vec<u32> = Vec::new();
    for list in lists {
        let text = String::from_utf8_lossy(&list).into_owned();
        found.extend(
            text.split_ascii_whitespace()
                .filter_map(|word| word.parse::<u32>().ok()),
        );
    }
    found.truncate(MOST);
    found
}

/// How long ago that start was: both are as this process's own time namespace shows them.
fn age(ticks: u64) -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let start = Duration::from_millis(ticks.saturating_mul(1_000) / per_second);
    Duration::new(seconds, nanos).saturating_sub(start)
}
