use std::io::IsTerminal;
use std::time::Duration;

use serde_json::{Map, Value};
use tenure_app::attention;
use tenure_app::open::Context;
use tenure_app::watch::{Next, WatchEnd, on_change};
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::child::exit_of_watching;
use crate::colour::is_dumb;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CLEAR, CliError, Outcome, Output, put, warn};
use crate::render::spooled;
use crate::screen::{self, Screen};
use crate::session_list::{self, FilterArgs, MAX_SHOWN, SessionListQuery};
use crate::{first_steps, render, tree};

/// List sessions: state, title, location and claims
///
/// Sessions that wait for a person come first. On a terminal, the table drops columns and shortens cells to fit;
/// --json prints everything. --quiet prints only the handles. Agents that run without hooks are listed as
/// unmanaged; run `tenure adopt PID` to register one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
States, in the order of the list:
  asks         it waits for your answer: permission for a command, or a question
  waiting      the same, but it does not report what it asks
  failed       its turn ended with an error
  limited      its provider accepts no requests, until the time shown if the agent names one
  cut off      its process or window is gone, and it can be resumed or held work
  lost         another session took a claim from it, and it was not told yet
  collides     another live session writes the same files or works on the same item
  stalled      in a turn, but silent for longer than the setting stalled_after
  retrying     in a turn, but requests to its model fail
  suspended    its process is stopped (Ctrl-Z or SIGSTOP)
  finished     its turn ended; shown until you typed there, looked at it, or 30 minutes passed
  starting     started on its conversation; nothing has been typed in it yet
  busy         in a turn
  idle         at its prompt
  live         it runs, and does not report what it does
  unknown      its process cannot be checked from here
  ended, dead  it is over; shown with -a
A question mark means that nothing reports the end of that state, and it is old.

Examples:
  tenure ps
  tenure ps --tree             child sessions below their parents
  tenure ps --watch            redraw on every change; press q to quit
  tenure ps -q                 only the handles, one per line
  tenure ps --state asks,failed --repo acme/web
  tenure ps -a --limit 20      include ended sessions
  tenure ps --json | jq '.sessions[] | select(.state == \"live\") | .handle'")]
pub struct Args {
    /// Include ended sessions
    #[arg(long, short)]
    all: bool,

    /// Show at most N sessions, newest first; 0 for all [default: 200, or all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Show child sessions below their parents
    #[arg(long, short)]
    tree: bool,

    #[command(flatten)]
    filter: FilterArgs,

    /// Redraw on every change until interrupted; with --json, print one object per line
    #[arg(long, short)]
    watch: bool,
}

impl Args {
    fn wanted(&self, app: &App) -> SessionListQuery {
        SessionListQuery {
            all: self.all,
            limit: app.limit(self.limit, MAX_SHOWN),
            tree: self.tree,
            filter: self.filter.filter(),
        }
    }
}

/// The shortest time between two redraws.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// The longest time between two redraws: ages grow, turns stall, and agents without hooks start.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// The same on a terminal, whose size may change too.
const REDRAWN_EVERY: Duration = Duration::from_secs(2);
/// How many processes are watched at once.
const MAX_WATCHED: usize = 256;

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = match app.open_until_exit() {
        Ok(context) => context,
        Err(failure) => return spooled::remembered(failure),
    };
    if let Some(other) = attention::other_store(&context).filter(|_| !args.watch) {
        warn(format!("warning: {other}"));
    }
    if args.watch {
        watch(args, app, &mut context)
    } else if app.style.json {
        session_list::write(&args.wanted(app), app, &mut context)
    } else {
        look(args, app, &mut context)
    }
}

fn look(args: &Args, app: &App, context: &mut Context) -> Outcome {
    Ok(drawn(args, app, context)?.0)
}

