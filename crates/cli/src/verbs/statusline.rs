use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use serde_json::json;
use tenure_app::glance;
use tenure_app::settings::CONFIG_FAULT;
use tenure_host::event_input;
use tenure_host::watchdog::{Late, Limits, Watchdog};
use tenure_service::Glance;
use tenure_service::answer::Problem;

use crate::app::App;
use crate::output::{Outcome, Output};
use crate::summary;

/// Print one line for an agent's status line: session, claims, warnings; run by the agent
///
/// Reads the agent's input on stdin. Never fails: if nothing is known, the line is short or empty.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure statusline claude

In Claude Code's settings.json:
  \"statusLine\": {\"type\": \"command\", \"command\": \"tenure statusline claude\"}")]
pub struct Args {
    /// Agent
    #[arg(value_name = "AGENT", value_parser = PossibleValuesParser::new(tenure_agents::names(|row| row.has_status_line)))]
    agent: String,
}

/// How long it may take in all; agents draw the line again and again.
const LIMIT: Duration = Duration::from_millis(700);
/// The same for waits that know no limit.
const LIMITS: Limits = Limits {
    answer: Duration::from_millis(800),
    end: Duration::from_millis(900),
};
const NO_ANSWER: &str = "tenure: no answer";
const NO_SETTINGS: &str = "tenure: its settings cannot be read; run `tenure ps`";

pub fn run(args: &Args, app: &App) -> Outcome {
    let began = tenure_host::clock::instant();
    let late = if app.style.json {
        json!({"v": 1, "statusline": NO_ANSWER, "notices": []}).to_string()
    } else {
        NO_ANSWER.to_owned()
    };
    let dog = Watchdog::start(began, LIMITS, move || Late {
        stdout: format!("{late}\n").into_bytes(),
        stderr: Vec::new(),
    });
    let text = match std::panic::catch_unwind(|| look(args, began)) {
        Ok(Ok(glance)) => glance.as_ref().map(summary::glance).unwrap_or_default(),
        // Nothing else on the screen says that the hooks do nothing.
        Ok(Err(problem)) if problem.kind == CONFIG_FAULT => NO_SETTINGS.into(),
        Ok(Err(_)) | Err(_) => NO_ANSWER.into(),
    };
    if !dog.take_answer() {
        dog.await_end();
    }
    Ok(Output::new("statusline", &text.as_str(), text.clone()))
}

fn look(args: &Args, began: Instant) -> Result<Option<Glance>, Problem> {
    let event = event_input::read(began + LIMIT / 2).unwrap_or_default();
    glance::of_agent(&args.agent, &event, began + LIMIT)
}
