use std::ffi::OsString;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use serde_json::json;
use tenure_app::glance;
use tenure_app::open::{Purpose, open};
use tenure_app::settings::CONFIG_FAULT;
use tenure_host::event_input;
use tenure_host::watchdog::{Deadlines, Late, Watchdog};
use tenure_service::ListRequest;
use tenure_service::answer::Problem;
use tenure_service::view::SessionView;
use tenure_views::sessions::counted;

use crate::app::App;
use crate::exit::Exit;
use crate::lines::Lines;
use crate::output::{Outcome, Output, Style};
use crate::render::{self, status};

/// Print one line for a status line: of an agent its session, claims and warnings; elsewhere how many sessions do what
///
/// For an agent, reads the agent's input on stdin. For tmux, starship or any other program (plain), counts the sessions
/// as the first line of tenure top does, but no unmanaged agents. Never fails: if nothing is known, the line is short or
/// empty.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure statusline claude
  tenure statusline plain

In Claude Code's settings.json:
  \"statusLine\": {\"type\": \"command\", \"command\": \"tenure statusline claude\"}

In tmux.conf:
  set -g status-right '#(tenure statusline tmux)'

In starship.toml:
  [custom.tenure]
  command = \"tenure statusline starship\"
  when = true")]
pub struct Args {
    /// The agent or program that shows it
    #[arg(value_name = "AGENT|PROGRAM", value_parser = PossibleValuesParser::new(readers()))]
    agent: String,
}

/// Programs that show a line about all sessions.
const PROGRAMS: [&str; 3] = ["tmux", "starship", "plain"];

/// Who shows a line.
fn readers() -> Vec<&'static str> {
    let agents = tenure_agents::names(|row| row.has_status_line);
    agents.into_iter().chain(PROGRAMS).collect()
}

/// How long it may take in all; agents draw the line again and again.
const LIMIT: Duration = Duration::from_millis(700);
/// The same for waits that know no limit.
const LIMITS: Deadlines = Deadlines {
    answer: Duration::from_millis(800),
    end: Duration::from_millis(900),
};
const NO_ANSWER: &str = "tenure: no answer";
const NO_SETTINGS: &str = "tenure: its settings cannot be read; run `tenure ps`";

/// A correct command line of this verb, read without the grammar: agents draw the line again and again. Help and errors
/// are clap's business.
pub fn typed(arguments: &[OsString]) -> Option<(Args, Style)> {
    let mut style = Style {
        json: false,
        quiet: false,
    };
    let mut names = Vec::new();
    for word in arguments.get(1..)? {
        match word.to_str()? {
            "--json" => style.json = true,
            "--quiet" | "-q" => style.quiet = true,
            "--verbose" | "-v" => {}
            flag if flag.starts_with('-') => return None,
            name => names.push(name),
        }
    }
    let ["statusline", agent] = names.as_slice() else {
        return None;
    };
    let is_known = readers().contains(agent);
    let agent = (*agent).to_owned();
    is_known.then_some((Args { agent }, style))
}

pub fn run_typed(args: &Args, style: Style) -> Exit {
    style.show(&draw(args, style)).end(false)
}

pub fn run(args: &Args, app: &App) -> Outcome {
    Ok(draw(args, app.style))
}

fn draw(args: &Args, style: Style) -> Output {
    let began = tenure_host::clock::instant();
    let late = if style.json {
        json!({"v": 1, "statusline": NO_ANSWER, "notices": []}).to_string()
    } else {
        NO_ANSWER.to_owned()
    };
    let dog = Watchdog::start(began, LIMITS, move || Late {
        stdout: format!("{late}\n").into_bytes(),
        stderr: Vec::new(),
    });
    let text = match std::panic::catch_unwind(|| look(args, began)) {
        Ok(Ok(line)) => line,
        // Nothing else on the screen says that the hooks do nothing.
        Ok(Err(problem)) if problem.kind == CONFIG_FAULT => NO_SETTINGS.into(),
        Ok(Err(_)) | Err(_) => NO_ANSWER.into(),
    };
    if !dog.take_answer() {
        dog.await_end();
    }
    Output::new("statusline", &text.as_str(), text.clone())
}

fn look(args: &Args, began: Instant) -> Result<Lines, Problem> {
    if PROGRAMS.contains(&args.agent.as_str()) {
        return fleet(&args.agent);
    }
    let event = event_input::read(began + LIMIT / 2).unwrap_or_default();
    let glance = glance::of_agent(&args.agent, &event, began + LIMIT)?;
    let drawn = glance.as_ref().map(status::glance);
    Ok(drawn.map(Lines::from).unwrap_or_default())
}

/// How many sessions do what; nothing if there are none.
fn fleet(program: &str) -> Result<Lines, Problem> {
    let mut context = open(Purpose::Look)?;
    let listed = context.service().list(&ListRequest::default())?.value;
    let sessions = &listed.items;
    if sessions.is_empty() {
        return Ok(Lines::default());
    }
    let counted = counted(&render::flat(sessions), &[]);
    let waits = sessions.iter().any(SessionView::waits_for_a_person);
    Ok(match (program, waits) {
        ("tmux", true) => format!("#[bold]{counted}#[nobold]").into(),
        _ => counted.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, bool, bool)> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        typed(&words).map(|(args, style)| (args.agent, style.json, style.quiet))
    }

    #[test]
    fn a_correct_line_is_read_and_any_other_is_left_to_the_grammar() {
        let claude = |json, quiet| Some(("claude".to_owned(), json, quiet));
        assert_eq!(read("tenure statusline claude"), claude(false, false));
        assert_eq!(
            read("tenure --json statusline claude -v"),
            claude(true, false)
        );
        assert_eq!(read("tenure statusline -q claude"), claude(false, true));
        assert!(read("tenure statusline tmux").is_some());
        for other in [
            "tenure",
            "tenure statusline",
            "tenure statusline nobody",
            "tenure statusline claude claude",
            "tenure statusline claude --help",
            "tenure statusline --session claude",
            "tenure ps statusline",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
