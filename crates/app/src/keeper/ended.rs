//! Ends that agents report while the store does not answer.
//!
//! A session has no event after its end, so nothing would say it again: its process would be found dead, and the session
//! would be listed as cut off. So the event goes into the spool, and the process that drains it records the end as the hook would have.

use std::io;

use tenure_core::agent_event::Happening;
use tenure_core::world::World;
use tenure_host::machine::Machine;
use tenure_service::AgentEvent;

use super::files::KeeperFiles;
use super::memory::KeeperMemory;
use super::spool::SpoolLine;

/// Whether an event says that its session has ended.
pub fn is_end(event: &AgentEvent) -> bool {
    let ends = matches!(
        event.what,
        Happening::End {
            ends_worker: true,
            ..
        }
    );
    ends && event.subagent.is_none()
}

/// Spools the end of a session; returns whether it is one, and is known well enough to be recorded later.
pub fn spool_end(files: &KeeperFiles, machine: &Machine, event: &AgentEvent) -> io::Result<bool> {
    if !is_end(event) {
        return Ok(false);
    }
    let boot = &machine.observer().boot;
    let known =
        KeeperMemory::read(&files.memory(), boot).and_then(|memory| memory.session_of(event));
    // A conversation alone may be in another process by then.
    if known.is_none() && event.process.is_none() {
        return Ok(false);
    }
    files.make()?;
    let name = machine.random().map(|byte| format!("{byte:02x}")).concat();
    files
        .spool()
        .add(SpoolLine::ended(known, event, boot), name)?;
    Ok(true)
}
