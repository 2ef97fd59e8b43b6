use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use tenure_agents::Turn;
use tenure_core::text;
use tenure_core::time::Span;
use tenure_service::Resumable;
use tenure_service::view::SessionView;

use crate::app::{App, env};
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

/// A session, and how it is taken up again.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ResumeView {
    pub session: SessionView,
    /// Where to run it.
    pub dir: String,
    /// The command line, word by word; none where this agent has none.
    pub argv: Option<Vec<String>>,
    /// The same for a shell.
    pub command: Option<String>,
    /// Why it cannot be resumed, if it cannot.
    pub problem: Option<String>,
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let mut opened = app.open()?;
    if let Some(name) = &args.name {
        let answer = opened.service().resumable(name)?;
        let view = view(&answer.value);
        let told = |trouble: Trouble| Trouble {
            notices: answer.notices.clone(),
            ..trouble
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
    let problem = match (&argv, &found.transcript) {
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
            let hint = format!("tenure show {} says more", view.session.handle);
            Err(Trouble::new(Exit::NOT_FOUND, "not_found", message, hint))
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
    let hint = format!(
        "put {} on PATH, or: tenure resume {} --print",
        argv[0], view.session.handle
    );
    Err(Trouble::new(code, "not_run", message, hint))
}

fn start_all(views: &[ResumeView]) -> Result<(), Trouble> {
    if env("TMUX").is_none_or(|value| value.is_empty()) {
        let message = "several agents need a terminal each, and this is no tmux";
        let hint =
            "tenure resume --all --print shows the commands; tenure resume SESSION starts one here";
        return Err(Trouble::new(Exit::USAGE, "usage", message, hint));
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
            let hint = "tenure resume --all --print shows the commands";
            return Err(Trouble::new(Exit::INTERNAL, "internal", message, hint));
        }
    }
    Ok(())
}
