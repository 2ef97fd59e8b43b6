//! Sessions whose agent was started again and has sent no event yet.
//!
//! Some agents report nothing before a person types in them. Their command line names the conversation that they were
//! started on, so the session is alive, although its record is still closed. It registers with its first event.

use crate::caller::present::{is_among, open_at};
use crate::context::{Ctx, Stop};
use crate::evidence::Want;
use crate::session::view::SessionView;
use tenure_core::agent;
use tenure_core::id::{AgentName, NativeId, SessionId};
use tenure_core::present::is_run_by;
use tenure_core::process::Process;
use tenure_core::session::{Doing, Session, State};
use tenure_core::store::SessionFilter;
use tenure_core::world::RunningAgent;

impl Ctx<'_> {
    /// The process that was started on the conversation of a session that is over, if there is one.
    pub fn starting(&mut self, session: &Session) -> Result<Option<Process>, Stop> {
        if session.is_open() || !self.evidence.has_witness() {
            return Ok(None);
        }
        let resumes = agent::spec_of(&session.agent).is_some_and(|spec| spec.resumes);
        let Some(native_id) = session.native_id.as_ref().filter(|_| resumes) else {
            return Ok(None);
        };
        let is_it = |one: &&RunningAgent| {
            session.agent.as_str() == one.agent
                && one.dir.as_deref() == Some(session.workdir.dir.as_str())
                && names(one, native_id)
        };
        let found = self.running_agents()?.iter().find(is_it);
        let Some(process) = found.map(|one| one.process.process.clone()) else {
            return Ok(None);
        };
        // The person who ended the session knew its process, which may go on running.
        if is_run_by(session, &process) {
            return Ok(None);
        }
        let owner = self.tx.native_owner(&session.agent, native_id)?;
        let open = open_at(self, std::iter::once(&process))?;
        Ok((owner == Some(session.id) && !is_among(&open, &process)).then_some(process))
    }

    /// All of them that a filter fits, without those that are known.
    pub fn starting_sessions(
        &mut self,
        filter: &SessionFilter,
        known: &[Session],
    ) -> Result<Vec<Session>, Stop> {
        if !self.evidence.has_witness() {
            return Ok(Vec::new());
        }
        let mut found: Vec<Session> = Vec::new();
        for one in self.running_agents()?.to_vec() {
            let words = one.process.looks.argv.iter().skip(1);
            let Some(spec) = agent::AGENTS.iter().find(|spec| spec.name == one.agent) else {
                continue;
            };
            let agent = AgentName::known(spec.name);
            for native_id in words.filter_map(|word| NativeId::parse(word).ok()) {
                let Some(owner) = self.tx.native_owner(&agent, &native_id)? else {
                    continue;
                };
                let is_known = |id: SessionId| known.iter().chain(&found).any(|one| one.id == id);
                if is_known(owner) {
                    continue;
                }
                let session = self.session(owner)?;
                if fits(filter, &session) && self.starting(&session)?.is_some() {
                    found.push(session);
                }
            }
        }
        Ok(found)
    }

    fn running_agents(&self) -> Result<&[RunningAgent], Stop> {
        self.evidence.agents().ok_or(Stop::Look(Want::Agents))
    }
}

/// Whether a process was started on this conversation.
fn names(one: &RunningAgent, native_id: &NativeId) -> bool {
    let words = &one.process.looks.argv;
    words.iter().any(|word| word == native_id.as_str())
}

fn fits(filter: &SessionFilter, session: &Session) -> bool {
    let place = &session.workdir;
    let in_repo = filter.repo.is_none() || filter.repo == place.repo;
    let under = filter.under.as_deref().map(|dir| dir.trim_end_matches('/'));
    let is_under = under.is_none_or(|dir| {
        let below = place.dir.strip_prefix(dir);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    in_repo && is_under
}

/// Shows a session that is over as one that is starting.
pub fn show_as_starting(view: &mut SessionView, process: &Process) {
    let pid = process.pid;
    view.state = State::Live.as_str();
    view.why = format!("pid {pid} was started on its conversation and has sent no event yet");
    view.activity = Some(Doing::Starting.as_str());
    (view.activity_since, view.activity_by) = (None, None);
    (view.activity_why, view.activity_until, view.asks) = (None, None, None);
    view.finished = false;
    view.process.pid = Some(pid);
    view.process.start_ticks = Some(process.start.ticks);
    (view.ended_at, view.end_reason, view.end_kind) = (None, None, None);
}
