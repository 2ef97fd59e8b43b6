//! Which sessions a list shows, and which agents beside them are not registered: once, for `tenure ps`, `tenure top` and
//! the HTTP API.

use tenure_app::open::Context;
use tenure_app::unmanaged::{self, Unmanaged};
use tenure_host::git;
use tenure_service::answer::Problem;
use tenure_service::view::SessionView;
use tenure_service::{Answer, ListRequest, Listed};

use crate::standing::shows;

/// The sessions, and the agents that are not registered.
pub type SessionList = (Answer<Listed<SessionView>>, Vec<Unmanaged>);

/// Which sessions are listed; all if nothing is set.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// In one of these states.
    pub states: Vec<String>,
    pub agent: Option<String>,
    /// In this repository, as the list names it.
    pub repo: Option<String>,
}

impl SessionFilter {
    pub fn is_empty(&self) -> bool {
        self.states.is_empty() && self.agent.is_none() && self.repo.is_none()
    }

    fn wants_ended(&self) -> bool {
        let is_over = |state: &String| state == "ended" || state == "dead";
        self.states.iter().any(is_over)
    }

    fn keeps(&self, session: &SessionView) -> bool {
        let is_in_state = |state: &String| shows(session, state);
        (self.states.is_empty() || self.states.iter().any(is_in_state))
            && self.agent.as_ref().is_none_or(|one| *one == session.agent)
            && (self.repo.is_none() || self.repo == session.repo)
    }

    /// What an agent without hooks does is not known to be one of the states.
    fn keeps_unmanaged(&self, agent: &Unmanaged) -> bool {
        let is_there = |repo: &String| {
            let worktree = agent
                .dir
                .as_ref()
                .and_then(|dir| git::worktree(dir.as_ref()));
            worktree.is_some_and(|found| found.repo() == *repo)
        };
        self.states.is_empty()
            && self.agent.as_ref().is_none_or(|one| one == agent.agent)
            && self.repo.as_ref().is_none_or(is_there)
    }
}

/// Lists what is asked for. An agent that is about to be registered is not listed twice.
pub fn list(context: &mut Context, request: &ListRequest) -> Result<SessionList, Problem> {
    let answer = context.service().list(request)?;
    let sessions = answer.value.items.iter();
    let starting: Vec<u32> = sessions.filter_map(SessionView::starting).collect();
    let mut unmanaged = unmanaged::shown(context)?;
    unmanaged.retain(|agent| !starting.contains(&agent.pid));
    Ok((answer, unmanaged))
}

/// The same, of those that the filter keeps.
pub fn find(
    context: &mut Context,
    filter: &SessionFilter,
    request: ListRequest,
) -> Result<SessionList, Problem> {
    if filter.is_empty() {
        return list(context, &request);
    }
    let most = request.limit;
    let request = ListRequest {
        closed_too: request.closed_too || filter.wants_ended(),
        limit: 0,
        ..request
    };
    let (mut answer, mut unmanaged) = list(context, &request)?;
    let listed = &mut answer.value;
    listed.items.retain(|one| filter.keeps(one));
    if most > 0 {
        listed.more = listed.items.len().saturating_sub(most);
        listed.items.truncate(most);
    }
    unmanaged.retain(|agent| filter.keeps_unmanaged(agent));
    Ok((answer, unmanaged))
}
