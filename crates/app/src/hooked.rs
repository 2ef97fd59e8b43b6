//! Whether an agent will call tenure's hooks, according to its settings.
//!
//! Checked only for a running agent that is not a session, to explain why. An agent reads its
//! settings when it starts, so one that started before they were changed may behave differently.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tenure_agents::install::trust::{Trust, trust};
use tenure_agents::install::{Format, Settings};
use tenure_agents::{Adapter, FirstEvent};
use tenure_host::env::Environment;
use tenure_host::{git, read};

/// The longest settings file.
const LONGEST: u64 = 16 << 20;

/// The state of tenure's hooks for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hooks {
    /// Its settings call them.
    Installed,
    /// Its settings call them, but it skips them until its user has reviewed them.
    Untrusted,
    /// Its settings call them, but disable hooks.
    Off,
    /// Nothing in its settings calls them.
    Missing,
    /// tenure has no hooks for this agent.
    None,
    /// Its settings are not valid, so it reads none of them.
    Invalid,
    /// Its settings, or the environment that locates them, cannot be read.
    Unknown,
}

impl Hooks {
    /// The state for an agent that runs as this process in this directory. Its settings are
    /// searched where that process searches them, which may be another home than the caller's.
    pub fn of(adapter: Option<&Adapter>, pid: u32, dir: Option<&str>) -> Self {
        let Some(settings) = adapter.and_then(|adapter| adapter.settings.as_ref()) else {
            return Hooks::None;
        };
        let Some(own) = Environment::of(pid).and_then(|theirs| user_dir(settings, &theirs, dir))
        else {
            return Hooks::Unknown;
        };
        let mut said = in_dir(settings, &own, &own);
        for project in dir.into_iter().flat_map(projects) {
            if matches!(said, Hooks::Missing | Hooks::Unknown) {
                let theirs = in_dir(settings, &project.join(settings.project), &own);
                said = if theirs == Hooks::Missing {
                    said
                } else {
                    theirs
                };
            }
        }
        said
    }

    /// Why an agent with this state has not registered.
    pub fn why(self, agent: &str, first_event: Option<FirstEvent>) -> String {
        match self {
            Hooks::Installed if first_event == Some(FirstEvent::Prompt) => {
                "it registers at its first prompt".to_owned()
            }
            Hooks::Installed => {
                "its hooks are installed but have not run; it may have started before they were installed"
                    .to_owned()
            }
            Hooks::Untrusted => {
                "it skips its hooks until you review them; type /hooks there".to_owned()
            }
            Hooks::Off => "its settings turn hooks off".to_owned(),
            Hooks::Missing => format!("its hooks are not installed; run `tenure install {agent}` to install them"),
            Hooks::None => format!("tenure has no hooks for {agent}"),
            Hooks::Invalid => {
                "its settings are not valid; run `tenure install --check` for details".to_owned()
            }
            Hooks::Unknown => {
                "its settings or its environment cannot be read; run `tenure install --check` for details"
                    .to_owned()
            }
        }
    }
}

/// Where an agent looks for project settings: its working directory, and the root of that worktree.
fn projects(dir: &str) -> Vec<PathBuf> {
    let dir = Path::new(dir);
    let root = git::worktree(dir).map(|found| found.root);
    let root = root.filter(|root| root != dir);
    std::iter::once(dir.to_owned()).chain(root).collect()
}

fn in_dir(settings: &Settings, dir: &Path, own: &Path) -> Hooks {
    let file = dir.join(settings.file);
    let text = match read::text(&file, LONGEST) {
        Ok(text) => text,
        Err(error) if read::is_absent(&error) => return Hooks::Missing,
        Err(_) => return Hooks::Unknown,
    };
    let format = match &settings.format {
        Format::Script(script) if (script.read)(&text).is_some() => return Hooks::Installed,
        Format::Script(_) => return Hooks::Missing,
        Format::Hooks(format) => format,
    };
    let entries = match format.entries(&text) {
        Ok(entries) if entries.is_empty() => return Hooks::Missing,
        Ok(entries) => entries,
        Err(_) => return Hooks::Invalid,
    };
    let is_off = settings
        .off
        .as_ref()
        .is_some_and(|off| format.is_off(&text, off));
    let Some(config) = settings.sandbox else {
        return if is_off { Hooks::Off } else { Hooks::Installed };
    };
    let config = read::text(&own.join(config), LONGEST).unwrap_or_default();
    let real = fs_err::canonicalize(&file).ok();
    let names = std::iter::once(file).chain(real);
    let names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    match trust(&config, &names, &entries) {
        _ if is_off => Hooks::Off,
        Trust::Trusted => Hooks::Installed,
        Trust::Off => Hooks::Off,
        Trust::Changed | Trust::Untrusted => Hooks::Untrusted,
    }
}

/// The agent's own directory, from its environment. A relative path starts at its working
/// directory.
fn user_dir(settings: &Settings, theirs: &Environment, dir: Option<&str>) -> Option<PathBuf> {
    let set = |name: &str| theirs.var(name).map(PathBuf::from);
    let moved = settings
        .variable
        .and_then(|(name, folder)| Some(set(name)?.join(folder)));
    let own = moved.or_else(|| Some(set("HOME")?.join(settings.home)))?;
    if own.is_absolute() {
        return Some(own);
    }
    Some(Path::new(dir?).join(own))
}
