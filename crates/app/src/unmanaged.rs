//! Agents that run without hooks: found in the process table and in the agents' own registries.

use std::path::Path;

use serde::Serialize;
use tenure_agents::FirstEvent;
use tenure_core::agent;
use tenure_core::process::{Ancestor, Process};
use tenure_core::world::World;
use tenure_host::git;
use tenure_host::running::{self, AgentProcess};
use tenure_service::ListRequest;
use tenure_service::answer::Problem;

use crate::background;
use crate::hooked::Hooks;
use crate::open::Context;
pub use crate::witness::registry::entry_of as registered;

/// A running agent that is not a session.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Unmanaged {
    pub agent: &'static str,
    pub pid: u32,
    /// Its working directory.
    pub dir: Option<String>,
    /// Its conversation, if the agent itself reports it.
    pub native_id: Option<String>,
    /// `busy`, `waiting` or `idle`, if the agent itself reports it.
    pub activity: Option<String>,
    /// The state of tenure's hooks in its settings.
    pub hooks: Hooks,
    /// Whether its hooks first run at its first prompt, so that nothing is wrong before that.
    #[serde(skip)]
    #[schemars(skip)]
    pub speaks_later: bool,
    /// Why it is not a session.
    pub why: String,
}

/// Whether the settings allow searching for them.
pub fn are_looked_for(context: &Context) -> bool {
    context.settings.unmanaged
}

/// All of them, unless the settings hide them.
pub fn shown(context: &mut Context) -> Result<Vec<Unmanaged>, Problem> {
    if are_looked_for(context) {
        find(context)
    } else {
        Ok(Vec::new())
    }
}

/// Those in the requested place, without the agents that this command runs in.
pub fn beside(context: &mut Context, asked: &ListRequest) -> Result<Vec<Unmanaged>, Problem> {
    let mut found = shown(context)?;
    found.retain(|agent| works_there(agent, asked) && !context.runs_in(agent.pid));
    Ok(found)
}

fn works_there(agent: &Unmanaged, asked: &ListRequest) -> bool {
    let Some(dir) = agent.dir.as_deref().map(Path::new) else {
        return false;
    };
    match (&asked.repo, &asked.under) {
        (Some(repo), _) => git::worktree(dir).is_some_and(|found| found.repo() == *repo),
        (None, Some(under)) => dir.starts_with(under),
        (None, None) => true,
    }
}

/// All of them, lowest pid first.
fn find(context: &mut Context) -> Result<Vec<Unmanaged>, Problem> {
    let mut found = running::agents(context.machine().observer());
    found.retain(|running| !waits_for_work(running.agent, &running.process));
    let unmanaged = of(context, found)?;
    Ok(unmanaged.map(|running| describe(&running)).collect())
}

/// Those that are not a session.
pub(crate) fn of(
    context: &mut Context,
    found: Vec<AgentProcess>,
) -> Result<impl Iterator<Item = AgentProcess> + use<>, Problem> {
    let processes: Vec<Process> = found
        .iter()
        .map(|running| running.process.process.clone())
        .collect();
    let is_unmanaged = context.service().unmanaged(&processes)?.value;
    let judged = found.into_iter().zip(is_unmanaged);
    Ok(judged.filter_map(|(running, is_unmanaged)| is_unmanaged.then_some(running)))
}

/// Whether a process was started in advance and has no work yet. Its arguments do not change, so the agent's own
/// registry decides.
pub fn waits_for_work(agent: &str, process: &Ancestor) -> bool {
    let spec = agent::AGENTS.iter().find(|spec| spec.name == agent);
    if !spec.is_some_and(|spec| agent::is_spare(spec, &process.looks)) {
        return false;
    }
    let job = tenure_agents::adapter(agent)
        .and_then(|adapter| background::job(adapter, &process.process));
    job.is_none_or(|job| job.waits_for_work)
}

fn describe(running: &AgentProcess) -> Unmanaged {
    let adapter = tenure_agents::adapter(running.agent);
    let known = adapter.and_then(|adapter| registered(adapter, &running.process.process));
    let hooks = Hooks::of(adapter, running);
    let first_event = adapter.map(|adapter| adapter.first_event);
    let (native_id, activity) = match known {
        Some(entry) => (
            entry.native_id,
            entry.doing.map(|doing| doing.as_str().to_owned()),
        ),
        None => (None, None),
    };
    Unmanaged {
        agent: running.agent,
        pid: running.process.process.pid,
        dir: running.dir.clone(),
        native_id: native_id.map(|id| id.to_string()),
        activity,
        hooks,
        speaks_later: first_event == Some(FirstEvent::Prompt),
        why: hooks.why(running.agent, first_event),
    }
}
