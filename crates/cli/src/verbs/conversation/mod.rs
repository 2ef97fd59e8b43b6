//! Conversations: `tenure conversation get|set|drop|link|unlink|list|history`.

mod drop;
mod get;
mod history;
mod link;
mod list;
mod set;
mod shown;
mod unlink;

use super::table;
use crate::app::{App, Changes};
use crate::output::Outcome;

/// Manage which conversation an agent continues for an item
///
/// An agent has one conversation for an item, such as an issue, in each of its roles. Every native id that it ever had stays in its
/// history. An item that is linked to another continues that one's conversations.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure conversation set claude issue:acme/web#6 0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d
  tenure conversation get claude '#6'
  tenure conversation link pr:acme/web#9 issue:acme/web#6
  tenure conversation list --agent claude
  tenure conversation history claude '#6'
  tenure conversation drop '#6'")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

table::verbs! { enum Act {
    Get(get) changes never, shown 1;
    Set(set) changes always, shown 2;
    Drop(drop) changes known, shown 3;
    Link(link) changes always, shown 4;
    Unlink(unlink) changes known, shown 5;
    List(list) changes never, shown 6;
    History(history) changes never, shown 7;
} }

impl Args {
    pub fn changes(&self) -> Changes {
        self.act.changes()
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    args.act.run(app)
}
