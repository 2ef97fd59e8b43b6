//! `install`: makes the agents tell tenure what they do.

mod claude_plugin;
mod place;
mod plan;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use serde_json::Value;
use tenure_agents::install::{MODES, word_of};
use tenure_core::trample::Mode;

pub use place::{NAMES, Place, Scope};
pub use plan::{Plan, State, Wanted};

use crate::app::{App, config_and_store};
use crate::exit::Exit;
use crate::output::{Cell, Outcome, Shown, Trouble, table};

/// Make coding agents tell tenure what they do, by hooks in their settings
///
/// Without a name: every agent that is found here. What else is in the settings stays byte for byte as it
/// is; a copy is kept beside a file before its first change. Doing it again changes nothing, and
/// tenure uninstall undoes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure install                        for every agent that is found here
  tenure install --dry-run              show what would change, and change nothing
  tenure install claude --mode block    also refuse writes that collide
  tenure install gemini --project .     in the settings of this project
  tenure install --check                say how things stand; exit 1 unless all are installed
  tenure install claude --plugin DIR    write a plugin directory instead of editing settings")]
pub struct Args {
    /// claude, codex, gemini, opencode
    #[arg(value_name = "AGENT", value_parser = PossibleValuesParser::new(NAMES), hide_possible_values = true)]
    agents: Vec<String>,

    #[command(flatten)]
    whose: Whose,

    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// What a hook does about a write that collides with another session: observe, warn or block; by
    /// default what is installed, or warn
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(MODES.map(word_of)), hide_possible_values = true)]
    mode: Option<String>,

    /// Say for each agent whether it is installed, and change nothing
    #[arg(long, conflicts_with_all = ["dry_run", "mode"])]
    check: bool,

    /// Write a Claude Code plugin to this directory, and leave settings alone
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "user", "project"])]
    plugin: Option<PathBuf>,
}

/// Whose settings.
#[derive(Debug, clap::Args)]
pub struct Whose {
    /// The user's own settings (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,

