use std::path::PathBuf;

use tenure_app::place::{current_dir, place};
use tenure_app::unmanaged;
use tenure_service::ListRequest;

use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output};
use crate::render;

/// List the other sessions in a repository, in any of its worktrees
///
/// Outside a repository, lists sessions in the directory or below it. Includes agents that run without hooks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure who
  tenure who ../web-feature --here --exit-code && git worktree remove ../web-feature")]
pub struct Args {
    /// Directory [default: the current one]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Only sessions in this directory or below it, not in the whole repository
    #[arg(long)]
    here: bool,

    /// Exit 3 if a session works there, 9 if tenure can't tell; agents without hooks count only if ps.unmanaged is true
    #[arg(long)]
    exit_code: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => current_dir()?,
    };
    let place = place(&dir)?;
    let request = if args.here {
        ListRequest::below(&place)
    } else {
        ListRequest::around(&place)
    };
    let mut context = app.open_until_exit()?;
    let answer = context.service().who(&app.act_for(None), &request)?;
    let others = &answer.value.items;
    let is_blind = !unmanaged::are_looked_for(&context);
    let mut unmanaged = unmanaged::beside(&mut context, &request)?;
    unmanaged.retain(|agent| !others.iter().any(|one| one.starting() == Some(agent.pid)));
    let text = if others.is_empty() && unmanaged.is_empty() {
        let mut text = Lines::from("no other sessions here");
        if is_blind {
            text.line("agents without hooks were not checked (ps.unmanaged is false)");
        }
        text
    } else {
        render::people(&render::flat(others), &unmanaged, app.verbose)
    };
    let is_sure = !unmanaged.is_empty() || others.iter().any(|one| one.state != "unknown");
    let exit = if !args.exit_code {
        Exit::DONE
    } else if is_sure {
        Exit::HELD
    } else if others.is_empty() {
        Exit::DONE
    } else {
        Exit::CANNOT_TELL
    };
    Ok(Output::new("sessions", others, text)
        .with("more", &answer.value.more)
        .with("more_is_least", &answer.value.more_is_least)
        .with("unmanaged", &unmanaged)
        .told(&answer)
        .exit(exit))
}
