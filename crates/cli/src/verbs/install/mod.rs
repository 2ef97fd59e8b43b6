//! `install`: makes the agents tell tenure what they do.

mod check;
mod plugin_dir;
mod status_line;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use tenure_agents::install::{MODES, word_of};
use tenure_app::settings::kept_store;
use tenure_core::write_conflict::GuardMode;
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::exit::Exit;
use crate::hooks_setup::git_hooks::GitHooks;
use crate::hooks_setup::place::{self, InstallScope, InstallTarget};
use crate::hooks_setup::plan::{Plan, SetupTarget, State};
use crate::hooks_setup::register::{GIT, Installed, Register};
use crate::hooks_setup::undo::{mcp_edit, usual_edits};
use crate::hooks_setup::{
    Part, SettingsOwner, add, dry, state_dir, targets, targets_help, told, with_git,
};
use crate::kept_store::store_lines;
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// Register coding agents automatically, by adding hooks to their settings
///
/// Without AGENT, installs for every agent found on this machine. Everything else in the settings stays byte for
/// byte as it is, and a backup is kept next to each file before its first change. Running it again changes nothing.
/// `tenure uninstall` undoes it: every edit is recorded in the state directory before it is made.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure install                        for every agent found on this machine
  tenure install --dry-run              only show what would change
  tenure install claude --mode block    also block writes that conflict
  tenure install claude --statusline    also add tenure's status line
  tenure install claude --wake          also let messages start turns (tenure help tell)
  tenure install claude --answers       also let `tenure answer` answer its questions from elsewhere
  tenure install --mcp                  also add tenure's tools over MCP (tenure help mcp)
  tenure install gemini --project .     in the settings of this project
  tenure install git                    block commits and pushes here after a lost claim
  tenure install --check                list every place; exit 1 if one is not installed
  tenure install claude --plugin DIR    write a plugin directory instead of editing settings")]
pub struct Args {
    #[arg(value_name = "AGENT", value_parser = PossibleValuesParser::new(targets()), hide_possible_values = true, help = targets_help())]
    agents: Vec<String>,

    #[command(flatten)]
    whose: SettingsOwner,

    /// Print what would change without changing it
    #[arg(long)]
    dry_run: bool,

    /// What hooks do about a tool call that conflicts with another session: observe, warn or block
    /// [default: the installed mode, or warn]
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(MODES.map(word_of)), hide_possible_values = true)]
    mode: Option<String>,

    /// Also add tenure's status line (claude); on a terminal, install asks
    #[arg(long)]
    statusline: bool,

    /// Also add tenure's MCP server (claude, codex, gemini, opencode, qwen)
    #[arg(long, conflicts_with_all = ["check", "project", "plugin"])]
    mcp: bool,

    /// Also add hooks that wait for messages that start a turn (claude); needs the setting wake.agents
    #[arg(long, conflicts_with_all = ["check", "plugin"])]
    wake: bool,
    /// Also let hooks wait for an answer of `tenure answer` (claude, opencode); without it they no longer do
    #[arg(long, conflicts_with_all = ["check", "plugin"])]
    answers: bool,

    /// For git: the directory of core.hooksPath, if it is outside the repository
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "plugin"])]
    hooks_path: Option<PathBuf>,

    /// List what is installed, without changing anything
    #[arg(long, conflicts_with_all = ["dry_run", "mode", "statusline"])]
    check: bool,

    /// Write a Claude Code plugin to this directory instead of editing settings
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "user", "project", "statusline"])]
    plugin: Option<PathBuf>,
}

