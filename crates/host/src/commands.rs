//! The commands that an agent runs now: children of its process that lead their own process session.
//!
//! Agents start a person's commands detached from their own terminal. Their hooks, servers and helpers stay in
//! the agent's process session. Unreadable processes are skipped: no answer means only that nothing was found.

use std::time::Duration;

use tenure_core::process::{Process, RunState};

use crate::env::Environment;
use crate::system::view::View;
use crate::{process_terminal, system};

/// How many threads and children are read at most.
const MAX_COUNT: usize = 512;

/// Which conversation a command belongs to: the variable that has its id.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    pub variable: &'a str,
    pub id: &'a str,
    /// Whether the process has other conversations too, so that a command without the variable may be theirs.
    pub shared: bool,
}

/// How long the newest command of a process has been running.
pub fn newest(above: &Process, of: Of<'_>) -> Option<Duration> {
    let own_session = process_terminal::present(above)?.stat.session;
    let ages = system::children(above.pid, MAX_COUNT)
        .into_iter()
        .filter_map(|pid| {
            let View::Present(seen) = system::view(pid) else {
                return None;
            };
            let is_apart = seen.stat.session == pid && own_session != pid;
            let runs = seen.stat.parent == above.pid && seen.stat.state != RunState::Zombie;
            (is_apart && runs && of.has(pid)).then(|| age(seen.stat.start))?
        });
    let newest = ages.min();
    // Checked last: only now is it certain that everything read belonged to this process.
    process_terminal::present(above)?;
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

/// How long ago a process started. Both times are in this process's own time namespace.
fn age(ticks: u64) -> Option<Duration> {
    Some(system::since_boot()?.saturating_sub(system::after_boot(ticks)))
}
