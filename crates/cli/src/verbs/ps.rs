use std::io::IsTerminal;
use std::time::Duration;

use serde_json::{Map, Value};
use tenure_app::open::Opened;
use tenure_app::unmanaged;
use tenure_app::watch::{Ended, Next, on_change};
use tenure_service::ListRequest;

use crate::app::App;
use crate::child::exit_of_watching;
use crate::exit::Exit;
use crate::output::{CLEAR, Outcome, Shown, Trouble, put};
use crate::{first_steps, render, tree};

/// Show sessions: who is alive, where, since when, and what each holds
///
/// Whoever waits for a person comes first. Agents that run without hooks are shown as unmanaged; tenure
/// adopt PID makes a session of one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure ps
  tenure ps --tree             children below their parents
  tenure ps --watch            again whenever something changes
  tenure ps -a --limit 20      also those that ended
  tenure ps --json | jq '.sessions[] | select(.state == \"live\") | .handle'")]
pub struct Args {
    /// Also sessions that ended
    #[arg(long, short)]
    all: bool,

    /// At most this many, the newest first; 0 shows all [default: 200, with --json all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Show children below their parents
    #[arg(long, short)]
    tree: bool,

    /// Show it again whenever something changes, until interrupted; with --json one object a line
    #[arg(long, short)]
    watch: bool,
}

/// How many people are shown unless they say otherwise.
const MOST_SHOWN: usize = 200;
/// How often it is shown at most while much happens.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked again whatever happens: ages grow, turns stall, and agents without hooks start.
const AT_LEAST_EVERY: Duration = Duration::from_secs(5);
/// How many processes are watched at once.
const MOST_WATCHED: usize = 256;

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    match args.watch {
        true => watch(args, app, &mut opened),
        false => look(args, app, &mut opened),
    }
}

fn look(args: &Args, app: &App, opened: &mut Opened) -> Outcome {
    let request = ListRequest {
        closed_too: args.all,
        limit: app.limit(args.limit, MOST_SHOWN),
        ..ListRequest::default()
    };
    let mut answer = opened.service().list(&request)?;
    let unmanaged = unmanaged::shown(opened)?;
    let sessions = &answer.value.items;
    let branches = match args.tree {
        true => tree::arranged(sessions),
        false => render::flat(sessions),
    };
    let is_empty = branches.is_empty() && unmanaged.is_empty();
    let mut text = match is_empty && !app.style.json {
        true => first_steps::without_sessions(),
        false => render::people(&branches, &unmanaged, app.verbose),
    };
    let all = if args.all { " -a" } else { "" };
    render::rest(
        &mut text,
        answer.value.more,
        &format!("tenure ps{all} --limit 0"),
    );
    if args.tree {
        let order = branches.iter().map(|branch| branch.session.clone());
        answer.value.items = order.collect();
    }
    Ok(Shown::new("sessions", &answer.value.items, text)
        .with("more", &answer.value.more)
        .with("unmanaged", &unmanaged)
        .told(&answer))
}

/// Shows it, and again after each change, until a signal comes or nobody reads it any more.
fn watch(args: &Args, app: &App, opened: &mut Opened) -> Outcome {
    let on_terminal = std::io::stdout().is_terminal();
    let mut before = None;
    let ended = on_change::<Exit, Trouble>(opened, AT_MOST_EVERY, |opened| {
        let shown = look(args, app, opened)?;
        let now = (lasting(&shown.json), shown.notices.clone());
        let redraws = on_terminal && !app.style.json;
        if redraws || before.as_ref() != Some(&now) {
            if redraws {
                put(CLEAR)?;
            }
            let exit = app.show(&shown);
            if exit != Exit::DONE {
                return Ok(Next::Done(exit));
            }
        }
        before = Some(now);
        Ok(Next::Again {
            processes: opened.service().open_processes(MOST_WATCHED)?.value,
            limit: AT_LEAST_EVERY,
        })
    })?;
    Ok(Shown::silent(match ended {
        Ended::Done(exit) => exit,
        Ended::Signal(_) => exit_of_watching(&ended),
    }))
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
