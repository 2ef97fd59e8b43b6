use tenure_host::clock;
use tenure_host::lock_table::{self, LockState};
use tenure_service::answer::Class;

use crate::app::App;
use crate::output::{Cell, CliError, Outcome, Output, ago, table, where_state_is};

/// List locks: state, holder, age and number of waiters
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure locks
  tenure locks --held --json | jq -r '.locks[].name'")]
pub struct Args {
    /// Only held locks
    #[arg(long)]
    held: bool,
}

fn unlisted(error: &std::io::Error) -> CliError {
    let message = format!("cannot list the locks: {error}");
    CliError::new(Class::Store, "store_unavailable", message, where_state_is())
}

pub fn run(args: &Args, _: &App) -> Outcome {
    let locks = tenure_app::location::locks_if_any()?;
    let states = locks.as_ref().map(lock_table::states).transpose();
    let mut states = states
        .map_err(|error| unlisted(&error))?
        .unwrap_or_default();
    states.retain(|state| state.held || !args.held);
    let rows: Vec<Vec<Cell>> = states.iter().map(row).collect();
    let text = if rows.is_empty() {
        "no locks".into()
    } else {
        table(
            &["LOCK", "STATE", "HOLDER", "SINCE", "WAIT", "COMMAND"],
            &rows,
        )
    };
    Ok(Output::new("locks", &states, text))
}

fn row(state: &LockState) -> Vec<Cell> {
    let word = if state.held { "held" } else { "free" };
    let pid = state.pids.first().map(|pid| format!("pid {pid}"));
    let note = state.holder.as_ref();
    let holder = note
        .map(|note| match &note.session {
            Some(session) => format!("{session} (pid {})", note.pid),
            None => format!("pid {}", note.pid),
        })
        .or(pid);
    let or_dash = |text: Option<String>| Cell::plain(text.unwrap_or_else(|| "-".into()));
    vec![
        Cell::plain(state.name.clone()),
        Cell::state(word, word),
        or_dash(holder),
        or_dash(note.map(|note| ago(note.since, clock::wall()))),
        Cell::plain(state.waiting.to_string()),
        or_dash(note.map(|note| note.command.clone())),
    ]
}
