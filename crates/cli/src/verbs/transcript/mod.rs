//! `transcript`: the file in which an agent keeps one conversation, and only that session's.

mod append;
mod repair;
mod show;
mod verify;

use super::table;
use crate::app::{App, Changes};
use crate::output::Outcome;

/// Show, check, repair or append to a session's transcript
///
/// The path comes from the store, never from the caller.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure transcript show claude-k7qd
  tenure transcript verify claude-k7qd
  tenure transcript repair claude-k7qd
  echo '{\"type\":\"note\"}' | tenure transcript append claude-k7qd --durable")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

table::verbs! { enum Act {
    Show(show) changes never, shown 1;
    Verify(verify) changes never, shown 2;
    Append(append) changes known, shown 3;
    Repair(repair) changes known, shown 4;
} }

impl Args {
    pub fn changes(&self) -> Changes {
        self.act.changes()
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    args.act.run(app)
}
