//! A glance for an agent that frequently draws a line about its own session.

use std::time::Instant;

use tenure_core::id::AgentName;
use tenure_core::program::ProgramProcess;
use tenure_service::answer::Problem;
use tenure_service::{Glance, Glancer};

use crate::hook_store::HookStore;
use crate::own_process::{self, HookCaller};

/// What the agent that sent this event should see; none if nothing is known about it.
pub fn of_agent(agent: &str, event: &[u8], until: Instant) -> Result<Option<Glance>, Problem> {
    let Some(adapter) = tenure_agents::adapter(agent) else {
        return Ok(None);
    };
    let report = adapter.read(event);
    let Some(mut store) = HookStore::prepare_existing(until)? else {
        return Ok(None);
    };
    let process = match own_process::find(adapter, store.machine(), report.pid) {
        HookCaller::Agent(found) => Some(found.process),
        HookCaller::Program(program) => match program.find(|_| false) {
            ProgramProcess::Process(found) => Some(found.process.clone()),
            ProgramProcess::Unclear(_) => None,
        },
        HookCaller::NotFound => None,
        HookCaller::Another => return Ok(None),
    };
    let who = Glancer {
        agent: AgentName::parse(adapter.name).ok(),
        process,
        native_id: report.native_id,
    };
    Ok(store.open()?.glance(&who)?.value)
}
