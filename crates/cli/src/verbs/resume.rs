mod when_reset;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_agents::{KEY_SCHEME, TurnRequest};
use tenure_app::background::{self, BackgroundSession, typed};
use tenure_app::location;
use tenure_app::open::Context;
use tenure_app::window_memory::{self, KnownWindow};
use tenure_app::{starting, tmux};
use tenure_core::text;
use tenure_core::time::{Span, Timestamp};
use tenure_host::clock;
use tenure_host::env::var as env;
use tenure_host::kernel_lock::{HeldLock, LockError, LockName, Patience, Sharing};
use tenure_service::Resumable;
use tenure_service::answer::{Class, Hint};
use tenure_service::view::{ResumeView, SessionView};

use crate::app::App;
use crate::columns::{Cell, Column, column, fitted};
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output, ago, warn};
use crate::render::{noted, whereabouts};
use crate::screen;
use crate::sink;
use crate::standing::lately;

/// Resume an agent's conversation, with the agent's own resume command in its directory
///
/// Without SESSION, lists the sessions that were cut off within a day by a crash, a reboot, a signal or a closed
/// window. A session that its user ended is not listed, but can be resumed by name. Options the session was started
/// with are repeated if the agent does not restore them itself. A conversation that is already open is not started
/// again. --all starts every listed session in its own tmux window, when run inside tmux; only a person may do that. The
/// windows get the order and the names that they had when `tenure ps` or another list last saw them. --print prints the
/// commands instead. --when-reset waits in the foreground for the time that the provider named. An agent that lives and continues
/// by itself is only named; one that is still open then is left alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure resume                      list sessions that were cut off within a day
  tenure resume claude-k7qd
  tenure resume --all                start all of them in tmux windows
  tenure resume --print --since 3d   print the commands
  tenure resume --when-reset         wait for usage limits to end, then resume what is dead

Run `tenure dismiss SESSION` to remove a session from the list.")]
pub struct Args {
    /// Session to resume: handle, id, or a unique part of either
    #[arg(value_name = "SESSION")]
    name: Option<String>,

    /// Start every listed session
    #[arg(long, conflicts_with = "name")]
    all: bool,

    /// How far back to look
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1d",
        conflicts_with = "name"
    )]
    since: Span,

    /// Print the commands without running them
    #[arg(long)]
    print: bool,

    /// Wait until the usage limit of SESSION ends, and resume it then if it has ended; without SESSION, all that are limited
    #[arg(long, conflicts_with_all = ["all", "print", "since"])]
    when_reset: bool,
}

/// The lock under which several are started: of two that do, the second one sees what the first one started.
const LOCK: &str = "tenure-resume-all";
/// How long to wait for another process that starts several.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a window may take to start its program.
const WINDOW: Duration = Duration::from_secs(2);
/// How long ago a session that is waited for may have been cut off when the wait begins.
const CUT_OFF_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut context = app.open()?;
    if let Some(name) = &args.name {
        return run_one(args, app, &mut context, name);
    }
    if args.when_reset {
        return run_limited(&mut context);
    }
    let Span(within) = args.since;
    let starts = args.all && !args.print;
    if starts {
        context.service().may_start_all()?;
    }
    let _turn = starts.then(turn).transpose()?;
    let answer = context.service().all_resumable(within)?;
    let mut views: Vec<ResumeView> = answer.value.iter().map(view).collect();
    let started = take_started(&mut views);
    let mut text = Lines::default();
    if views.is_empty() && started.is_empty() {
        text.line(format!(
            "no session was cut off in the last {}",
            lately(within)
        ));
    } else if starts {
        views
            .iter()
            .filter_map(left_out)
            .for_each(|one| text.line(one));
    } else if args.print {
        views.iter().filter_map(line).for_each(|one| text.line(one));
    } else if !views.is_empty() {
        text = listed(&views);
    }
    let may_start = |one: &&ResumeView| one.problem.is_none() && !sends(one);
    let mut startable: Vec<&ResumeView> = views.iter().filter(may_start).collect();
    let windows = window_memory::known(context.dir());
    let window = |view: &ResumeView| windows.get(&view.session.id);
    startable.sort_by_key(|view| (window(view).is_none(), window(view)));
    match startable.as_slice() {
        [one] if starts && !is_in_tmux() => {
            // What runs next is the agent: nothing can be said after that.
            let channel = app.style.tell(&answer.notices);
            app.delivered(&answer.notices, channel);
            return start(one);
        }
        some if starts && !some.is_empty() => text.extend(&start_all(some, window)?),
        _ => {}
    }
    for one in &started {
        text.line(if args.print {
            format!("# {one}")
        } else {
            one.clone()
        });
    }
    Ok(Output::new("resume", &views, text).told(&answer))
}

