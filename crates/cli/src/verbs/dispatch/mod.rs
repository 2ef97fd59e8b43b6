//! The dispatcher: `tenure dispatch`.

mod work;

use crate::app::{App, Changes};
use crate::output::Outcome;

/// Run the jobs of the queue, until stopped
///
/// Starts a runner for each job that may run, at most N at once and one per conversation. A job's run does not
/// depend on the dispatcher: if the dispatcher is stopped or killed, its runs continue, and the next dispatcher
/// finds them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch
  tenure dispatch --concurrency 2 --json | jq -r .event

SIGTERM and Ctrl-C stop the dispatcher and leave its runs alone.")]
pub struct Args {
    /// Run at most N jobs at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    concurrency: usize,
}

impl Args {
    #[allow(clippy::unused_self)] // sub-commands change other things
    pub fn changes(&self) -> Changes {
        Changes::Anything
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    work::run(args.concurrency, app)
}
