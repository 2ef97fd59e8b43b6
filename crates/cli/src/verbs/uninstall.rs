use std::path::Path;

use serde_json::{Value, json};
use tenure_app::location;
use tenure_app::settings::kept_store;
use tenure_core::text::shell;
use tenure_core::world::World;
use tenure_service::ListRequest;
use tenure_service::answer::{Class, Hint};

use crate::app::App;
use crate::exit::Exit;
use crate::hooks_setup::git_hooks::{GitHooks, GitHooksReport};
use crate::hooks_setup::place::{InstallScope, InstallTarget};
use crate::hooks_setup::plan::{Plan, State};
use crate::hooks_setup::register::{Edit, GIT, Kind, Register, without_links};
use crate::hooks_setup::undo::{Group, grouped, known_edits, tidy};
use crate::hooks_setup::{
    SettingsOwner, add, dry, state_dir, targets, targets_help, told, with_git,
};
use crate::lines::Lines;
use crate::output::{CliError, Outcome, Output};

/// Remove tenure's hooks from the settings of coding agents
///
/// Covers the usual places and every place that `tenure install` changed, including projects and other
/// configuration directories; --user or --project limits it to those settings. Only what tenure added is removed,
/// including the status line and empty directories; everything else stays byte for byte as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure uninstall claude
  tenure uninstall --all --dry-run      only show what would change
  tenure uninstall git                  remove the hooks from this repository
  tenure uninstall gemini --project .   in the settings of this project")]
pub struct Args {
    #[arg(
        value_name = "AGENT",
        value_parser = clap::builder::PossibleValuesParser::new(targets()),
        help = targets_help(),
        hide_possible_values = true,
        required_unless_present = "all"
    )]
    agents: Vec<String>,

    /// Every agent, and every repository with hooks of tenure
    #[arg(long, conflicts_with = "agents")]
    all: bool,

    #[command(flatten)]
    whose: SettingsOwner,

    /// Print what would change without changing it
    #[arg(long)]
    dry_run: bool,
}

/// What became of each place.
#[derive(Default)]
struct Tally {
    plans: Vec<Plan>,
    /// What was removed beside the changes of a plan, in the same order.
    tidied: Vec<Vec<String>>,
    git: Option<(GitHooks, GitHooksReport)>,
    failed: Vec<CliError>,
}

impl Args {
    pub fn changes(&self) -> bool {
        !self.dry_run
    }
}

pub fn run(args: &Args, app: &App) -> Outcome {
    let state_dir = state_dir()?;
    let mut tally = Tally::default();
    let context = match (args.dry_run, location::is_missing(Path::new(&state_dir))) {
        (true, _) => Register::peek(&state_dir),
        (false, false) => Register::open(&state_dir),
        (false, true) => Ok(Register::none(&state_dir)),
    };
    // What is in the usual places is undone without the register too.
    let mut register = context.or_else(|failure| match failure.exit {
        Exit::TIMED_OUT => Err(failure),
        _ => {
            tally.failed.push(failure);
            Ok(Register::none(&state_dir))
        }
    })?;
    let (gits, others) = meant(args, &register, &state_dir)?;
    for group in grouped(others) {
        if let Err(failure) = undo(&group, args.dry_run, &mut register, &mut tally) {
            tally.failed.push(failure);
        }
    }
    for edit in gits {
        if let Err(failure) = undo_git(&edit, args.dry_run, &mut register, &mut tally) {
            tally.failed.push(failure);
        }
    }
    if args.all && !args.whose.is_given() && register.unknown() > 0 {
        let message = format!(
            "a newer version of tenure made {} of the recorded edits",
            register.unknown()
        );
        let hint = Hint::step("run `tenure uninstall` with that version");
        tally
            .failed
            .push(CliError::new(Class::Invalid, "invalid", message, hint));
    }
    shown(args, app, tally)
}

