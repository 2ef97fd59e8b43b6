use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use tenure_agents::Turn;
use tenure_app::background::{self, Kept, typed};
use tenure_app::open::Opened;
use tenure_core::text;
use tenure_core::time::Span;
use tenure_host::env::var as env;
use tenure_service::Resumable;
use tenure_service::answer::{Class, Hint};
use tenure_service::view::ResumeView;

use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Shown, Trouble};

/// Start an agent again on what it was doing: its own resume command, in its directory
///
/// Refused while the conversation lives. --all is for after a crash or a reboot: every session that died
/// lately, each in a window of its own where this is a tmux; --print shows the commands instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure resume claude-k7qd
  tenure resume --all --print        what died within a day, as commands
  tenure resume --all --since 3d")]
pub struct Args {
    /// Which session: its handle, its id, or any unique part of either
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    name: Option<String>,

    /// Every session that died lately
    #[arg(long, conflicts_with = "name")]
    all: bool,

    /// How long ago counts as lately
    #[arg(long, value_name = "SPAN", default_value = "1d", requires = "all")]
    since: String,

    /// Print the commands and run nothing
    #[arg(long)]
    print: bool,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    if let Some(name) = &args.name {
        let answer = match opened.service().resumable(name) {
            Ok(answer) => answer,
            Err(failure) => return Err(with_attach(failure.into(), &mut opened, name)),
        };
        let view = view(&answer.value);
        let told = |mut trouble: Trouble| {
            trouble.problem.notices = answer.notices.clone();
            trouble
        };
        ready(&view).map_err(told)?;
        if args.print {
            let text = line(&view).unwrap_or_default();
            return Ok(Shown::new("resume", &[&view], text).told(&answer));
        }
        // What runs next is the agent: nothing can be said after that.
        let channel = app.style.tell(&answer.notices);
        app.delivered(&answer.notices, channel);
        return start(&view);
    }
    let Span(within) = args
        .since
        .parse::<Span>()
        .map_err(tenure_service::error::Error::from)?;
    let answer = opened.service().all_resumable(within)?;
    let views: Vec<ResumeView> = answer.value.iter().map(view).collect();
    let mut text = Lines::default();
    if views.is_empty() {
        text.line(format!("nothing died within {}", Span(within)));
    }
    views.iter().filter_map(line).for_each(|one| text.line(one));
    if !args.print && !views.is_empty() {
        start_all(&views)?;
    }
    Ok(Shown::new("resume", &views, text).told(&answer))
}

fn view(found: &Resumable) -> ResumeView {
    let session = found.session.clone();
    let turn = Turn {
        resume: Some(&found.native_id),
        prompt: None,
    };
    let argv = tenure_agents::adapter(&session.agent).and_then(|adapter| adapter.command(&turn));
    let gone = |path: &String| !Path::new(path).exists();
    let kept = background::kept(&session.agent, &found.native_id);
    let problem = match (&argv, &found.transcript) {
        _ if kept.is_some() => kept.as_ref().map(keeps),
        (None, _) => Some(format!(
            "tenure knows no command that resumes {}",
            session.agent
        )),
        (_, Some(path)) if gone(path) => Some(format!(
            "its transcript {path} is not there",
            path = text::name(path)
        )),
        _ if gone(&session.dir) => Some(format!(
            "its directory {} is gone",
            text::name(&session.dir)
        )),
        _ => None,
    };
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
        problem,
        attach: kept.map(|kept| typed(&kept.attach)),
    }
}

/// What is said of a conversation that a service of its agent's keeps.
fn keeps(kept: &Kept) -> String {
    format!(
        "{} has it and starts it again by itself; run `{}` to open it",
        kept.service,
        typed(&kept.attach)
    )
}

/// Adds how a living session is opened that a service of its agent's runs.
fn with_attach(trouble: Trouble, opened: &mut Opened, name: &str) -> Trouble {
    if trouble.problem.kind != "live" {
        return trouble;
    }
    let shown = opened.service().show(name).ok();
    match shown.and_then(|shown| background::kept_session(&shown.value.session)) {
        Some(kept) => {
            let attach = typed(&kept.attach);
            trouble.or(Hint::step(format!("run `{attach}` to open it")))
        }
        None => trouble,
    }
}

fn line(view: &ResumeView) -> Option<String> {
    let handle = &view.session.handle;
    match (&view.problem, &view.command) {
        (None, Some(command)) => Some(format!("{command}    # {handle}")),
        (Some(problem), _) => Some(format!("# {handle}: {problem}")),
        (None, None) => None,
    }
}

fn ready(view: &ResumeView) -> Result<&[String], Trouble> {
    match (&view.problem, &view.argv) {
        (None, Some(argv)) => Ok(argv),
        (problem, _) => {
            let why = problem.clone().unwrap_or_default();
            let message = format!("{} cannot be resumed: {why}", view.session.handle);
            if let Some(attach) = &view.attach {
                let hint = Hint::step(format!("run `{attach}` to open it"));
                return Err(Trouble::new(Class::Held, "live", message, hint));
            }
            let hint = Hint::run("show", [&view.session.handle], "for details");
            Err(Trouble::new(Class::NotFound, "not_found", message, hint))
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
    let message = format!("cannot run {}: {error}", argv[0]);
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => Exit::COMMAND_NOT_FOUND,
        _ => Exit::COMMAND_NOT_EXECUTABLE,
    };
    let hint = Hint::step(format!("put {} on PATH", argv[0]));
    let args = [view.session.handle.as_str(), "--print"];
    let print = Hint::run("resume", args, "to see the command");
    let trouble = Trouble::new(Class::NotFound, "not_run", message, hint);
    Err(trouble.or(print).exits(code))
}

fn print_all() -> Hint {
    Hint::run("resume", ["--all", "--print"], "to see the commands")
}

fn start_all(views: &[ResumeView]) -> Result<(), Trouble> {
    if env("TMUX").is_none_or(|value| value.is_empty()) {
        let message = "several agents need a terminal each, and this is no tmux";
        let one = Hint::run("resume", ["SESSION"], "to start one here");
        return Err(Trouble::new(Class::Usage, "usage", message, print_all()).or(one));
    }
    for view in views.iter().filter(|view| view.problem.is_none()) {
        let argv = ready(view)?;
        let done = Command::new("tmux")
            .args([
                "new-window",
                "-d",
                "-n",
                &view.session.handle,
                "-c",
                &view.dir,
                "--",
            ])
            .args(argv)
            .status();
        if !done.is_ok_and(|status| status.success()) {
            let message = format!("tmux opened no window for {}", view.session.handle);
            return Err(Trouble::new(
                Class::Internal,
                "internal",
                message,
                print_all(),
            ));
        }
    }
    Ok(())
}
