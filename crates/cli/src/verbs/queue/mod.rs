//! The queue: `tenure queue [list|show|cancel|retry|publish|explain|deliveries]`.

mod cancel;
mod deliveries;
mod explain;
mod list;
mod publish;
mod retry;
mod selection;
mod show;

use super::table;
use crate::app::App;
use crate::output::Outcome;

/// List the jobs of the queue: what waits, what runs, what is parked, and results that wait for a person
///
/// Jobs come from `tenure run --queue` and from webhooks; `tenure dispatch` runs them. One job at a time runs in a
/// conversation, oldest first. A job runs once: if its runner dies before the agent started, the job is queued
/// again; afterwards it ends with its run.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tenure queue
  tenure queue --all --item '#42'
  tenure queue show j-k7qd2m4zw9
  tenure queue explain j-k7qd
  tenure queue cancel j-k7qd --reason 'done by hand'
  tenure queue retry j-k7qd
  tenure queue retry --all-parked
  tenure queue publish j-k7qd
  tenure queue deliveries"
)]
pub struct Args {
    #[command(flatten)]
    list: list::JobListArgs,

    #[command(subcommand)]
    act: Option<Act>,
}

table::verbs! { enum Act {
    Show(show) changes never, shown 1;
    Explain(explain) changes never, shown 2;
    Cancel(cancel) changes known, shown 3;
    Retry(retry) changes known, shown 4;
    Publish(publish) changes known, shown 5;
    Deliveries(deliveries) changes never, shown 6;
} }

table::or_alone! { fn run changes Nothing, |args, app| list::run(&args.list, app) }
