//! Agents that were started and have not registered yet.
//!
//! Between the start of an agent and its first event, nothing in the store shows that it is alive.
//! Its command line does: it names the conversation that it was started on.

use std::time::Duration;

use tenure_core::agent;
use tenure_core::world::World;
use tenure_host::{clock, pause, process, running};
use tenure_service::answer::Problem;
use tenure_service::view::SessionView;

use crate::open::Context;
use crate::unmanaged;

/// A running agent that is not a session.
#[derive(Debug, Clone)]
pub struct Starting {
    pub agent: &'static str,
    pub pid: u32,
    /// Its working directory.
    pub dir: Option<String>,
    /// Its command line.
    pub words: Vec<String>,
}

/// All of them, even if the settings hide agents without hooks.
pub fn all(context: &mut Context) -> Result<Vec<Starting>, Problem> {
    let found = running::agents(context.machine().observer());
    let unmanaged = unmanaged::of(context, found)?;
    Ok(unmanaged
        .map(|running| Starting {
            agent: running.agent,
            pid: running.process.process.pid,
            dir: running.dir,
            words: running.process.looks.argv,
        })
        .collect())
}

/// Marks each cut-off session whose agent has been started again and has not registered yet. The
/// processes of this machine are read only if a session was cut off.
pub fn mark<'a>(
    context: &mut Context,
    sessions: impl Iterator<Item = &'a mut SessionView>,
) -> Result<Vec<u32>, Problem> {
    let mut cut_off: Vec<&mut SessionView> = sessions
        .filter(|session| session.resume.is_some())
        .collect();
    if cut_off.is_empty() {
        return Ok(Vec::new());
    }
    let starting = all(context)?;
    let mut pids = Vec::new();
    for session in &mut cut_off {
        let Some(pid) = in_conversation(&starting, session) else {
            continue;
        };
        pids.push(pid);
        if let Some(left) = &mut session.resume {
            left.command = None;
            left.starting = Some(pid);
        }
    }
    Ok(pids)
}

/// The process that was started on a session's conversation and has not registered yet.
pub fn in_conversation(starting: &[Starting], session: &SessionView) -> Option<u32> {
    let native_id = session.native_id.as_deref()?;
    let is_it = |one: &&Starting| {
        one.agent == session.agent
            && one.dir.as_deref() == Some(session.dir.as_str())
            && one.words.iter().any(|word| word == native_id)
    };
    starting.iter().find(is_it).map(|one| one.pid)
}

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
