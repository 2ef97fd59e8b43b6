use std::path::PathBuf;

use tenure_core::service::ListRequest;

use crate::app::{App, current_dir, place};
use crate::exit::Exit;
use crate::output::{Outcome, Shown};
use crate::render;

/// Show who else works in a repository, in any of its worktrees
///
/// Outside a repository: who works in that directory or below it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure who
  tenure who ../web-feature --exit-code && git worktree remove ../web-feature")]
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
        Some(repo) if !args.here => request.repo = Some(repo),
        _ => request.under = Some(place.dir),
    }
    let mut opened = app.open()?;
    let me = opened
        .service()
        .whoami(&app.naming(None))
        .ok()
        .map(|answer| answer.value.session.id);
    let answer = opened.service().list(&request)?;
    let others: Vec<_> = answer
        .value
        .iter()
        .filter(|session| session.ended_at.is_none() && Some(&session.id) != me.as_ref())
        .cloned()
        .collect();
    let text = match others.is_empty() {
        true => "nobody else works here".to_owned(),
        false => render::sessions(&others, app.verbose),
    };
    let shown = Shown::new("sessions", &others, text).told(&answer);
    let exit = match () {
        () if !args.exit_code || others.is_empty() => Exit::DONE,
        () if others.iter().any(|session| session.state != "unknown") => Exit::HELD,
        () => Exit::CANNOT_TELL,
    };
    Ok(shown.exit(exit))
}
