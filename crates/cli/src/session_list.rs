//! The list of sessions and of agents that are not registered: which of them are wanted, and as one object.

use clap::builder::PossibleValuesParser;
use serde_json::{Map, json};
use tenure_app::open::Context;
use tenure_app::unmanaged::{self, Unmanaged};
use tenure_host::git;
use tenure_service::view::SessionView;
use tenure_service::{Answer, ListRequest, Listed, PAGE};

use crate::app::App;
use crate::long_list::LongList;
use crate::output::{CliError, Outcome};
use crate::standing::{STATES, shows};
use crate::tree;

/// How many sessions people are shown by default.
pub const MAX_SHOWN: usize = 200;

/// Which sessions are listed.
#[derive(Debug, Default, clap::Args)]
pub struct Filter {
    /// Only sessions in one of these states; ended and dead include ended sessions
    #[arg(
        long,
        value_name = "STATE",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(STATES)
    )]
    state: Vec<String>,

    /// Only sessions of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    /// Only sessions in this repository, as the list names it
    #[arg(long, value_name = "REPO")]
    repo: Option<String>,
}

impl Filter {
    pub fn is_empty(&self) -> bool {
        self.state.is_empty() && self.agent.is_none() && self.repo.is_none()
    }

    fn wants_ended(&self) -> bool {
        let is_over = |state: &String| state == "ended" || state == "dead";
        self.state.iter().any(is_over)
    }

    fn keeps(&self, session: &SessionView) -> bool {
        let is_in_state = |state: &String| shows(session, state);
        (self.state.is_empty() || self.state.iter().any(is_in_state))
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
        self.state.is_empty()
            && self.agent.as_ref().is_none_or(|one| one == agent.agent)
            && self.repo.as_ref().is_none_or(is_there)
    }
}

/// What is listed, and how.
pub struct SessionListQuery<'a> {
    /// Include those that ended.
    pub all: bool,
    /// At most this many; zero means all.
    pub limit: usize,
    /// Children below their parents.
    pub tree: bool,
    pub filter: &'a Filter,
}

/// The sessions, and the agents that are not registered.
pub type SessionList = (Answer<Listed<SessionView>>, Vec<Unmanaged>);

pub fn find(wanted: &SessionListQuery<'_>, context: &mut Context) -> Result<SessionList, CliError> {
    let filter = wanted.filter;
    let request = ListRequest {
        closed_too: wanted.all || filter.wants_ended(),
        limit: if filter.is_empty() { wanted.limit } else { 0 },
        ..ListRequest::default()
    };
    let mut answer = context.service().list(&request)?;
    let sessions = answer.value.items.iter();
    let starting: Vec<u32> = sessions.filter_map(SessionView::starting).collect();
    let mut unmanaged = unmanaged::shown(context)?;
    unmanaged.retain(|agent| !starting.contains(&agent.pid));
    if !filter.is_empty() {
        let listed = &mut answer.value;
        listed.items.retain(|one| filter.keeps(one));
        if wanted.limit > 0 {
            listed.more = listed.items.len().saturating_sub(wanted.limit);
            listed.items.truncate(wanted.limit);
        }
        unmanaged.retain(|agent| filter.keeps_unmanaged(agent));
    }
    if wanted.tree {
        let branches = tree::arranged(&answer.value.items);
        let order = branches.iter().map(|branch| branch.session.clone());
        answer.value.items = order.collect();
    }
    Ok((answer, unmanaged))
}

/// Writes the object for programs, without a copy of what may be every session that ever was.
pub fn write(wanted: &SessionListQuery<'_>, app: &App, context: &mut Context) -> Outcome {
    let (answer, unmanaged) = find(wanted, context)?;
    let mut list = LongList::begin(app, "sessions", &answer)?;
    let mut ended = Ok(());
    for page in answer.value.items.chunks(PAGE) {
        let written = list.write(page);
        if !matches!(written, Ok(true)) {
            ended = written.map(|_| ());
            break;
        }
    }
    let mut parts = Map::new();
    parts.insert("more".into(), json!(answer.value.more));
    parts.insert("more_is_least".into(), json!(answer.value.more_is_least));
    parts.insert("unmanaged".into(), json!(unmanaged));
    list.end(ended, parts)
}
