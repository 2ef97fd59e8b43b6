//! `keeper`: the process that answers for the sessions of this machine on a shared store.

mod status;
mod stop;
mod unit;

use tenure_app::keeper::{self, Stage};
use tenure_service::answer::{Class, Hint, Problem};

use super::table;
use crate::app::App;
use crate::exit::Exit;
use crate::output::{Outcome, Output};
use crate::render::brief::render;
use tenure_views::notify::notifier::start_beside;

/// Run the keeper of this machine, or show or stop it
///
/// On a store that several machines use, a keeper on each of them reports which sessions run there. Other machines
/// cannot see its processes; they go by what it reports. Commands and hooks start it when it is needed, so usually
/// there is nothing to do. `tenure keeper` runs it in the foreground, for a service manager; it ends when nothing was
/// left to watch for as long as the setting host_lease says.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tenure keeper status
  tenure keeper stop
  tenure keeper unit >~/.config/systemd/user/tenure-keeper.service
  tenure keeper status --json | jq -r '.keeper.keepers[] | .host'"
)]
pub struct Args {
    #[command(subcommand)]
    act: Option<Act>,
}

table::verbs! { enum Act {
    Status(status) changes never, shown 1;
    Stop(stop) changes never, shown 2;
    Unit(unit) changes never, shown 3;
} }

table::or_alone! { fn run changes Nothing, |_, _| run_here() }

fn run_here() -> Outcome {
    tenure_keeper::run_here(render, start_beside)?;
    let report = keeper::report()?;
    Ok(Output::new("keeper", &report, "the keeper has ended"))
}

/// The keeper's own arguments.
#[derive(Debug, clap::Args)]
pub struct StageArgs {
    /// Which of its processes
    stage: String,

    /// The descriptor of its lock
    #[arg(long)]
    lock: i32,
}

pub fn run_stage(args: &StageArgs) -> Outcome {
    let failed = |why: &str| {
        let message = format!("the keeper did not start: {why}");
        let hint = Hint::run("keeper", ["status"], "to see whether one runs");
        Problem::new(Class::Internal, "keeper_failed", message, hint)
    };
    let stage = Stage::of(&args.stage).ok_or_else(|| failed("it was started in an unknown way"))?;
    let code = tenure_keeper::main(stage, args.lock, render, start_beside)
        .map_err(|error| failed(&error.to_string()))?;
    Ok(Output::silent(Exit(code)))
}
