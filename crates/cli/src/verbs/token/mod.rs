//! `token`: who may use the HTTP API of `tenure serve`.

mod list;
mod new;
mod revoke;

use tenure_service::view::TokenView;

use super::table;
use crate::app::{App, Changes};
use crate::output::Outcome;

/// Make, list and revoke tokens for the HTTP API of tenure serve
///
/// A token is for a person or a program: what it does is logged with its name. It works at the servers of this user on
/// this machine. Agents cannot make one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Scopes:
  read    every list, without prompts, questions and the output of runs (the default)
  logs    prompts, questions and the output of runs
  act     tell, answer, free, give, end, dismiss, stop a run
  admin   reset a conversation

Examples:
  tenure token new grafana
  tenure token new ci --scope read,act
  tenure token list
  tenure token revoke ci")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

table::verbs! { enum Act {
    New(new) changes always, shown 1;
    List(list) changes never, shown 2;
    Revoke(revoke) changes known, shown 3;
} }

impl Args {
    pub fn changes(&self) -> Changes {
        self.act.changes()
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    args.act.run(app)
}

/// The user whose server takes a token.
fn user() -> String {
    rustix::process::getuid().as_raw().to_string()
}

fn scopes(token: &TokenView) -> String {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    scopes.join(", ")
}
