//! Our hooks in the settings of agents and in repositories: where they go, what is edited, and how every edit
//! is found again and undone. `install` and `uninstall` have it in common.

pub mod agent_command;
pub mod git_hooks;
pub mod place;
pub mod plan;
pub mod register;
pub mod running;
pub mod undo;

use std::path::PathBuf;

use serde_json::Value;
use tenure_app::settings_change::SettingsChange;

use crate::lines::Lines;
use crate::output::{CliError, Output};
use git_hooks::GitHooksReport;
use place::InstallScope;
use plan::Plan;
use register::GIT;

/// What can be installed for: the agents, and git, but only if it is named.
pub fn targets() -> Vec<&'static str> {
    place::names().into_iter().chain([GIT]).collect()
}

/// The same for people.
pub fn targets_help() -> String {
    format!(
        "Agent: {}; {GIT} for the hooks of a repository",
        place::names().join(", ")
    )
}

/// Whose settings.
#[derive(Debug, clap::Args)]
pub struct SettingsOwner {
    /// Your own settings (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,

    /// Settings of the project in this directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl SettingsOwner {
    /// The scope that was asked for.
    pub fn scope(&self) -> Result<InstallScope, CliError> {
        InstallScope::of(self.project.as_ref())
    }

    /// Whether settings elsewhere are not meant.
    pub fn is_given(&self) -> bool {
        self.user || self.project.is_some()
    }
}

/// The messages about git, for people and for programs.
pub type Part = Option<(Lines, Value)>;

/// What was done for git, as people read it.
pub fn told(word: &str, done: &GitHooksReport, dry: bool) -> Lines {
    let mut text = Lines::default();
    add(&mut text, &format!("{GIT}: {word}"));
    for line in &done.lines {
        let line = if dry { would(line) } else { line.clone() };
        add(&mut text, &format!("  {line}"));
    }
    text
}

/// `created FILE` in the words of a dry run.
fn would(line: &str) -> String {
    let acts = [
        ("created", "create"),
        ("changed", "change"),
        ("removed", "remove"),
    ];
    let act = acts
        .iter()
        .find_map(|(done, act)| Some((act, line.strip_prefix(done)?)));
    act.map_or(line.to_owned(), |(act, rest)| format!("would {act}{rest}"))
}

/// The directory that hooks and sandboxed commands write to.
pub fn state_dir() -> Result<String, CliError> {
    let (_, store) = tenure_app::location::settings_and_store()?;
    Ok(store.dir().to_string_lossy().into_owned())
}

/// What would change; agents without a change are named only if that is asked for.
pub fn dry(plans: &[Plan], git: Part, names_all: bool) -> Output {
    let mut text = Lines::default();
    let mut agents = Vec::new();
    for plan in plans {
        let diffs: Vec<String> = plan.changes.iter().map(SettingsChange::diff).collect();
        if !plan.is_nothing() {
            add(&mut text, &format!("{}:", plan.place.agent));
            let lines = plan.changes.iter().flat_map(SettingsChange::summary);
            lines.for_each(|line| add(&mut text, &format!("  {line}")));
            let runs = plan.commands.iter().map(|one| format!("would run {one}"));
            runs.for_each(|line| add(&mut text, &format!("  {line}")));
            let notes = plan.will.iter();
            notes.for_each(|note| add(&mut text, &format!("  {note}")));
        } else if names_all {
            add(&mut text, &format!("{}: nothing to do", plan.place.agent));
        }
        let mut part = plan.json(plan.state);
        part["diff"] = Value::from(diffs.concat());
        agents.push(part);
    }
    with_git(&mut text, &mut agents, git);
    if text.is_empty() {
        add(&mut text, "nothing to do");
    }
    Output::new("agents", &agents, text).with("dry_run", &true)
}

/// Adds the messages about git.
pub fn with_git(text: &mut Lines, agents: &mut Vec<Value>, git: Part) {
    if let Some((said, json)) = git {
        text.extend(&said);
        agents.push(json);
    }
}

pub fn add(text: &mut Lines, line: &str) {
    text.line(line);
}
