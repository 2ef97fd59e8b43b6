use std::convert::Infallible;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use serde_json::json;
use tenure_core::id::AgentName;
use tenure_core::program::Found;
use tenure_host::watchdog::{Late, Limits, Watchdog};
use tenure_service::{Glance, Glancer};

use super::hook::{Whose, own_process, read_event};
use crate::app::{App, HookStore};
use crate::lines::Lines;
use crate::output::{Outcome, Shown, Trouble, paint_for_agent};

/// Print one line for an agent's status line: session, claims, warnings; called by the agent
///
/// Reads what the agent sends on stdin. It never fails: where nothing is known the line is short or empty.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure statusline claude

In Claude Code's settings.json:
  \"statusLine\": {\"type\": \"command\", \"command\": \"tenure statusline claude\"}")]
pub struct Args {
    /// Which agent
    #[arg(value_name = "AGENT", value_parser = PossibleValuesParser::new(tenure_agents::names(|row| row.has_status_line)))]
    agent: String,
}

/// How long it may take in all; agents draw the line again and again.
const LIMIT: Duration = Duration::from_millis(700);
/// How many of each are named.
const FEW: usize = 2;

/// The same for waits that know no limit.
const LIMITS: Limits = Limits {
    answer: Duration::from_millis(800),
    end: Duration::from_millis(900),
};
const NO_ANSWER: &str = "tenure: no answer";

pub fn run(args: &Args, app: &App) -> Outcome {
    let began = Instant::now();
    let late = match app.style.json {
        true => json!({"v": 1, "statusline": NO_ANSWER, "notices": []}).to_string(),
        false => NO_ANSWER.to_owned(),
    };
    let dog = Watchdog::start(began, LIMITS, move || Late {
        stdout: format!("{late}\n").into_bytes(),
        stderr: Vec::new(),
    });
    let text = match std::panic::catch_unwind(|| look(args, began)) {
        Ok(Ok(glance)) => glance.as_ref().map(line).unwrap_or_default(),
        Ok(Err(_)) | Err(_) => NO_ANSWER.to_owned(),
    };
    if !dog.take_answer() {
        dog.await_end();
    }
    Ok(Shown::new("statusline", &text, Lines::painted(&text)))
}

fn look(args: &Args, began: Instant) -> Result<Option<Glance>, Trouble> {
    let Some(adapter) = tenure_agents::adapter(&args.agent) else {
        return Ok(None);
    };
    let report = adapter.read(&read_event(began + LIMIT / 2).unwrap_or_default());
    let Some(mut store) = HookStore::prepare_existing(began + LIMIT)? else {
        return Ok(None);
    };
    let process = match own_process::find(adapter, store.machine(), report.pid) {
        Whose::Agent(found) => Some(found.process),
        Whose::Program(program) => match program.find(|_| Ok::<_, Infallible>(false)) {
            Ok(Found::Process(found)) => Some(found.process.clone()),
            Ok(Found::Unclear(_)) | Err(_) => None,
        },
        Whose::Nobody => None,
        Whose::Another(_) => return Ok(None),
    };
    let who = Glancer {
        agent: AgentName::parse(adapter.name).ok(),
        process,
        native_id: report.native_id,
    };
    Ok(store.open()?.glance(&who)?.value)
}

fn line(glance: &Glance) -> String {
    let short = |key: &String| short(key, glance.repo.as_deref()).to_owned();
    let mut parts = vec![glance.handle.clone()];
    if !glance.holds.is_empty() {
        let keys: Vec<String> = glance.holds.iter().map(short).collect();
        parts.push(few(&keys));
    }
    let warn = |text: String| paint_for_agent(&text, "dead");
    let lost: Vec<String> = glance
        .lost
        .iter()
        .map(|(key, handle)| format!("{} to {handle}", short(key)))
        .collect();
    if !lost.is_empty() {
        parts.push(warn(format!("lost {}", few(&lost))));
    }
    if !glance.twins.is_empty() {
        parts.push(warn(format!("also open in {}", few(&glance.twins))));
    }
    if !glance.waiting.is_empty() {
        let text = format!("waiting for you: {}", few(&glance.waiting));
        parts.push(paint_for_agent(&text, "waiting"));
    }
    parts.join(" | ")
}

fn few(names: &[String]) -> String {
    let shown = names[..names.len().min(FEW)].join(", ");
    match names.len() {
        n if n > FEW => format!("{shown} +{}", n - FEW),
        _ => shown,
    }
}

/// `issue:acme/web#42` as `#42` in that repository, and a path without it: the line is narrow.
fn short<'a>(key: &'a str, repo: Option<&str>) -> &'a str {
    let Some(repo) = repo else {
        return key;
    };
    let of_issue = key
        .strip_prefix("issue:")
        .and_then(|key| key.strip_prefix(repo));
    let of_path = key
        .strip_prefix("path:")
        .and_then(|key| key.strip_prefix(repo));
    of_issue
        .filter(|rest| rest.starts_with('#'))
        .or_else(|| of_path.and_then(|rest| rest.strip_prefix(':')))
        .unwrap_or(key)
}
