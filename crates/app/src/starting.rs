//! Agents that were started and have not said yet who they are.
//!
//! Between the start of an agent and its first event nothing in the store says that it lives. Its command line
//! does: it names the conversation that it was started on.

use std::time::Duration;

use tenure_core::agent;
use tenure_core::process::Process;
use tenure_core::world::World;
use tenure_host::{clock, pause, process, running};
use tenure_service::answer::Problem;

use crate::open::Opened;

/// An agent that runs and is no session.
#[derive(Debug, Clone)]
pub struct Starting {
    pub agent: &'static str,
    pub pid: u32,
    /// Where it works.
    pub dir: Option<String>,
    /// How it was called.
    pub words: Vec<String>,
}

/// All of them, whether or not people want to be shown agents without hooks.
pub fn all(opened: &mut Opened) -> Result<Vec<Starting>, Problem> {
    let found = running::agents(opened.machine().observer());
    let processes: Vec<Process> = found
        .iter()
        .map(|running| running.process.process.clone())
        .collect();
    let strange = opened.service().strangers(&processes)?.value;
    let strangers = found
        .into_iter()
        .zip(strange)
        .filter(|(_, strange)| *strange);
    Ok(strangers
        .map(|(running, _)| Starting {
            agent: running.agent,
            pid: running.process.process.pid,
            dir: running.dir,
            words: running.process.looks.argv,
        })
        .collect())
}

/// Waits until a process that was just started has become an agent, so that the next look finds it.
pub fn await_program(pid: u32, limit: Duration) {
    let until = clock::instant() + limit;
    while clock::instant() < until && !is_agent_or_gone(pid) {
        pause::for_a_while(Duration::from_millis(10));
    }
}

fn is_agent_or_gone(pid: u32) -> bool {
    let looks = process::looks(pid);
    looks.exe.is_empty() || agent::recognise(&looks).is_some()
}