    /// The settings of the project in this directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl Whose {
    /// The scope that was asked for.
    pub fn scope(&self) -> Result<Scope, Trouble> {
        Scope::of(self.project.as_ref())
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let wanted = Wanted {
        program: own_path()?,
        mode: args.mode.as_deref().and_then(Mode::parse),
        state_dir: state_dir()?,
    };
    if let Some(dir) = &args.plugin {
        return claude_plugin::run(dir, &args.agents, &wanted, args.dry_run);
    }
    let places = places(&args.agents, &args.whose.scope()?)?;
    let plan = |place: Place| Plan::install(place, &wanted);
    let plans: Vec<Plan> = places.into_iter().map(plan).collect::<Result<_, _>>()?;
    if args.check {
        return Ok(checked(&plans));
    }
    if args.dry_run {
        return Ok(dry(&plans));
    }
    if plans.iter().any(|plan| plan.place.agent == "codex") {
        // A sandbox cannot open a directory that is not there.
        app.machine()?;
    }
    for plan in &plans {
        plan.apply()?;
    }
    Ok(installed(&plans))
}

/// The places of the agents that were named, or else of those that are here.
fn places(names: &[String], scope: &Scope) -> Result<Vec<Place>, Trouble> {
    let all: Vec<Place> = NAMES
        .into_iter()
        .map(|agent| Place::of(agent, scope))
        .collect::<Result<_, _>>()?;
    let is_meant = |place: &Place| match names.is_empty() {
        true => place.found,
        false => names.iter().any(|name| name == place.agent),
    };
    let meant: Vec<Place> = all.into_iter().filter(is_meant).collect();
    if meant.is_empty() {
        let message = format!("none of {} is here", NAMES.join(", "));
        let hint = "name the agent to install for it all the same, as in: tenure install claude";
        return Err(Trouble::new(Exit::NOT_FOUND, "not_found", message, hint));
    }
    Ok(meant)
}

/// The tenure that runs.
fn own_path() -> Result<String, Trouble> {
    let lost = |why: String| {
        let hint = "run tenure by a path that is plain text";
        Trouble::new(Exit::INVALID, "invalid", why, hint)
    };
    let path = std::env::current_exe()
        .map_err(|error| lost(format!("cannot tell where tenure itself is: {error}")))?;
    match path.to_str() {
        Some(text) if path.is_file() && !text.contains(['\n', '\r']) => Ok(text.to_owned()),
        _ => Err(lost(format!(
            "tenure itself is at {}, which cannot be written into settings",
            path.display()
        ))),
    }
}

/// The directory that hooks and sandboxed commands write to.
pub fn state_dir() -> Result<String, Trouble> {
    let (_, store) = config_and_store()?;
    let dir = store.parent().unwrap_or(&store);
    Ok(dir.to_string_lossy().into_owned())
}

/// What would change.
pub fn dry(plans: &[Plan]) -> Shown {
    let mut text = String::new();
    let mut agents = Vec::new();
    for plan in plans {
        let diffs: Vec<String> = plan.changes.iter().map(plan::Change::diff).collect();
        match diffs.is_empty() {
            true => add(&mut text, &format!("{}: nothing to do", plan.place.agent)),
            false => add(&mut text, diffs.concat().trim_end()),
        }
        let mut part = plan.json(plan.state);
        part["diff"] = Value::from(diffs.concat());
        agents.push(part);
    }
    Shown::new("agents", &agents, text).with("dry_run", &true)
}

fn installed(plans: &[Plan]) -> Shown {
    let mut text = String::new();
    for plan in plans {
        let (agent, mode) = (plan.place.agent, plan.mode.map_or("", word_of));
        let word = match (plan.changes.is_empty(), plan.state) {
            (true, _) => "already installed",
            (false, State::Outdated) => "brought up to date",
            (false, _) => "installed",
        };
        add(&mut text, &format!("{agent}: {word}, mode {mode}"));
        for line in plan.done().iter().chain(&plan.notes) {
            add(&mut text, &format!("  {line}"));
        }
    }
    if plans.iter().any(|plan| !plan.changes.is_empty()) {
        add(
            &mut text,
            "Sessions that start from now on are seen; tenure ps shows them.",
        );
    }
    let agents: Vec<Value> = plans
        .iter()
        .map(|plan| plan.json(State::Installed))
        .collect();
    Shown::new("agents", &agents, text)
}

fn checked(plans: &[Plan]) -> Shown {
    let rows: Vec<Vec<Cell>> = plans.iter().map(row).collect();
    let mut text = table(&["AGENT", "STATE", "MODE", "SCOPE", "FILE"], &rows);
    let mut agents = Vec::new();
    for plan in plans {
        let is_there = matches!(plan.state, State::Installed | State::Outdated);
        let mut part = plan.json(plan.state);
        part["changed"] = Value::from(false);
        part["files"] = Value::Array(Vec::new());
        if !is_there {
            part["mode"] = Value::Null;
            part["notes"] = Value::Array(Vec::new());
            agents.push(part);
            continue;
        }
        for note in &plan.notes {
            add(&mut text, &format!("{}: {note}", plan.place.agent));
        }
        agents.push(part);
    }
    let is_well = |plan: &Plan| matches!(plan.state, State::Installed | State::NotFound);
    if !plans.iter().all(is_well) {
        add(&mut text, "tenure install sets them up");
    }
    let exit = match plans.iter().all(is_well) {
        true => Exit::DONE,
        false => Exit::REFUSED,
    };
    Shown::new("agents", &agents, text).exit(exit)
}

fn row(plan: &Plan) -> Vec<Cell> {
    let colour = match plan.state {
        State::Installed => "live",
        State::Outdated => "unknown",
        State::NotInstalled => "dead",
        State::NotFound => "ended",
    };
    let is_there = matches!(plan.state, State::Installed | State::Outdated);
    let mode = plan.mode.filter(|_| is_there).map_or("-", word_of);
    vec![
        Cell::plain(plan.place.agent),
        Cell::state(plan.state.word(), colour),
        Cell::plain(mode),
        Cell::plain(plan.place.scope.word()),
        Cell::plain(plan.place.file().display().to_string()),
    ]
}

/// Adds a line.
pub fn add(text: &mut String, line: &str) {
    let _infallible = writeln!(text, "{line}");
}