/// The list, and the line above it when it is drawn again and again.
fn drawn(args: &Args, app: &App, context: &mut Context) -> Result<(Output, String), CliError> {
    let wanted = args.wanted(app);
    let (answer, unmanaged) = session_list::find(&wanted, context)?;
    let sessions = &answer.value.items;
    let branches = if args.tree {
        tree::arranged(sessions)
    } else {
        render::flat(sessions)
    };
    let counts = render::counts(&branches, &unmanaged, screen::columns());
    let is_empty = branches.is_empty() && unmanaged.is_empty();
    let mut text = if is_empty && !wanted.filter.is_empty() {
        "no session matches".into()
    } else if is_empty && !app.style.json {
        first_steps::without_sessions()
    } else {
        render::people(&branches, &unmanaged, app.verbose)
    };
    if app.style.quiet {
        text = Lines::default();
        branches
            .iter()
            .for_each(|branch| text.line(&branch.session.handle));
    }
    let all = if args.all { " -a" } else { "" };
    if !app.style.quiet {
        let rest = format!("tenure ps{all} --limit 0");
        let listed = &answer.value;
        render::rest(&mut text, listed.more, listed.more_is_least, &rest);
    }
    let shown = Output::new("sessions", &answer.value.items, text)
        .with("more", &answer.value.more)
        .with("more_is_least", &answer.value.more_is_least)
        .with("unmanaged", &unmanaged)
        .told(&answer);
    let shown = Output {
        is_terse: true,
        ..shown
    };
    Ok((shown, counts))
}

/// Shows the list after each change, until a signal comes, `q` is pressed or the reader leaves.
fn watch(args: &Args, app: &App, context: &mut Context) -> Outcome {
    let redraws = std::io::stdout().is_terminal() && !is_dumb() && !app.style.json;
    let mut before = None;
    let mut screen: Option<Screen> = None;
    let ended = on_change::<Exit, CliError>(context, AT_MOST_EVERY, |context| {
        // Signals are caught by now: whatever ends the watch gives the terminal back.
        if redraws && screen.is_none() {
            screen = Some(enter()?);
        }
        let (mut shown, counts) = drawn(args, app, context)?;
        let now = (lasting(&shown.json), shown.notices.clone());
        if redraws {
            let rows = screen::rows().unwrap_or(usize::MAX);
            let mut text = Lines::from(counts);
            text.extend(&shown.text);
            // The line after the last one, and the one that clears the screen.
            shown.text = text.at_most(rows.saturating_sub(2));
            put(CLEAR)?;
        }
        if redraws || before.as_ref() != Some(&now) {
            let exit = app.show(&shown);
            if exit != Exit::DONE {
                return Ok(Next::Done(exit));
            }
        }
        before = Some(now);
        Ok(Next::Again {
            processes: context.service().open_processes(MAX_WATCHED)?.value,
            limit: if redraws {
                REDRAWN_EVERY
            } else {
                AT_LEAST_EVERY
            },
        })
    })?;
    drop(screen);
    Ok(Output::silent(match ended {
        WatchEnd::Done(exit) => exit,
        WatchEnd::Signal(_) => exit_of_watching(&ended),
    }))
}

fn enter() -> Result<Screen, CliError> {
    let entered = Screen::enter(std::io::stdout(), std::io::stdin()).and_then(|screen| {
        screen.end_with_q()?;
        Ok(screen)
    });
    entered.map_err(|error| no_terminal(&error))
}

fn no_terminal(error: &std::io::Error) -> CliError {
    let message = format!("cannot use the terminal: {error}");
    let hint = Hint::run("ps", ["--watch", "--json"], "to watch without a terminal");
    CliError::new(Class::Internal, "internal", message, hint)
}

/// What is left of an answer without what time alone changes.
fn lasting(answer: &Map<String, Value>) -> Map<String, Value> {
    let mut answer = answer.clone();
    let sessions = answer.get_mut("sessions").and_then(Value::as_array_mut);
    for session in sessions.into_iter().flatten() {
        for part in ["why", "last_seen_at", "lease_until"] {
            session[part].take();
        }
    }
    answer
}