/// Waits for the limits of all sessions, one after the other, and starts each that has ended by then. What becomes of
/// each is said at once, because the next wait may be long.
fn run_limited(context: &mut Context) -> Outcome {
    context.service().may_start_all()?;
    let begun = clock::wall();
    let mut text = Lines::default();
    let mut waiting = Vec::new();
    for one in when_reset::all(context)? {
        match one.continues() {
            Some(said) => text.line(said),
            None => waiting.push(one),
        }
    }
    if waiting.is_empty() {
        if text.is_empty() {
            text.line("no session is limited");
        }
        return Ok(Output::new("resume", &Vec::<ResumeView>::new(), text));
    }
    if waiting.len() > 1 && !is_in_tmux() {
        return Err(needs_tmux("resume --when-reset"));
    }
    if !text.is_empty() {
        sink::mention(text.as_str());
    }
    let windows = window_memory::known(context.dir());
    let mut views = Vec::new();
    let mut exit = None;
    while let Some(mut one) = when_reset::take_first(&mut waiting) {
        one.wait();
        if one.is_still_limited(context) {
            waiting.push(one);
            continue;
        }
        match start_limited(context, &one.session, begun, &windows) {
            Ok(found) => views.extend(found),
            // Without tmux there is no other one.
            Err(failure) if !is_in_tmux() => return Err(failure),
            Err(failure) => {
                let (handle, why) = (&one.session.handle, &failure.problem.message);
                warn(format!("not resumed: {handle}: {why}"));
                exit = exit.or(Some(failure.exit));
            }
        }
    }
    let output = Output::new("resume", &views, Lines::default());
    Ok(Output { exit, ..output })
}

/// Starts a session whose limit has ended, as `--all` does, unless somebody resumed it meanwhile.
fn start_limited(
    context: &mut Context,
    session: &SessionView,
    begun: Timestamp,
    windows: &BTreeMap<String, KnownWindow>,
) -> Result<Option<ResumeView>, CliError> {
    let _turn = turn()?;
    let within = CUT_OFF_WITHIN + begun.age_at(clock::wall());
    let answer = context.service().all_resumable(within)?;
    let found = answer.value.iter().find(|one| one.session.id == session.id);
    let Some(view) = found.map(view) else {
        warn(format!("{} needs no resume any more", session.handle));
        return Ok(None);
    };
    if let Some(pid) = view.session.starting() {
        let handle = &view.session.handle;
        warn(format!("{handle} is starting already (pid {pid})"));
        return Ok(None);
    }
    if let Some(said) = left_out(&view) {
        warn(said);
    } else if is_in_tmux() {
        let said = start_all(&[&view], |view: &ResumeView| windows.get(&view.session.id))?;
        sink::mention(said.as_str());
    } else {
        // What runs next is the agent: nothing can be said after that.
        start(&view)?;
    }
    Ok(Some(view))
}

fn run_one(args: &Args, app: &App, context: &mut Context, name: &str) -> Outcome {
    if args.when_reset {
        let mut limited = when_reset::named(context, name)?;
        if let Some(said) = limited.continues() {
            return Ok(Output::new("resume", &Vec::<ResumeView>::new(), said));
        }
        limited.wait();
        while limited.is_still_limited(context) {
            limited.wait();
        }
    }
    // Others may have waited for the same reset.
    let _turn = args.when_reset.then(turn).transpose()?;
    let answer = match context.service().resumable(name) {
        Ok(answer) => answer,
        Err(failure) => return Err(with_attach(failure.into(), context, name)),
    };
    let view = view(&answer.value);
    let told = |mut failure: CliError| {
        failure.problem.notices = answer.notices.clone();
        failure
    };
    ready(&view).map_err(told)?;
    if let Some(pid) = view.session.starting() {
        let handle = &view.session.handle;
        let message = format!("{handle} is starting (pid {pid})");
        let hint = Hint::run("ps", ["--watch"], "to see when it has registered");
        return Err(told(CliError::new(Class::Held, "live", message, hint)));
    }
    if args.print {
        let text = line(&view).unwrap_or_default();
        return Ok(Output::new("resume", &[&view], text).told(&answer));
    }
    // What runs next is the agent: nothing can be said after that.
    let channel = app.style.tell(&answer.notices);
    app.delivered(&answer.notices, channel);
    start(&view)
}

/// Removes those whose agent has been started again and has not registered yet; returns a line about each.
fn take_started(views: &mut Vec<ResumeView>) -> Vec<String> {
    let mut started = Vec::new();
    views.retain(|view| match view.session.starting() {
        Some(pid) => {
            started.push(format!("{} is starting (pid {pid})", view.session.handle));
            false
        }
        None => true,
    });
    started
}

