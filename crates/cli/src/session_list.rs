//! The list of sessions and of agents that are not registered: the flags that select them, and as one object.

use clap::builder::PossibleValuesParser;
use serde_json::{Map, json};
use tenure_app::open::Context;
use tenure_service::{ListRequest, PAGE};
use tenure_views::session_list::{self, SessionFilter, SessionList};

use crate::app::App;
use crate::long_list::LongList;
use crate::output::{CliError, Outcome};
use crate::standing::STATES;
use crate::tree;

/// How many sessions people are shown by default.
pub const MAX_SHOWN: usize = 200;

/// Which sessions are listed.
#[derive(Debug, Default, clap::Args)]
pub struct FilterArgs {
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

impl FilterArgs {
    pub fn filter(&self) -> SessionFilter {
        SessionFilter {
            states: self.state.clone(),
            agent: self.agent.clone(),
            repo: self.repo.clone(),
        }
    }
}

/// What is listed, and how.
#[derive(Default)]
pub struct SessionListQuery {
    /// Include those that ended.
    pub all: bool,
    /// At most this many; zero means all.
    pub limit: usize,
    /// Children below their parents.
    pub tree: bool,
    pub filter: SessionFilter,
}

pub fn find(wanted: &SessionListQuery, context: &mut Context) -> Result<SessionList, CliError> {
    let request = ListRequest {
        closed_too: wanted.all,
        limit: wanted.limit,
        ..ListRequest::default()
    };
    let (mut answer, unmanaged) = session_list::find(context, &wanted.filter, request)?;
    if wanted.tree {
        let branches = tree::arranged(&answer.value.items);
        let order = branches.iter().map(|branch| branch.session.clone());
        answer.value.items = order.collect();
    }
    Ok((answer, unmanaged))
}

/// Writes the object for programs, without a copy of what may be every session that ever was.
pub fn write(wanted: &SessionListQuery, app: &App, context: &mut Context) -> Outcome {
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
