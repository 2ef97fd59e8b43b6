use std::path::Path;

use serde_json::Value;
use tenure_core::service::ListRequest;
use tenure_core::world::World;

use super::install::{
    Done, GIT, GitHooks, NAMES, Part, Place, Plan, State, TARGETS, Whose, add, dry, state_dir,
    told, with_git,
};
use crate::app::{App, config_and_store};
use crate::lines::Lines;
use crate::output::{Outcome, Shown, Trouble};

/// Take tenure's hooks out of the settings of coding agents again
///
/// Only what tenure put there goes; everything else stays byte for byte as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure uninstall claude
  tenure uninstall --all --dry-run      show what would change, and change nothing
  tenure uninstall git                  take the hooks out of this repository
  tenure uninstall gemini --project .   in the settings of this project")]
pub struct Args {
    /// claude, codex, gemini, opencode; git for the hooks of a repository
    #[arg(
        value_name = "AGENT",
        value_parser = clap::builder::PossibleValuesParser::new(TARGETS),
        hide_possible_values = true,
        required_unless_present = "all"
    )]
    agents: Vec<String>,

    /// Every agent, and every repository whose hooks tenure put there
    #[arg(long, conflicts_with = "agents")]
    all: bool,

    #[command(flatten)]
    whose: Whose,

    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Args {
    /// Whether it changes anything.
    pub fn changes(&self) -> bool {
        !self.dry_run
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let (scope, state_dir) = (args.whose.scope()?, state_dir()?);
    let is_meant = |name: &&str| args.all || args.agents.iter().any(|agent| agent == name);
    let plans: Vec<Plan> = NAMES
        .into_iter()
        .filter(is_meant)
        .map(|agent| Plan::uninstall(Place::of(agent, &scope)?, &state_dir))
        .collect::<Result<_, _>>()?;
    if args.dry_run {
        return Ok(dry(&plans, git_part(args, &state_dir)?));
    }
    for plan in &plans {
        plan.apply()?;
    }
    let mut text = Lines::default();
    for plan in &plans {
        let word = match plan.changes.is_empty() {
            true => "nothing of tenure's was there",
            false => "uninstalled",
        };
        add(&mut text, &format!("{}: {word}", plan.place.agent));
        for line in plan.done() {
            add(&mut text, &format!("  {line}"));
        }
    }
    let left = |plan: &Plan| match plan.place.found {
        true => plan.json(State::NotInstalled),
        false => plan.json(State::NotFound),
    };
    let mut agents: Vec<Value> = plans.iter().map(left).collect();
    with_git(&mut text, &mut agents, git_part(args, &state_dir)?);
    let unlocked = match args.all {
        true => unlock_worktrees(app)?,
        false => Vec::new(),
    };
    for dir in &unlocked {
        add(&mut text, &format!("git: {dir} is no longer locked"));
    }
    Ok(Shown::new("agents", &agents, text).with("unlocked", &unlocked))
}

/// Takes our locks off the worktrees of sessions that still work there: without hooks nobody would later.
fn unlock_worktrees(app: &App) -> Result<Vec<String>, Trouble> {
    let (_, store) = config_and_store()?;
    if !store.exists() {
        return Ok(Vec::new());
    }
    let mut opened = app.open()?;
    let open = opened.service().list(&ListRequest::default())?.value.items;
    let machine = opened.machine();
    let mut dirs: Vec<String> = open.into_iter().map(|session| session.dir).collect();
    dirs.retain(|dir| machine.tree_lock(dir).is_some());
    dirs.sort();
    dirs.dedup();
    for dir in &dirs {
        machine.set_tree_lock(dir, None);
    }
    Ok(dirs)
}

/// Takes the hooks out of the repositories that are meant, or only says what would be done.
fn git_part(args: &Args, state_dir: &str) -> Result<Part, Trouble> {
    let is_named = args.agents.iter().any(|name| name == GIT);
    let mut all = match args.all {
        true => GitHooks::noted(Path::new(state_dir)),
        false => Vec::new(),
    };
    if is_named {
        let here = GitHooks::find(&args.whose.scope()?)?;
        all.retain(|noted| !noted.is(&here));
        all.push(here);
    }
    let Some(first) = all.first() else {
        return Ok(None);
    };
    let mut done = Done::nothing();
    for git in &all {
        done.join(git.uninstall(Path::new(state_dir), args.dry_run)?);
    }
    let word = match (done.is_nothing(), args.dry_run) {
        (true, _) => "nothing of tenure's was there",
        (false, true) => "would be uninstalled",
        (false, false) => "uninstalled",
    };
    let state = match args.dry_run && !done.is_nothing() {
        true => State::Installed,
        false => State::NotInstalled,
    };
    Ok(Some((told(word, &done), first.json(state, &done))))
}
