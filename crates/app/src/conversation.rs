//! Conversations on this machine: where an agent started here keeps them, and dropping
//! conversations with live runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_agents::run::{Keeps, Runs};
use tenure_core::conversation::Home;
use tenure_core::id::AgentName;
use tenure_core::key::Key;
use tenure_core::notice::Pending;
use tenure_core::transcript::layout_of;
use tenure_host::env::var;
use tenure_host::{cwd, git};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::ConversationView;
use tenure_service::{ActFor, Answer, DropRequest, Dropped};

use crate::open::Context;
use crate::place::place;
use crate::unfinished::{By, Unfinished};
use crate::watch::{Next, WatchEnd, on_change};

/// How long a run may take to stop before a drop gives up.
const STOPS_WITHIN: Duration = Duration::from_secs(60);
/// How often to check whatever happens.
const AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// Where an agent that this caller starts keeps the conversations of an item, in any directory.
pub fn here(context: &Context, agent: &AgentName, item: &Key) -> Home {
    any_here(context)(agent, item)
}

/// The same for any agent and item; what they have in common is read once.
pub fn any_here(context: &Context) -> impl Fn(&AgentName, &Key) -> Home + use<> {
    let (host, user) = (context.facts.observer.host.clone(), context.here().user);
    let repository = repository(context, &cwd::name());
    move |agent, item| Home {
        host: host.clone(),
        user: user.clone(),
        agent_home: agent_home(agent),
        dir: String::new(),
        repo_host: host_of(repository.as_ref(), item),
    }
}

/// The same for an agent that works in a directory.
pub fn home(context: &Context, agent: &AgentName, item: &Key, dir: &Path) -> Result<Home, Problem> {
    Ok(Home {
        dir: place(dir)?.dir,
        repo_host: repo_host(context, dir, item),
        ..here(context, agent, item)
    })
}

/// The host of an item's repository, if a directory is in a clone of it.
pub fn repo_host(context: &Context, dir: &Path, item: &Key) -> Option<String> {
    host_of(repository(context, dir).as_ref(), item)
}

/// The same by the address of a repository.
pub fn host_at(context: &Context, url: &str, item: &Key) -> Option<String> {
    let (host, name) = git::address(url)?;
    let host = context.settings.lead_host(&name, &host);
    host_of(Some(&(name, host)), item)
}

/// The name and the host of the repository that a directory is a clone of.
fn repository(context: &Context, dir: &Path) -> Option<(String, String)> {
    let worktree = git::worktree(dir)?;
    let (name, host) = (worktree.remote?, worktree.host?);
    let host = context.settings.lead_host(&name, &host);
    Some((name, host))
}

fn host_of(repository: Option<&(String, String)>, item: &Key) -> Option<String> {
    let (name, host) = repository?;
    (item.repository() == Some(name.as_str())).then(|| host.clone())
}

/// The agent's own directory, if the environment names one other than the default.
fn agent_home(agent: &AgentName) -> Option<String> {
    let (variable, below) = match (layout_of(agent), listed(agent)) {
        (Some(layout), _) => (layout.variable?, layout.home),
        (None, listed) => listed?,
    };
    let named = var(variable).filter(|value| !value.is_empty())?;
    let usual = var("HOME").map(|home| PathBuf::from(home).join(below));
    let whole = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        fs_err::canonicalize(&path).unwrap_or(path)
    };
    let named = whole(Path::new(&named));
    let is_usual = usual.is_some_and(|usual| whole(&usual) == named);
    (!is_usual).then(|| named.to_string_lossy().into_owned())
}

/// The variable and the default directory of an agent that lists its conversations itself.
fn listed(agent: &AgentName) -> Option<(&'static str, &'static str)> {
    let runs = tenure_agents::adapter(agent.as_str())?.runs.as_ref()?;
    match runs.spec().keeps {
        Keeps::Listed { variable, home, .. } => Some((variable, home)),
        Keeps::File | Keeps::CannotTell => None,
    }
}

/// Drops an item's conversations. If the request says so, live runs in them are asked to stop
/// first, and their processes are waited for.
pub fn drop_all(
    context: &mut Context,
    act_for: &ActFor,
    request: &DropRequest,
) -> Result<Answer<Vec<ConversationView>>, Unfinished> {
    let began = tenure_host::clock::instant();
    let mut told = Pending::default();
    let ended = on_change(context, Duration::ZERO, |context| {
        let answer = context.service().drop_conversations(act_for, request)?;
        told = answer.notices;
        let (runs, processes) = match answer.value {
            Dropped::Done(dropped) => return Ok(Next::Done(dropped)),
            Dropped::Stopping { runs, processes } => (runs, processes),
        };
        let left = STOPS_WITHIN.saturating_sub(began.elapsed());
        if left.is_zero() {
            let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
            let message = format!(
                "{} was asked to stop and still runs; nothing was dropped",
                runs.join(", ")
            );
            let hint = Hint::step("run it again to keep waiting");
            return Err(Problem::new(Class::TimedOut, "timed_out", message, hint));
        }
        Ok(Next::Again {
            processes,
            limit: left.min(AT_LEAST_EVERY),
        })
    });
    let mut failed = match ended {
        Ok(WatchEnd::Done(value)) => {
            return Ok(Answer {
                value,
                notices: told,
                damaged: None,
            });
        }
        Ok(WatchEnd::Signal(signal)) => {
            let message = "interrupted while waiting for a run to stop; nothing was dropped";
            let hint = Hint::step("run it again to keep waiting");
            Unfinished {
                problem: Problem::new(Class::TimedOut, "interrupted", message, hint),
                by: By::Signal(signal),
            }
        }
        Err(problem) => Unfinished::from(problem),
    };
    if failed.problem.notices.is_empty() {
        failed.problem.notices = told;
    }
    Err(failed)
}
