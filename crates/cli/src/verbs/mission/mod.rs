//! Missions: `tenure mission join|leave|use|focus|drive|set|status|list|check`.

mod active;
mod check;
mod drive;
mod focus;
mod join;
mod leave;
mod list;
mod set;
mod shown;
mod status;
mod update;

use super::table;
use crate::app::{App, Changes};
use crate::output::Outcome;

/// Take part in shared work: join a mission, set your focus, see who does what
///
/// Each session is a participant of its own, so two agents of one user are two participants. Commands use the
/// mission named by --mission, else the active mission of the session, the repository or the user, in this order.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission join 041-login --role developer
  tenure mission focus wp:WP03
  tenure mission drive active --strict
  tenure mission set run_id 2026-11-18-a
  tenure mission status --watch
  tenure mission use 041-login --for repo
  tenure mission leave 041-login")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

table::verbs! { enum Act {
    Join(join) changes known, shown 1;
    Leave(leave) changes known, shown 2;
    Use(active) changes active::Args::changes, shown 3;
    Focus(focus) changes known, shown 4;
    Drive(drive) changes known, shown 5;
    Set(set) changes known, shown 6;
    Status(status) changes never, shown 7;
    List(list) changes never, shown 8;
    Check(check) changes never, shown 9;
} }

impl Args {
    pub fn changes(&self) -> Changes {
        self.act.changes()
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    args.act.run(app)
}
