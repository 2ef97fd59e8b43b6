use std::path::{Path, PathBuf};

use tenure_app::place::{current_dir, place};
use tenure_app::unmanaged::{self, Unmanaged};
use tenure_host::git;
use tenure_service::ListRequest;

use crate::app::App;
use crate::exit::Exit;
use crate::output::{Outcome, Shown};
use crate::render;

/// Show who else works in a repository, in any of its worktrees
///
/// Outside a repository: who works in that directory or below it. Agents that run without hooks count.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure who
  tenure who ../web-feature --here --exit-code && git worktree remove ../web-feature")]
pub struct Args {
    /// The directory, if not this one
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Only those in exactly this directory or below it, not the whole repository
    #[arg(long)]
    here: bool,

    /// Exit 3 if somebody works there, 9 if nobody can tell
    #[arg(long)]
    exit_code: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => current_dir()?,
    };
    let place = place(&dir)?;
    let mut request = ListRequest::default();
    match place.repo {
        Some(repo) if !args.here => {
            request.repo = Some(repo);
            request.worktree = Some(place.dir);
        }
        _ => request.under = Some(place.dir),
    }
    let mut opened = app.open()?;
    // Without telling it anything: that is for the answer.
    let me = opened.service().peek(&app.naming(None)).ok();
    let me = me.map(|answer| answer.value);
    opened.service().mend_tree_locks(&dir.to_string_lossy());
    let answer = opened.service().list(&request)?;
    let mut others = answer.value.items.clone();
    others.retain(|session| !session.is_over() && Some(&session.handle) != me.as_ref());
    let mut unmanaged = unmanaged::shown(&mut opened)?;
    unmanaged.retain(|agent| works_here(agent, &request) && !opened.runs_in(agent.pid));
    let text = match others.is_empty() && unmanaged.is_empty() {
        true => "nobody else works here".into(),
        false => render::people(&render::flat(&others), &unmanaged, app.verbose),
    };
    let is_sure = !unmanaged.is_empty() || others.iter().any(|one| one.state != "unknown");
    let exit = match () {
        () if !args.exit_code => Exit::DONE,
        () if is_sure => Exit::HELD,
        () if others.is_empty() => Exit::DONE,
        () => Exit::CANNOT_TELL,
    };
    Ok(Shown::new("sessions", &others, text)
        .with("more", &answer.value.more)
        .with("unmanaged", &unmanaged)
        .told(&answer)
        .exit(exit))
}

/// Whether an agent that nobody registered works where it is asked for.
fn works_here(agent: &Unmanaged, asked: &ListRequest) -> bool {
    let Some(dir) = agent.dir.as_deref().map(Path::new) else {
        return false;
    };
    match (&asked.repo, &asked.under) {
        (Some(repo), _) => git::worktree(dir).is_some_and(|found| found.repo() == *repo),
        (None, Some(under)) => dir.starts_with(under),
        (None, None) => true,
    }
}