fn turn() -> Result<HeldLock, CliError> {
    let locks = location::locks()?;
    let name = LockName::plain(LOCK).map_err(|error| busy(&error))?;
    let patience = Patience::AtMost(PATIENCE);
    locks
        .lock(&name, Sharing::Exclusive, patience)
        .map_err(|error| busy(&error))
}

fn busy(error: &LockError) -> CliError {
    let message = format!("another `tenure resume --all` is still running: {error}");
    CliError::new(Class::TimedOut, "timed_out", message, print_all())
}

fn view(found: &Resumable) -> ResumeView {
    let session = found.session.clone();
    let turn = TurnRequest {
        resume: Some(&found.native_id),
        address: found
            .item
            .as_ref()
            .and_then(|item| item.as_str().strip_prefix(KEY_SCHEME)),
        prompt: None,
        flags: &found.flags,
    };
    let argv = tenure_agents::adapter(&session.agent).and_then(|adapter| adapter.command(&turn));
    let kept = background::kept(&session.agent, &found.native_id);
    let argv = argv.map(|words| {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        words.iter().map(text).collect::<Vec<String>>()
    });
    let command = argv.as_ref().map(|argv| {
        let words: Vec<String> = argv.iter().map(|word| text::shell(word)).collect();
        format!("cd {} && {}", text::shell(&session.dir), words.join(" "))
    });
    ResumeView {
        dir: session.dir.clone(),
        session,
        argv,
        command,
        held: found.held.clone(),
        problem: kept.as_ref().map(keeps).or_else(|| found.problem.clone()),
        attach: kept.map(|kept| typed(&kept.attach)),
    }
}

/// The message about a conversation that a service of its agent's keeps.
fn keeps(kept: &BackgroundSession) -> String {
    format!("{} runs it and restarts it by itself", kept.service)
}

/// Why a conversation cannot be resumed, and how to open it instead.
fn problem(view: &ResumeView) -> Option<String> {
    let problem = view.problem.as_ref()?;
    Some(match &view.attach {
        Some(attach) => format!("{problem}; run `{attach}` to open it"),
        None => problem.clone(),
    })
}

/// Adds how to open a live session that its agent's own service runs.
fn with_attach(failure: CliError, context: &mut Context, name: &str) -> CliError {
    if failure.problem.kind != "live" {
        return failure;
    }
    let shown = context.service().show(name).ok();
    match shown.and_then(|shown| background::kept_session(&shown.value.session)) {
        Some(kept) => {
            let attach = typed(&kept.attach);
            failure.or(Hint::step(format!("run `{attach}` to open it")))
        }
        None => failure,
    }
}

/// On a narrow terminal COMMAND goes first: `tenure resume SESSION` runs it.
const COLUMNS: &[Column] = &[
    column("SESSION", 24, 0),
    column("TITLE", 16, 1),
    column("WHERE", 14, 3),
    column("CUT OFF", 14, 2),
    column("HELD", 10, 4),
    column("COMMAND", 30, 5),
];

/// What can be resumed, for people.
fn listed(views: &[ResumeView]) -> Lines {
    let now = clock::wall();
    let dash = || "-".to_owned();
    let row = |view: &ResumeView| {
        let session = &view.session;
        let when = session.ended_at.map_or_else(dash, |at| ago(at, now));
        let how = session.end_reason.as_deref().unwrap_or_default();
        let held: Vec<&str> = view.held.iter().map(|held| held.key.as_str()).collect();
        let command = match problem(view) {
            Some(problem) => format!("cannot be resumed: {problem}"),
            None => view.command.clone().unwrap_or_default(),
        };
        vec![
            Cell::plain(session.handle.clone()),
            Cell::plain(session.title.clone().unwrap_or_else(dash)),
            Cell::plain(whereabouts(session)),
            Cell::plain(format!("{when}: {how}")),
            Cell::plain(if held.is_empty() {
                dash()
            } else {
                held.join(", ")
            }),
            Cell::plain(command),
        ]
    };
    let rows: Vec<Vec<Cell>> = views.iter().map(row).collect();
    let room = screen::columns();
    let mut text = fitted(COLUMNS, &rows, room);
    let note = "run `tenure resume SESSION` to start one, `tenure resume --all` to start each in a tmux window, \
                `tenure dismiss SESSION` to remove one from this list";
    noted(&mut text, note, room);
    text
}

fn line(view: &ResumeView) -> Option<String> {
    let handle = &view.session.handle;
    match (problem(view), &view.command) {
        (None, Some(command)) => Some(format!("{command}    # {handle}")),
        (Some(problem), _) => Some(format!("# {handle}: {problem}")),
        (None, None) => None,
    }
}

