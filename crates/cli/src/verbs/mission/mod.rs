//! Missions: `tenure mission join|leave|use|focus|drive|status|list|check`.

mod join;
mod look;
mod shown;
mod status;
mod update;

use crate::app::App;
use crate::output::Outcome;

/// Take part in shared work: join a mission, say what you focus on, see who does what
///
/// A participant is a session: two agents of one user are two participants. Which mission is meant:
/// --mission, else the session's pointer, the repository's, the user's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure mission join 041-login --role developer
  tenure mission focus wp:WP03
  tenure mission drive active --strict
  tenure mission status --watch
  tenure mission use 041-login --for repo
  tenure mission leave 041-login")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

impl Args {
    pub fn changes(&self) -> bool {
        !matches!(self.act, Act::Status(_) | Act::List(_) | Act::Check(_))
    }
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    Join(join::JoinArgs),
    Leave(join::LeaveArgs),
    Use(join::UseArgs),
    Focus(update::FocusArgs),
    Drive(update::DriveArgs),
    Status(status::Args),
    List(look::ListArgs),
    Check(look::CheckArgs),
}

pub fn run(args: &Args, app: &App) -> Outcome {
    match &args.act {
        Act::Join(args) => join::join(args, app),
        Act::Leave(args) => join::leave(args, app),
        Act::Use(args) => join::point(args, app),
        Act::Focus(args) => update::focus(args, app),
        Act::Drive(args) => update::drive(args, app),
        Act::Status(args) => status::run(args, app),
        Act::List(args) => look::list(args, app),
        Act::Check(args) => look::check(args, app),
    }
}
