//! Where each agent keeps its settings, and whether the agent is here at all.

use std::path::{Path, PathBuf};

use tenure_app::place::current_dir;
use tenure_core::agent::AGENTS;
use tenure_host::env::var as env;
use tenure_service::answer::{Class, Hint};

use crate::output::Trouble;

/// The agents that can be installed for, in the order in which they are shown.
pub const NAMES: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    User,
    /// A project's, which may be shared with others.
    Project(PathBuf),
    /// Nobody's: a plugin directory of our own.
    Plugin,
}

impl Scope {
    /// What `--project` says; the user's without it.
    pub fn of(project: Option<&PathBuf>) -> Result<Self, Trouble> {
        let Some(dir) = project else {
            return Ok(Self::User);
        };
        let whole = current_dir()?.join(dir);
        match whole.is_dir() {
            true => Ok(Self::Project(whole.components().collect())),
            false => Err(Trouble::new(
                Class::NotFound,
                "not_found",
                format!("{} is not a directory", whole.display()),
                Hint::step("give --project the directory of a project"),
            )),
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
pub struct Place {
    pub agent: &'static str,
    pub scope: Scope,
    /// Whether the agent seems to be here.
    pub found: bool,
    pub dir: PathBuf,
}

impl Place {
    /// The settings of this agent.
    pub fn of(agent: &'static str, scope: &Scope) -> Result<Self, Trouble> {
        let own = user_dir(agent)?;
        let dir = match scope {
            Scope::User | Scope::Plugin => own.clone(),
            Scope::Project(dir) => dir.join(format!(".{agent}")),
        };
        Ok(Self {
            agent,
            scope: scope.clone(),
            found: own.is_dir() || dir.is_dir() || is_on_path(agent),
            dir,
        })
    }

    /// A place where something was installed; none for an agent that this version does not know.
    pub fn known(agent: &str, scope: Scope, dir: PathBuf) -> Option<Self> {
        let agent = NAMES.into_iter().find(|name| *name == agent)?;
        Some(Self {
            agent,
            scope,
            found: dir.is_dir(),
            dir,
        })
    }

    /// The file that makes the agent call us; the directory of a plugin.
    pub fn file(&self) -> PathBuf {
        if self.scope == Scope::Plugin {
            return self.dir.clone();
        }
        self.dir.join(match self.agent {
            "codex" => "hooks.json",
            "opencode" => "plugin/tenure.js",
            _ => "settings.json",
        })
    }

    /// Codex's other settings, where it keeps its sandbox and what it trusts; always the user's.
    pub fn codex_config(&self) -> Result<PathBuf, Trouble> {
        let dir = match self.scope {
            Scope::User => self.dir.clone(),
            _ => user_dir("codex")?,
        };
        Ok(dir.join("config.toml"))
    }
}

fn user_dir(agent: &str) -> Result<PathBuf, Trouble> {
    let set = |name: &str| {
        env(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let moved = match agent {
        "claude" => set("CLAUDE_CONFIG_DIR"),
        "codex" => set("CODEX_HOME"),
        "opencode" => set("XDG_CONFIG_HOME").map(|dir| dir.join("opencode")),
        _ => None,
    };
    if let Some(dir) = moved {
        return Ok(current_dir()?.join(dir).components().collect());
    }
    let home = set("HOME").filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| {
        let message =
            "HOME is not set, so there is no telling where the agents keep their settings";
        Trouble::new(
            Class::NotFound,
            "not_found",
            message,
            Hint::step("set HOME"),
        )
    })?;
    Ok(match agent {
        "opencode" => home.join(".config/opencode"),
        other => home.join(format!(".{other}")),
    })
}

fn is_on_path(agent: &str) -> bool {
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
