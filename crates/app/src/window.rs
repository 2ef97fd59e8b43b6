//! Going to a session's window: with tmux, or with the user's command.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use tenure_core::text;
use tenure_core::time::Span;
use tenure_core::witness::TerminalPlace;
use tenure_host::clock;
use tenure_host::piped::{Input, Piped};
use tenure_service::Window;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::error::end_and_kill;

use crate::background;
use crate::open::Context;
use crate::tmux;

/// Shows a session's window to the person, or reports where it is and what opens it.
pub fn focus(context: &Context, window: &Window) -> Result<(), Problem> {
    let shown = match &window.place {
        Some(TerminalPlace::Tmux { socket, pane, name }) => show_pane(socket, pane, name),
        Some(TerminalPlace::Terminal(device)) => Err(Unshown {
            why: format!("it runs at {device}, outside tmux"),
            way: Hint::step(
                "set goto.command in ~/.config/tenure/config.toml to a command that focuses your terminal's windows",
            ),
        }),
        Some(TerminalPlace::Gone) => Err(Unshown {
            why: "its terminal is closed".to_owned(),
            way: end_and_kill(&window.session.handle),
        }),
        Some(TerminalPlace::NoWindow) => Err(Unshown {
            why: "it runs without a window".to_owned(),
            way: opened_by_agent(window),
        }),
        None => Err(Unshown {
            why: "its window is unknown".to_owned(),
            way: Hint::run("show", [&window.session.handle], "for details"),
        }),
    };
    let Err(unshown) = shown else {
        return Ok(());
    };
    // A window that is closed is not brought back by any command.
    let is_gone = window.place == Some(TerminalPlace::Gone);
    match &context.settings.goto_command {
        Some(command) if !is_gone => run(command, window),
        _ => {
            let message = format!(
                "cannot switch to {}: {}",
                window.session.handle, unshown.why
            );
            let mut problem = Problem::new(Class::Refused, "not_shown", message, unshown.way);
            problem.reader = window.reader;
            Err(problem)
        }
    }
}

/// Why a window cannot be shown, and what the person can do.
struct Unshown {
    why: String,
    way: Hint,
}

/// The agent's own command, which opens a session that its service runs.
fn opened_by_agent(window: &Window) -> Hint {
    let process = window.process.as_ref();
    let kept = process.and_then(|process| background::running(&window.session.agent, process));
    let Some(kept) = kept else {
        return Hint::run("show", [&window.session.handle], "for details");
    };
    let words = kept.attach.iter().map(|word| word.to_string_lossy());
    let words: Vec<String> = words.map(|word| text::shell(&word)).collect();
    Hint::step(format!("run `{}` to open it", words.join(" ")))
}

fn show_pane(socket: &str, pane: &str, name: &str) -> Result<(), Unshown> {
    let attach = || {
        let words = ["-S", socket, "attach", "-t", pane].map(text::shell);
        let attach = format!("tmux {}", words.join(" "));
        // A tmux inside another has two status lines and needs every key twice.
        Hint::step(match tmux::own_socket() {
            Some(_) => format!("detach from this tmux, then run `{attach}` to open it"),
            None => format!("run `{attach}` to open it here"),
        })
    };
    let is_inside = tmux::own_socket().is_some_and(|own| tmux::is_same(&own, socket));
    let server = tmux::TmuxServer::look(socket);
    let is_seen = server
        .as_ref()
        .and_then(|server| server.pane(pane))
        .is_some_and(|found| found.is_attached);
    if !is_inside && !is_seen {
        return Err(Unshown {
            why: format!("it runs in tmux at {name}, which is not attached to a terminal"),
            way: attach(),
        });
    }
    tmux::show(socket, pane, is_inside).map_err(|why| Unshown {
        why: format!("it runs in tmux at {name} ({why})"),
        way: attach(),
    })
}

/// How long the user's command may take.
const LIMIT: Duration = Duration::from_secs(3);

/// Runs the user's command, without a shell. What it prints does not reach the screen.
fn run(command: &str, window: &Window) -> Result<(), Problem> {
    let words = filled(command, window);
    let refused = |why: String| {
        let message = format!("goto.command failed: {why}");
        let hint = Hint::verb("config", "to see the setting");
        Problem::new(Class::Refused, "not_shown", message, hint)
    };
    let Some((program, arguments)) = words.split_first() else {
        return Err(refused("it is empty".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let until = clock::instant() + LIMIT;
    let ended = Piped::start(&mut command, Input::Nothing).map(|started| started.finish(until));
    let name = text::name(program);
    match ended {
        Ok(Ok(ended)) if ended.status.success() => Ok(()),
        Ok(Ok(ended)) => {
            let how = ended_with(ended.status);
            let said = String::from_utf8_lossy(&ended.errors);
            Err(refused(match text::line(said.trim()) {
                said if said.is_empty() => format!("`{name}` ended with {how}"),
                said => format!("`{name}` ended with {how}: {said}"),
            }))
        }
        Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => Err(refused(format!(
            "`{name}` did not end within {}",
            Span(LIMIT)
        ))),
        Ok(Err(error)) => Err(refused(format!("`{name}` cannot be awaited ({error})"))),
        Err(error) => Err(refused(format!("`{name}` cannot be started ({error})"))),
    }
}

fn ended_with(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

fn filled(command: &str, window: &Window) -> Vec<String> {
    let (pane, terminal) = match &window.place {
        Some(TerminalPlace::Tmux { pane, .. }) => (pane.clone(), String::new()),
        Some(TerminalPlace::Terminal(device)) => (String::new(), format!("/dev/{device}")),
        Some(TerminalPlace::Gone | TerminalPlace::NoWindow) | None => Default::default(),
    };
    let pid = window.session.process.pid;
    let pid = pid.map_or(String::new(), |pid| pid.to_string());
    let values = [
        ("{handle}", window.session.handle.clone()),
        ("{pid}", pid),
        ("{tty}", terminal),
        ("{pane}", pane),
    ];
    let fill = |word: &str| {
        let word = word.to_owned();
        values
            .iter()
            .fold(word, |word, (name, value)| word.replace(name, value))
    };
    command.split_whitespace().map(fill).collect()
}