impl Args {
    pub fn changes(&self) -> bool {
        !self.dry_run && !self.check
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let wanted = SetupTarget {
        program: own_path()?,
        mode: args.mode.as_deref().and_then(GuardMode::parse),
        state_dir: state_dir()?,
        // Before the register is locked: a person may take their time.
        status_line: status_line::is_wanted(args, app)?,
        mcp: args.mcp,
        wake: (!args.check).then_some(args.wake),
        answers: (!args.check).then_some(args.answers),
    };
    let looks_only = args.check || args.dry_run;
    if !looks_only {
        app.make_state_dir()?;
    }
    let mut register = if looks_only {
        Register::peek(&wanted.state_dir)?
    } else {
        Register::open(&wanted.state_dir)?
    };
    if let Some(dir) = &args.plugin {
        return plugin_dir::run(dir, &args.agents, &wanted, args.dry_run, &mut register);
    }
    let scope = args.whose.scope()?;
    let is_git = |name: &&String| *name == GIT;
    let names: Vec<String> = args
        .agents
        .iter()
        .filter(|name| !is_git(name))
        .cloned()
        .collect();
    let git = if args.agents.iter().any(|name| is_git(&name)) {
        Some(GitHooks::find(&scope)?)
    } else {
        None
    };
    match (&git, &args.hooks_path) {
        (Some(git), named) if !args.check => git.require(named.as_deref())?,
        (None, Some(_)) => {
            let message = "--hooks-path is only for git";
            let hint = Hint::run("install", [GIT, "--help"], "for its options and examples");
            return Err(CliError::new(Class::Usage, "usage", message, hint));
        }
        _ => {}
    }
    let elsewhere = if args.check && !args.whose.is_given() {
        check::elsewhere(&register, &args.agents)
    } else {
        Vec::new()
    };
    let places = if git.is_some() && names.is_empty() {
        Vec::new()
    } else {
        match places(&names, &scope) {
            Err(_) if !elsewhere.is_empty() => Vec::new(),
            found => found?,
        }
    };
    let (mut plans, mut failed) = (Vec::new(), Vec::new());
    for place in places {
        let agent = place.agent;
        match Plan::install(place, &wanted) {
            Ok(plan) => plans.push(plan),
            Err(failure) => failed.push((agent, failure)),
        }
    }
    // One agent's settings do not keep tenure from the others.
    if plans.is_empty() && git.is_none() && failed.len() == 1 {
        return Err(failed.remove(0).1);
    }
    if args.check {
        let shown = check::checked(plans, git, elsewhere, &wanted, &register)?;
        return Ok(with_failures(shown, &failed));
    }
    let keeps_store = !matches!(scope, InstallScope::Project(_));
    if args.dry_run {
        let git = part(git.as_ref(), &wanted, true)?;
        let shown = with_store(dry(&plans, git, true), keeps_store, true)?;
        return Ok(with_failures(shown, &failed));
    }
    let is_sandboxed = |plan: &Plan| plan.place.settings.sandbox.is_some();
    if plans.iter().any(is_sandboxed) {
        // A sandbox cannot open a directory that is not there.
        tenure_app::location::machine()?;
    }
    note(&mut register, &plans, git.as_ref(), &wanted)?;
    let mut done = Vec::new();
    for mut plan in plans {
        match plan.apply() {
            Ok(()) => {
                plan.tell_who_runs_another(&register);
                done.push(plan);
            }
            Err(failure) => failed.push((plan.place.agent, failure)),
        }
    }
    let git = part(git.as_ref(), &wanted, false)?;
    let shown = with_store(installed(&done, git), keeps_store, false)?;
    Ok(with_failures(shown, &failed))
}

/// Keeps a store that only the environment names in the user's settings, and says so.
fn with_store(shown: Output, keeps: bool, dry: bool) -> Result<Output, CliError> {
    let kept = if keeps { kept_store::keep(dry)? } else { None };
    let Some(kept) = kept else { return Ok(shown) };
    let mut text = Lines::default();
    store_lines(&mut text, &kept, dry);
    let json = json!({"file": kept.file, "store": kept.store});
    Ok(shown.say(text).with("store", &json))
}

/// Adds the agents whose settings cannot be edited.
fn with_failures(shown: Output, failed: &[(&str, CliError)]) -> Output {
    if failed.is_empty() {
        return shown;
    }
    let mut text = Lines::default();
    let mut json = Vec::new();
    for (agent, failure) in failed {
        let problem = &failure.problem;
        text.line(format!("{agent}: not installed: {}", problem.message));
        for hint in &problem.hints {
            text.line(format!("  {}", hint.sentence()));
        }
        let at = |part: &str| problem.data.get(part);
        json.push(json!({
            "agent": agent, "message": problem.message,
            "file": at("file"), "line": at("line"), "column": at("column"),
        }));
    }
    shown.say(text).with("failed", &json).exit(Exit::INVALID)
}

/// Lists every edit before the first is made.
fn note(
    register: &mut Register,
    plans: &[Plan],
    git: Option<&GitHooks>,
    wanted: &SetupTarget,
) -> Result<(), CliError> {
    let mut edits = Vec::new();
    for plan in plans {
        let mut made = usual_edits(&plan.place, &wanted.state_dir)?;
        if let (Some(edit), Some(mode)) = (made.first_mut(), plan.mode) {
            edit.modes.push(Installed {
                at: tenure_host::clock::wall().0,
                mode: word_of(mode).to_owned(),
            });
        }
        edits.extend(made);
        edits.extend(mcp_edit(&plan.place)?.filter(|_| plan.mcp == Some(true)));
    }
    if let Some(git) = git {
        // What it would refuse, it refuses before anything is changed.
        git.install(&wanted.program, true)?;
        edits.push(git.edit());
    }
    register.note(edits)
}

/// Installs for git, or only reports what would be done.
fn part(git: Option<&GitHooks>, wanted: &SetupTarget, dry: bool) -> Result<Part, CliError> {
    let Some(git) = git else {
        return Ok(None);
    };
    let before = git.state(&wanted.program)?;
    let done = git.install(&wanted.program, dry)?;
    let word = match (done.is_nothing(), dry, before) {
        (true, true, _) => "nothing to do",
        (true, false, _) => "already installed",
        (false, true, _) => "would be installed",
        (false, false, State::Outdated) => "updated",
        (false, false, _) => "installed",
    };
    let state = if dry { before } else { State::Installed };
    Ok(Some((told(word, &done, dry), git.json(state, &done))))
}

/// The places of the agents that were named, or else of those that are here.
fn places(names: &[String], scope: &InstallScope) -> Result<Vec<InstallTarget>, CliError> {
    let all = InstallTarget::all(scope, |_| true)?;
    let is_meant = |place: &InstallTarget| {
        if names.is_empty() {
            place.found
        } else {
            names.iter().any(|name| name == place.agent)
        }
    };
    let meant: Vec<InstallTarget> = all.into_iter().filter(is_meant).collect();
    if meant.is_empty() {
        let names = place::names();
        let message = format!("none of these agents was found: {}", names.join(", "));
        let one = names.first().copied();
        let hint = Hint::run("install", one, "to install hooks before the agent itself");
        return Err(CliError::new(Class::NotFound, "not_found", message, hint));
    }
    Ok(meant)
}

fn own_path() -> Result<String, CliError> {
    let lost = |why: String| {
        let hint = Hint::step("run tenure from a path that is UTF-8 text without line breaks");
        CliError::new(Class::Invalid, "invalid", why, hint)
    };
    let path = tenure_host::env::program()
        .map_err(|error| lost(format!("cannot find the tenure executable: {error}")))?;
    match path.to_str() {
        Some(text) if path.is_file() && !text.contains(['\n', '\r']) => Ok(text.to_owned()),
        _ => Err(lost(format!(
            "the tenure executable is at {}, which cannot be written into settings",
            path.display()
        ))),
    }
}

fn installed(plans: &[Plan], git: Part) -> Output {
    let mut text = Lines::default();
    for plan in plans {
        let (agent, mode) = (plan.place.agent, plan.mode.map_or("", word_of));
        let word = match (plan.is_nothing(), plan.state) {
            (true, _) => "already installed",
            (false, State::Outdated) => "updated",
            (false, _) => "installed",
        };
        add(&mut text, &format!("{agent}: {word}, mode {mode}"));
        for line in plan.done().iter().chain(&plan.will).chain(&plan.notes) {
            add(&mut text, &format!("  {line}"));
        }
    }
    if plans.iter().any(|plan| !plan.is_nothing() && !plan.is_off) {
        add(
            &mut text,
            "New sessions now register automatically; run `tenure ps` to see them.",
        );
    }
    let mut agents: Vec<Value> = plans
        .iter()
        .map(|plan| plan.json(State::Installed))
        .collect();
    with_git(&mut text, &mut agents, git);
    Output::new("agents", &agents, text)
}
