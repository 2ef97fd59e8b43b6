//! Whether an agent will call tenure's hooks, according to its settings.
//!
//! Checked only for a running agent that is not a session, to explain why. An agent reads its
//! settings when it starts, so one that started before they were changed may behave differently.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tenure_agents::install::trust::{Trust, trust};
use tenure_agents::install::{Format, Package, Settings};
use tenure_agents::{Adapter, FirstEvent};
use tenure_core::time::Timestamp;
use tenure_host::env::Environment;
use tenure_host::running::AgentProcess;
use tenure_host::{clock, git, read};

/// The longest settings file.
const MAX_LENGTH: u64 = 16 << 20;

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
    /// Its settings call them, but were changed after it started.
    Later,
    /// Its settings call a tenure that is not there any more.
    Gone,
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
    /// The state for a running agent. Its settings are searched where that process searches them, which may be
    /// another home than the caller's.
    pub fn of(adapter: Option<&Adapter>, running: &AgentProcess) -> Self {
        let Some(settings) = adapter.and_then(|adapter| adapter.settings.as_ref()) else {
            return Hooks::None;
        };
        let pid = running.process.process.pid;
        let dir = running.dir.as_deref();
        let Some(own) = dir_of(settings, pid, dir) else {
            return Hooks::Unknown;
        };
        let began = running.began();
        let mut said = in_dir(settings, &own, &own, began);
        for project in dir.into_iter().flat_map(projects) {
            let project = project.join(settings.project);
            if said == Hooks::Installed && is_off_in(settings, &project) {
                said = Hooks::Off;
            }
            if matches!(said, Hooks::Missing | Hooks::Unknown) {
                let theirs = in_dir(settings, &project, &own, began);
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
            Hooks::Installed => "its hooks are installed but have not run".to_owned(),
            Hooks::Later => {
                let then = if reads_at_start(agent) {
                    "restart it to register it"
                } else {
                    "if its next prompt does not register it, restart it"
                };
                format!("it started before its hooks were installed or changed; {then}")
            }
            Hooks::Gone => format!(
                "the tenure that its hooks run is gone; run `tenure install {agent}` to use this one"
            ),
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

fn reads_at_start(agent: &str) -> bool {
    let settings = tenure_agents::adapter(agent).and_then(|row| row.settings.as_ref());
    settings.is_some_and(|settings| settings.is_read_at_start)
}

/// Where an agent looks for project settings: its working directory, and the root of that worktree.
fn projects(dir: &str) -> Vec<PathBuf> {
    let dir = Path::new(dir);
    let root = git::worktree(dir).map(|found| found.root);
    let root = root.filter(|root| root != dir);
    std::iter::once(dir.to_owned()).chain(root).collect()
}

/// Whether the settings of a project turn hooks off; the user's own there count too.
fn is_off_in(settings: &Settings, dir: &Path) -> bool {
    let (Some(format), Some(off)) = (settings.hooks(), &settings.off) else {
        return false;
    };
    let local = settings.file.replace(".json", ".local.json");
    [settings.file, &local].iter().any(|file| {
        let text = read::text(&dir.join(file), MAX_LENGTH).unwrap_or_default();
        format.is_off(&text, off)
    })
}

/// Whether nothing is at the path of a hook's program.
pub fn is_gone(program: &str) -> bool {
    program.starts_with('/') && !Path::new(program).exists()
}

/// Whether a file was changed after a process started. What cannot be seen did not happen.
fn is_newer(file: &Path, began: Option<Timestamp>) -> bool {
    let changed = fs_err::metadata(file).and_then(|found| found.modified());
    let changed = changed.ok().map(clock::timestamp);
    changed
        .zip(began)
        .is_some_and(|(changed, began)| changed.0 > began.0)
}

fn in_dir(settings: &Settings, dir: &Path, own: &Path, began: Option<Timestamp>) -> Hooks {
    let file = dir.join(settings.file);
    let text = match read::text(&file, MAX_LENGTH) {
        Ok(text) => text,
        Err(error) if read::is_absent(&error) => return Hooks::Missing,
        Err(_) => return Hooks::Unknown,
    };
    let format = match &settings.format {
        Format::Script(script) | Format::Package(Package { script, .. }) => {
            return match (script.read)(&text) {
                Some(line) if is_gone(&line.program) => Hooks::Gone,
                Some(_) if is_newer(&file, began) => Hooks::Later,
                Some(_) => Hooks::Installed,
                None => Hooks::Missing,
            };
        }
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
    if is_off {
        return Hooks::Off;
    }
    if entries.iter().all(|entry| is_gone(&entry.line.program)) {
        return Hooks::Gone;
    }
    let is_later = is_newer(&file, began);
    let Some(config) = settings.sandbox else {
        return if is_later {
            Hooks::Later
        } else {
            Hooks::Installed
        };
    };
    let config = read::text(&own.join(config), MAX_LENGTH).unwrap_or_default();
    let real = fs_err::canonicalize(&file).ok();
    let names = std::iter::once(file).chain(real);
    let names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    match trust(&config, &names, &entries) {
        Trust::Trusted if is_later => Hooks::Later,
        Trust::Trusted => Hooks::Installed,
        Trust::Off => Hooks::Off,
        Trust::Changed | Trust::Untrusted => Hooks::Untrusted,
    }
}

/// The directory in which a process of an agent looks for its user's settings.
pub fn dir_of(settings: &Settings, pid: u32, dir: Option<&str>) -> Option<PathBuf> {
    user_dir(settings, &Environment::of(pid)?, dir)
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
