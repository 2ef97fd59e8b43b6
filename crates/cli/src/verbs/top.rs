use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::Command;

use tenure_app::watch::WatchEnd;
use tenure_host::env;
use tenure_service::answer::{Class, Hint};
use tenure_views::top::{self, TopExit};

use crate::app::App;
use crate::child::exit_of_watching;
use crate::colour::is_dumb;
use crate::exit::Exit;
use crate::output::{CliError, Outcome, Output};
use crate::render::spooled;
use crate::session_list::{self, SessionListQuery};

/// Show all sessions live: who waits for you, what died, who holds what; and act on them
///
/// The rows have the order and the words of `tenure ps`. Below them is how to resume what died, and who holds which
/// item since when. It is drawn again when something changes, and needs 60 columns or more to show everything that
/// matters. --json prints one object, as `tenure ps --json` does, and ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Keys:
  Up, Down, Home, End   choose a session; it stays chosen when the rows move
  Enter                 show everything about it, and its log; Page Up and Page Down scroll
  g                     go to its window
  t                     send it a message
  r                     leave the list and resume it here
  d                     take it off the list of what was cut off
  e                     end it, with a reason
  s                     end the processes that it left running
  f                     release an item that it holds, with a reason
  G                     hand an item that it holds to another session, with a reason
  h                     show who held an item of it, from when to when
  n                     start a run in a worktree, where it works
  /                     show only rows with this text; Esc shows all
  o, v                  group by repository; show children below their parents
  S                     sort: who needs you first, newest first, by name
  mouse                 a click chooses, a second one shows everything; the wheel scrolls; Shift selects text
  q, Ctrl-C             quit

Examples:
  tenure top
  tenure top --json | jq -r '.sessions[0].handle'")]
pub struct Args {}

pub fn run(_: &Args, app: &App) -> Outcome {
    if app.style.json {
        return write(app);
    }
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !is_terminal || is_dumb() {
        let message = "tenure top needs a terminal that can be drawn on";
        let hint = Hint::verb("ps", "to list sessions");
        return Err(CliError::new(Class::Refused, "no_terminal", message, hint));
    }
    match top::run()? {
        TopExit::Quit => Ok(Output::silent(Exit::DONE)),
        TopExit::Signal(signal) => {
            let ended: WatchEnd<()> = WatchEnd::Signal(signal);
            Ok(Output::silent(exit_of_watching(&ended)))
        }
        TopExit::Resume(handle) => Err(resume(&handle)),
    }
}

fn write(app: &App) -> Outcome {
    let mut context = match app.open_until_exit() {
        Ok(context) => context,
        Err(failure) => return spooled::remembered(failure),
    };
    session_list::write(&SessionListQuery::default(), app, &mut context)
}

/// Becomes `tenure resume`, which becomes the agent; returns only if that cannot be started.
fn resume(handle: &str) -> CliError {
    let started = env::program().map(|own| Command::new(own).args(["resume", handle]).exec());
    let error = started.unwrap_or_else(|error| error);
    let message = format!("cannot start `tenure resume {handle}`: {error}");
    let hint = Hint::run("resume", [handle, "--print"], "to see the command");
    CliError::new(Class::Internal, "not_run", message, hint)
}
