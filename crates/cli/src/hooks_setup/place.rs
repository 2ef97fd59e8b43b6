//! Where each agent keeps its settings, and whether the agent is here at all.

use std::path::{Path, PathBuf};

use tenure_agents::Adapter;
use tenure_agents::install::Settings;
use tenure_app::place::current_dir;
use tenure_core::agent::AGENTS;
use tenure_host::env::var as env;
use tenure_service::answer::{Class, Hint};

use crate::output::CliError;

/// The agents that can be installed for, in the order in which they are shown.
pub fn names() -> Vec<&'static str> {
    tenure_agents::names(|row| row.settings.is_some())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallScope {
    User,
    /// A project's, which may be shared with others.
    Project(PathBuf),
    /// No one's: a plugin directory of our own.
    Plugin,
}

impl InstallScope {
    /// What `--project` names; the user's without it.
    pub fn of(project: Option<&PathBuf>) -> Result<Self, CliError> {
        let Some(dir) = project else {
            return Ok(Self::User);
        };
        let whole: PathBuf = current_dir()?.join(dir).components().collect();
        if whole.is_dir() {
            Ok(Self::Project(whole))
        } else {
            Err(CliError::new(
                Class::NotFound,
                "not_found",
                format!("{} is not a directory", whole.display()),
                Hint::step("pass the directory of a project to --project"),
            ))
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project(_) => "project",
            Self::Plugin => "plugin",
        }
    }
}

/// The settings of one agent in one scope.
#[derive(Debug, Clone)]
pub struct InstallTarget {
    pub agent: &'static str,
    /// How its settings are written.
    pub settings: &'static Settings,
    pub scope: InstallScope,
    /// Whether the agent seems to be here.
    pub found: bool,
    pub dir: PathBuf,
}

impl InstallTarget {
    /// The settings of every agent that has any and is meant.
    pub fn all(
        scope: &InstallScope,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Vec<Self>, CliError> {
        let rows = tenure_agents::ADAPTERS.iter();
        let of = |row: &'static Adapter| Some(Self::of(row.name, row.settings.as_ref()?, scope));
        let has_scope = |row: &Adapter| {
            let is_package = |own: &Settings| own.package().is_some();
            !(row.settings.as_ref().is_some_and(is_package)
                && matches!(scope, InstallScope::Project(_)))
        };
        rows.filter(|row| is_meant(row.name) && has_scope(row))
            .filter_map(of)
            .collect()
    }

    /// The user's own settings of an agent.
    pub fn user(agent: &str) -> Result<Self, CliError> {
        let found = Self::all(&InstallScope::User, |name| name == agent)?.pop();
        found.ok_or_else(|| {
            let message = format!("{agent} has no settings that tenure knows");
            CliError::new(
                Class::NotFound,
                "not_found",
                message,
                Hint::verb("help", "for the agents"),
            )
        })
    }

    fn of(
        agent: &'static str,
        settings: &'static Settings,
        scope: &InstallScope,
    ) -> Result<Self, CliError> {
        let own = user_dir(settings)?;
        let dir = match scope {
            InstallScope::User | InstallScope::Plugin => own.clone(),
            InstallScope::Project(dir) => dir.join(settings.project),
        };
        Ok(Self {
            agent,
            settings,
            scope: scope.clone(),
            found: own.is_dir() || dir.is_dir() || is_on_path(agent),
            dir,
        })
    }

    /// A place where something was installed; none for an agent that this version does not know.
    pub fn known(agent: &str, scope: InstallScope, dir: PathBuf) -> Option<Self> {
        let row = tenure_agents::adapter(agent)?;
        Some(Self {
            agent: row.name,
            settings: row.settings.as_ref()?,
            scope,
            found: dir.is_dir(),
            dir,
        })
    }

    /// The file that makes the agent call us; the directory of a plugin.
    pub fn file(&self) -> PathBuf {
        if self.scope == InstallScope::Plugin {
            return self.dir.clone();
        }
        self.dir.join(self.settings.file)
    }

    /// The directory of a plugin that the agent's settings name.
    pub fn package_dir(&self) -> String {
        let file = self.file();
        let dir = file.parent().unwrap_or(&self.dir);
        dir.to_string_lossy().into_owned()
    }

    /// The user's file of MCP servers: the first that is there, of those that the agent reads.
    pub fn mcp_file(&self) -> Result<Option<PathBuf>, CliError> {
        let Some(servers) = self
            .settings
            .mcp
            .as_ref()
            .filter(|_| self.scope == InstallScope::User)
        else {
            return Ok(None);
        };
        let moved = |(name, _): (&str, &str)| env(name).is_some_and(|value| !value.is_empty());
        let dir = match self.dir.parent() {
            Some(above) if servers.is_beside && !self.settings.variable.is_some_and(moved) => above,
            _ => &self.dir,
        };
        let mut files = servers.files.iter().map(|name| dir.join(name));
        let first = files.next();
        let there = first
            .clone()
            .into_iter()
            .chain(files)
            .find(|file| file.is_file());
        Ok(there.or(first))
    }

    /// The other settings of an agent with a sandbox, where it keeps that and what it trusts; always the user's.
    pub fn sandbox(&self) -> Result<Option<PathBuf>, CliError> {
        let Some(file) = self.settings.sandbox else {
            return Ok(None);
        };
        let dir = match self.scope {
            InstallScope::User => self.dir.clone(),
            _ => user_dir(self.settings)?,
        };
        Ok(Some(dir.join(file)))
    }
}

fn user_dir(settings: &Settings) -> Result<PathBuf, CliError> {
    let set = |name: &str| {
        env(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let moved = settings
        .variable
        .and_then(|(name, folder)| Some(set(name)?.join(folder)));
    if let Some(dir) = moved {
        return Ok(current_dir()?.join(dir).components().collect());
    }
    let home = set("HOME").filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| {
        let message = "HOME is not set, so the agents' settings cannot be found";
        CliError::new(
            Class::NotFound,
            "not_found",
            message,
            Hint::step("set HOME"),
        )
    })?;
    Ok(home.join(settings.home))
}

pub fn is_on_path(agent: &str) -> bool {
    let names = AGENTS
        .iter()
        .find(|spec| spec.name == agent)
        .map_or(&[][..], |spec| spec.executables);
    let path = env("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .any(|dir| names.iter().any(|name| is_executable(&dir.join(name))))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs_err::metadata(path)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
