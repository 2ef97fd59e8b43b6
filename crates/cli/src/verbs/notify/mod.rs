//! `notify`: the user's channels for notifications.

mod list;
mod test;

use std::io::Read;

use tenure_service::answer::{Class, Hint, Problem};
use tenure_views::notify::{notifier, sender};

use super::table;
use crate::app::{App, Changes};
use crate::exit::Exit;
use crate::output::{Outcome, Output};

/// List the channels for notifications, and test one
///
/// A channel is a section `[[notify]]` of your own config.toml: a command, the desktop, the terminal of `tenure watch
/// --notify`, or a webhook. Hooks notify you when a session waits for you for longer than 10 seconds, when its turn
/// fails and when it reaches a limit, and commands when they prove a death. `tenure watch --notify`, `tenure top` and, on a
/// shared store, the keeper report everything.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure notify list
  tenure notify test desktop
  tenure notify list --json | jq -r '.channels[].name'

In ~/.config/tenure/config.toml:
  [[notify]]
  channel = \"desktop\"
  on = [\"asks\", \"failed\", \"died\"]")]
pub struct Args {
    #[command(subcommand)]
    act: Act,
}

table::verbs! { enum Act {
    List(list) changes never, shown 1;
    Test(test) changes never, shown 2;
} }

impl Args {
    pub fn changes(&self) -> Changes {
        self.act.changes()
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    args.act.run(app)
}

/// The sender's own arguments.
#[derive(Debug, clap::Args)]
pub struct StageArgs {
    /// Which of its processes
    stage: String,
}

pub fn run_stage(args: &StageArgs) -> Outcome {
    if args.stage == "stand" {
        notifier::stand_beside()?;
        return Ok(Output::silent(Exit::DONE));
    }
    let sent = sender::main(&args.stage);
    sent.map_err(|error| not_sent(&error.to_string()))?;
    Ok(Output::silent(Exit::DONE))
}

/// The longest order for a webhook.
const MAX_LENGTH: u64 = 1 << 20;

pub fn run_webhook() -> Outcome {
    let mut order = Vec::new();
    let read = std::io::stdin().take(MAX_LENGTH).read_to_end(&mut order);
    read.map_err(|error| not_sent(&error.to_string()))?;
    tenure_runs::network::post(&order).map_err(|why| not_sent(&why))?;
    Ok(Output::silent(Exit::DONE))
}

fn not_sent(why: &str) -> Problem {
    let hint = Hint::run("notify", ["list"], "to see the channels");
    Problem::new(Class::Refused, "not_notified", why, hint)
}