/// The edits that are meant: of git, and of the agents' settings.
fn meant(
    args: &Args,
    register: &Register,
    state_dir: &str,
) -> Result<(Vec<Edit>, Vec<Edit>), CliError> {
    let scope = args.whose.scope()?;
    let is_named = |name: &str| args.all || args.agents.iter().any(|agent| agent == name);
    let mut edits = Vec::new();
    for place in InstallTarget::all(&scope, is_named)? {
        edits.extend(known_edits(&place, state_dir, register)?);
    }
    if args.agents.iter().any(|name| name == GIT) {
        edits.push(known(&GitHooks::find(&scope)?, register));
    }
    let is_in_scope = |edit: &Edit| match &scope {
        InstallScope::Project(dir) => edit.file.starts_with(without_links(dir)),
        _ => !args.whose.is_given(),
    };
    for edit in register.edits() {
        let is_new = !edits.iter().any(|other| other.is(edit));
        // A repository is named by standing in it; only --all means every one.
        let is_named = match edit.kind {
            Kind::Git => args.all,
            _ => is_named(&edit.agent),
        };
        if is_new && is_named && is_in_scope(edit) {
            edits.push(edit.clone());
        }
    }
    Ok(edits.into_iter().partition(|edit| edit.kind == Kind::Git))
}

fn known(here: &GitHooks, register: &Register) -> Edit {
    let mut edit = here.edit();
    edit.dirs.clear();
    if let Some(known) = register.edits().iter().find(|known| known.is(&edit)) {
        edit.join(known);
    }
    edit
}

fn undo(
    group: &Group,
    dry_run: bool,
    register: &mut Register,
    tally: &mut Tally,
) -> Result<(), CliError> {
    let plan = Plan::undo(group)?;
    let mut tidied = Vec::new();
    if !dry_run {
        plan.apply()?;
        let edits: Vec<Edit> = group
            .edits
            .iter()
            .map(|edit| register.latest(edit))
            .collect();
        for edit in &edits {
            tidied.extend(tidy(edit)?);
        }
        register.strike(&edits)?;
    }
    tally.plans.push(plan);
    tally.tidied.push(tidied);
    Ok(())
}

fn undo_git(
    edit: &Edit,
    dry_run: bool,
    register: &mut Register,
    tally: &mut Tally,
) -> Result<(), CliError> {
    let git = GitHooks::of(edit);
    let done = git.uninstall(dry_run)?;
    if !dry_run {
        let edit = register.latest(edit);
        tidy(&edit)?;
        register.strike(std::slice::from_ref(&edit))?;
    }
    match &mut tally.git {
        Some((_, all)) => all.join(done),
        None => tally.git = Some((git, done)),
    }
    Ok(())
}

fn shown(args: &Args, app: &App, tally: Tally) -> Outcome {
    let Tally {
        plans,
        tidied,
        git,
        mut failed,
    } = tally;
    let nothing = plans.iter().all(Plan::is_nothing)
        && git.as_ref().is_none_or(|(_, done)| done.is_nothing());
    if nothing && failed.len() == 1 {
        return Err(failed.remove(0));
    }
    let git = git.map(|(first, done)| git_part(&first, &done, args.dry_run));
    let (shown, locks_left) = if args.dry_run {
        (dry(&plans, git, !args.all), None)
    } else {
        undone(args, app, &plans, &tidied, git, &mut failed)?
    };
    if failed.is_empty() && locks_left.is_none() {
        return Ok(shown);
    }
    let mut text = Lines::default();
    for failure in &failed {
        text.line(format!("not removed: {}", failure.problem.message));
    }
    if !failed.is_empty() {
        text.line("these edits stay recorded; fix the problem, then run the same command again");
    }
    let exit = match &locks_left {
        Some(failure) if failed.is_empty() => failure.exit,
        _ => Exit::INVALID,
    };
    if let Some(failure) = &locks_left {
        text.line(format!(
            "not unlocked: worktrees in which sessions work, which only the store lists: {}",
            failure.problem.message
        ));
        text.line(
            "run `git worktree list` to see which are locked, and `git worktree unlock DIR` to unlock one",
        );
    }
    let json: Vec<Value> = failed
        .iter()
        .chain(&locks_left)
        .map(|failure| json!({"message": failure.problem.message, "file": failure.problem.data.get("file")}))
        .collect();
    Ok(shown.say(text).with("failed", &json).exit(exit))
}

