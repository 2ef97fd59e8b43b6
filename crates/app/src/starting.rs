//! Agents that were just started.

use std::time::Duration;

use tenure_core::agent;
use tenure_host::{clock, pause, process};

/// Waits until a process that was just started has become an agent, so that the next search finds
/// it.
pub fn await_program(pid: u32, limit: Duration) {
    let until = clock::instant() + limit;
    while clock::instant() < until && !is_agent_or_gone(pid) {
        pause::sleep(Duration::from_millis(10));
    }
}

fn is_agent_or_gone(pid: u32) -> bool {
    let looks = process::looks(pid);
    looks.exe.is_empty() || agent::recognise(&looks).is_some()
}
