//! `skill`: prompt templates by name.

mod list;
mod render;

use super::table;
use crate::app::{App, Changes};
use crate::output::Outcome;

/// List skills and render one as a prompt
///
/// A skill is a template NAME.md in the directory skills beside your config.toml, or in .tenure/skills of a
/// repository that your config.toml trusts (read from its base branch). NAME-delta.md is used when a
/// conversation is resumed, NAME-continue.md when a turn was cut off. Templates have {{ variable }}, if, for
/// and the filters default, fenced, length, lines, lower, trim and upper; {{ text | fenced }} puts text from
/// other people into a block of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure skill list
  tenure skill render fix --var title='Login fails'
  tenure skill render fix --delta --var comment='Still fails' --json | jq -r .skill.file")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

table::verbs! { enum Act {
    Render(render) changes never, shown 1;
    List(list) changes never, shown 2;
} }

impl Args {
    pub fn changes(&self) -> Changes {
        self.act.changes()
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    args.act.run(app)
}