/// What was removed, and why no worktree was unlocked, if that failed.
fn undone(
    args: &Args,
    app: &App,
    plans: &[Plan],
    tidied: &[Vec<String>],
    git: Option<(Lines, Value)>,
    failed: &mut Vec<CliError>,
) -> Result<(Output, Option<CliError>), CliError> {
    let mut text = Lines::default();
    for (plan, tidied) in plans.iter().zip(tidied) {
        let is_removed = |line: &String| line.starts_with("removed ");
        let word = if !plan.is_nothing() || tidied.iter().any(is_removed) {
            "uninstalled"
        } else if args.all && tidied.is_empty() {
            continue;
        } else {
            "nothing to remove"
        };
        add(&mut text, &format!("{}: {word}", plan.place.agent));
        for line in plan.done().iter().chain(tidied) {
            add(&mut text, &format!("  {line}"));
        }
    }
    let left = |plan: &Plan| {
        if plan.place.found {
            plan.json(State::NotInstalled)
        } else {
            plan.json(State::NotFound)
        }
    };
    let mut agents: Vec<Value> = plans.iter().map(left).collect();
    with_git(&mut text, &mut agents, git);
    let is_everything = args.all && !args.whose.is_given();
    let (unlocked, locks_left) = match is_everything.then(|| unlock_worktrees(app)) {
        Some(Err(failure)) => (Vec::new(), Some(failure)),
        Some(Ok(unlocked)) => (unlocked, None),
        None => (Vec::new(), None),
    };
    if is_everything {
        match kept_store::remove(false) {
            Ok(Some(file)) => add(
                &mut text,
                &format!("store: removed it from {}", file.display()),
            ),
            Ok(None) => {}
            Err(problem) => failed.push(problem.into()),
        }
    }
    for dir in &unlocked {
        add(&mut text, &format!("git: unlocked the worktree {dir}"));
    }
    if text.is_empty() {
        add(&mut text, "nothing to remove");
    }
    let state_dir = state_dir()?;
    if is_everything && Path::new(&state_dir).exists() {
        add(
            &mut text,
            &format!(
                "{state_dir} still has the sessions, claims and logs; run `rm -r {}` to delete them",
                shell(&state_dir)
            ),
        );
    }
    let shown = Output::new("agents", &agents, text).with("unlocked", &unlocked);
    Ok((shown, locks_left))
}

/// Unlocks the worktrees of open sessions: without hooks, nothing would unlock them later.
fn unlock_worktrees(app: &App) -> Result<Vec<String>, CliError> {
    let (_, store) = location::settings_and_store()?;
    if location::is_absent(&store) {
        return Ok(Vec::new());
    }
    let mut context = app.open()?;
    let open = context.service().list(&ListRequest::default())?.value.items;
    let machine = context.machine();
    let mut dirs: Vec<String> = open.into_iter().map(|session| session.dir).collect();
    dirs.retain(|dir| machine.tree_lock(dir).is_some());
    dirs.sort();
    dirs.dedup();
    for dir in &dirs {
        machine.set_tree_lock(dir, None);
    }
    Ok(dirs)
}

/// What was done for git, or would be.
fn git_part(first: &GitHooks, done: &GitHooksReport, dry_run: bool) -> (Lines, Value) {
    let word = match (done.is_nothing(), dry_run) {
        (true, _) => "nothing to remove",
        (false, true) => "would be uninstalled",
        (false, false) => "uninstalled",
    };
    let state = if dry_run && !done.is_nothing() {
        State::Installed
    } else {
        State::NotInstalled
    };
    (told(word, done, dry_run), first.json(state, done))
}
