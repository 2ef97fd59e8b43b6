use std::time::Duration;

use tenure_core::time::Span;
use tenure_doctor::gc;

use crate::app::{App, Changes};
use crate::lines::Lines;
use crate::output::{Outcome, Output};

/// What is forgotten without `--older-than` and `retention`.
const USUAL: Duration = Duration::from_secs(30 * 24 * 3600);

/// Forget sessions and events from long ago
///
/// Without --apply nothing is removed: it says what would be. Sessions stay that live, hold, wait for or finished an item, or
/// that a conversation, a mission, a run, a job, an event or another session names. Epochs stay for ever. What a session
/// used goes with it (`tenure usage`). With the setting `retention`, commands do this by themselves, a little at a time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure gc
  tenure gc --older-than 90d --apply
  tenure gc --json | jq .gc.kept")]
pub struct Args {
    /// How long ago it ended; by default the setting `retention`, or 30d
    #[arg(long, value_name = "TIME")]
    older_than: Option<Span>,

    /// Remove it
    #[arg(long)]
    apply: bool,
}

impl Args {
    pub fn changes(&self) -> Changes {
        if self.apply {
            Changes::Known
        } else {
            Changes::Nothing
        }
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    let set = Some(context.settings.keep_ended).filter(|span| !span.is_zero());
    let age = args.older_than.map(|Span(age)| age).or(set);
    let found = gc::collect(&mut context, age.unwrap_or(USUAL), args.apply)?;
    let mut text = Lines::default();
    let (sessions, events) = (found.sessions, found.events);
    let before = found.before;
    text.line(match (sessions + events, found.applied) {
        (0, _) => format!("nothing that ended before {before} can be removed"),
        (_, true) => {
            format!("removed what ended before {before}: sessions {sessions}, events {events}")
        }
        (_, false) => {
            format!("would remove what ended before {before}: sessions {sessions}, events {events}")
        }
    });
    for (need, count) in &found.kept {
        text.line(format!("kept sessions because of {need}: {count}"));
    }
    if !found.applied && sessions + events > 0 {
        text.line("nothing was removed; run `tenure gc --apply` to remove it");
    }
    Ok(Output::new("gc", &found, text))
}
