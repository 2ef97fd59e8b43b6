//! The dispatcher: `tenure dispatch [init|check|ping|explain|replay|status|stop]`.

mod check;
mod explain;
mod init;
mod lines;
mod ping;
mod replay;
mod settings_file;
mod source;
mod status;
mod stop;
mod work;

use super::table;
use crate::app::App;
use crate::beside;
use crate::output::Outcome;

/// Run the jobs of the queue, and receive webhooks that queue them, until stopped
///
/// dispatch.toml names forges (Forgejo, Gitea, GitHub, GitLab), repositories and rules. A rule says which events,
/// by whom, start which agent with which skill. The first rule that matches an event wins. The file is beside
/// your config.toml unless --config names another; without a file, only the queue is worked.
///
/// A job's run does not depend on the dispatcher: if that is stopped or killed, its runs continue, and the next
/// dispatcher finds them.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tenure dispatch init
  tenure dispatch check
  tenure dispatch
  tenure dispatch ping
  tenure dispatch explain delivery.json --event issues
  tenure dispatch replay 12
  tenure dispatch status
  tenure dispatch stop
  tenure dispatch --listen 127.0.0.1:7421 --json | jq -r .event

SIGTERM, Ctrl-C and `tenure dispatch stop` stop the dispatcher and leave its runs alone. SIGHUP makes it read
dispatch.toml again, unless it was started in a terminal; a file with a fault is refused, and the old rules stay."
)]
pub struct Args {
    #[command(flatten)]
    work: work::Options,

    #[command(subcommand)]
    act: Option<Act>,
}

table::verbs! { enum Act {
    Init(init) changes never, shown 1;
    Check(check) changes never, shown 2;
    Ping(ping) changes never, shown 3;
    Explain(explain) changes never, shown 4;
    Replay(replay) changes always, shown 5;
    Status(status) changes never, shown 6;
    Stop(stop) changes known, shown 7;
} }

/// In the program that has none of it.
pub fn run(_: &Args, _: &App) -> Outcome {
    beside::execute()
}

// The same in the program that has all of it.
table::or_alone! { fn run_linked changes Anything, |args, app| work::run(&args.work, app) }
