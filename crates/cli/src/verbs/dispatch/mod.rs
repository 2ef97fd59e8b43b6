//! Webhooks of forges: `tenure dispatch check|explain|init`.

mod check;
mod explain;
mod init;
mod settings_file;

use super::table;
use crate::app::{App, Changes};
use crate::output::Outcome;

/// Set up which agent works on what a forge reports
///
/// dispatch.toml names forges (Forgejo, Gitea, GitHub, GitLab), repositories and rules. A rule says which events,
/// by whom, start which agent with which skill. The first rule that matches an event wins. The file is beside
/// your config.toml unless --config names another.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dispatch init
  tenure dispatch check
  tenure dispatch explain delivery.json --event issues")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

table::verbs! { enum Act {
    Init(init) changes never, shown 1;
    Check(check) changes never, shown 2;
    Explain(explain) changes never, shown 3;
} }

impl Args {
    pub fn changes(&self) -> Changes {
        self.act.changes()
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    args.act.run(app)
}