/// Why `--all` does not start it.
fn left_out(view: &ResumeView) -> Option<String> {
    let handle = &view.session.handle;
    match problem(view) {
        Some(problem) => Some(format!("{handle} cannot be resumed: {problem}")),
        None => sends(view).then(|| {
            format!("{handle} was left out, because resuming it sends a message; run `tenure resume {handle}` to do that")
        }),
    }
}

/// Whether resuming it sends its model a message.
fn sends(view: &ResumeView) -> bool {
    tenure_agents::adapter(&view.session.agent).is_some_and(|adapter| adapter.resuming_sends)
}

fn ready(view: &ResumeView) -> Result<&[String], CliError> {
    match (&view.problem, &view.argv) {
        (None, Some(argv)) => Ok(argv),
        (problem, _) => {
            let why = problem.clone().unwrap_or_default();
            let message = format!("{} cannot be resumed: {why}", view.session.handle);
            if let Some(attach) = &view.attach {
                let hint = Hint::step(format!("run `{attach}` to open it"));
                return Err(CliError::new(Class::Held, "live", message, hint));
            }
            let hint = Hint::run("show", [&view.session.handle], "for details");
            Err(CliError::new(Class::NotFound, "not_found", message, hint))
        }
    }
}

/// Becomes the agent: its terminal, its signals and its exit code are then its own.
fn start(view: &ResumeView) -> Outcome {
    let argv = ready(view)?;
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).current_dir(&view.dir);
    command.env_remove("TENURE_SESSION");
    let error = command.exec();
    let program = &argv[0];
    let (code, message, hint) = match error.kind() {
        std::io::ErrorKind::NotFound => (
            Exit::COMMAND_NOT_FOUND,
            format!("{program} was not found"),
            format!("install {program}, or add its directory to PATH"),
        ),
        std::io::ErrorKind::PermissionDenied => (
            Exit::COMMAND_NOT_EXECUTABLE,
            format!("{program} is not executable"),
            format!("make {program} executable, or install it again"),
        ),
        _ => (
            Exit::COMMAND_NOT_EXECUTABLE,
            format!("cannot run {program}: {error}"),
            format!("install {program} again"),
        ),
    };
    let hint = Hint::step(hint);
    let args = [view.session.handle.as_str(), "--print"];
    let print = Hint::run("resume", args, "to see the command");
    let failure = CliError::new(Class::NotFound, "not_run", message, hint);
    Err(failure.or(print).exits(code))
}

fn print_all() -> Hint {
    Hint::run("resume", ["--all", "--print"], "to see the commands")
}

fn is_in_tmux() -> bool {
    env("TMUX").is_some_and(|value| !value.is_empty())
}

fn needs_tmux(verb: &str) -> CliError {
    let message = format!("`tenure {verb}` must run inside tmux: each agent needs its own window");
    let one = Hint::run("resume", ["SESSION"], "to start one here");
    CliError::new(Class::Usage, "usage", message, print_all()).or(one)
}

/// Starts each in a window of its own, with the name of the one that it had; the lines say which and where.
fn start_all<'w>(
    views: &[&ResumeView],
    known: impl Fn(&ResumeView) -> Option<&'w KnownWindow>,
) -> Result<Lines, CliError> {
    if !is_in_tmux() {
        return Err(needs_tmux("resume --all"));
    }
    let mut text = Lines::default();
    for view in views {
        let argv = ready(view)?;
        let named = known(view).and_then(|window| window.name.as_deref());
        let name = tmux::literal(named.unwrap_or(&view.session.handle));
        let done = Command::new(tmux::program())
            .args([
                "new-window",
                "-d",
                "-P",
                "-F",
                "#{pane_pid} #{session_name}:#{window_index}",
                "-n",
                &name,
                "-c",
                &tmux::literal(&view.dir),
                "--",
            ])
            .args(argv)
            .stderr(Stdio::inherit())
            .output();
        let Some(done) = done.ok().filter(|done| done.status.success()) else {
            let message = format!("tmux did not open a window for {}", view.session.handle);
            return Err(CliError::new(
                Class::Internal,
                "internal",
                message,
                print_all(),
            ));
        };
        let said = String::from_utf8_lossy(&done.stdout);
        let said = said.trim();
        let (pid, window) = said.split_once(' ').unwrap_or((said, ""));
        if let Ok(pid) = pid.parse() {
            starting::await_program(pid, WINDOW);
        }
        let (handle, place) = (&view.session.handle, whereabouts(&view.session));
        text.line(format!(
            "started {handle} in tmux window {window} ({place})"
        ));
    }
    Ok(text)
}
