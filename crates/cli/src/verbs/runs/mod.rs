//! Runs: `tenure runs [list|show|tail|stop|resume]`.

pub(super) mod list;
mod resume;
mod show;
mod shown;
mod stop;
mod tail;
mod transcript;

use super::table;
use crate::app::App;
use crate::output::Outcome;

/// List the runs of agents: what each did and how it ended
///
/// Without a command, lists the runs, newest first. A run whose runner died while its agent continued is shown as
/// `running, no runner`; it can still be stopped. A run whose processes are all dead is recorded as ended by the
/// next command that looks at it.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tenure runs
  tenure runs --item '#42'
  tenure runs --agent claude --failed
  tenure runs --queued --item '#42'
  tenure runs show r-k7qd2m4zw9
  tenure runs tail r-k7qd
  tenure runs stop r-k7qd --reason 'wrong branch'
  tenure runs resume r-k7qd"
)]
pub struct Args {
    #[command(flatten)]
    list: list::RunListArgs,

    #[command(subcommand)]
    act: Option<Act>,
}

table::verbs! { enum Act {
    Show(show) changes known, shown 1;
    Tail(tail) changes known, shown 2;
    Stop(stop) changes known, shown 3;
    Resume(resume) changes known, shown 4;
} }

table::or_alone! { fn run changes Nothing, |args, app| list::run(&args.list, app) }
