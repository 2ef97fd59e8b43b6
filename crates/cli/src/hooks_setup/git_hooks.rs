//! `install git`: the hooks of a repository.
//!
//! The hooks directory is the one that git uses, so `core.hooksPath` counts. One outside the repository may be
//! used by other repositories, or be a place that the repository's author chose: it has to be named. Each directory is an edit in the
//! register, so that `uninstall --all` finds it again. *Crash*: a hook that was kept under its other
//! name and not replaced yet is not run; installing or uninstalling again puts that right.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use tenure_agents::install::git_hook::{HOOKS, is_ours, kept, text};
use tenure_app::place::current_dir;
use tenure_host::file::{remove_leftovers, sync_dir, write_beside};
use tenure_host::git;
use tenure_host::git_command::{Belief, Git, GitError};
use tenure_host::read;
use tenure_service::answer::{Class, Hint};

use super::place::InstallScope;
use super::plan::{State, io_trouble};
use super::register::{Edit, FileOwner, GIT, Kind, without_links};
use crate::output::CliError;

/// No hook is longer.
const MAX_LENGTH: u64 = 16 << 20;

/// What is in a hook's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    /// Ours, for this very tenure.
    Ours,
    /// Ours, for another tenure.
    Old,
    /// Someone else's.
    Other,
}

/// The hooks of one repository.
#[derive(Debug)]
pub struct GitHooks {
    dir: PathBuf,
    /// Whether it is outside its repository.
    outside: bool,
}

/// What was done, or would be.
pub struct GitHooksReport {
    /// A line for each file.
    pub lines: Vec<String>,
    files: Vec<Value>,
}

impl GitHooks {
    /// The hooks directory of the repository of a scope's directory.
    pub fn find(scope: &InstallScope) -> Result<Self, CliError> {
        let dir = match scope {
            InstallScope::User | InstallScope::Plugin => current_dir()?,
            InstallScope::Project(dir) => dir.clone(),
        };
        let lost = |why: String, step: &str| {
            CliError::new(Class::NotFound, "not_found", why, Hint::step(step))
        };
        let Some(found) = git::worktree(&dir) else {
            return Err(lost(
                format!("{} is not in a git repository", dir.display()),
                "run it in a git repository, or pass one with --project DIR",
            ));
        };
        let path = Git::of_worktree(&found.root, Belief::UserOnly).hooks_path();
        let path = path.map_err(|error| match error {
            GitError::NotRun(error) => {
                let step = "install git, or add its directory to PATH";
                lost(format!("cannot run git: {error}"), step)
            }
            error => lost(
                error.to_string(),
                "fix that, then run the same command again",
            ),
        })?;
        let dir = match path {
            Some(path) => found.root.join(path),
            None => found.common_dir.join("hooks"),
        };
        let real = without_links(&dir);
        let inside = [&found.root, &found.common_dir];
        // What leaves a directory that does not exist cannot be resolved.
        let leaves = real.components().any(|part| part == Component::ParentDir);
        Ok(Self {
            outside: leaves || !inside.iter().any(|own| real.starts_with(own)),
            dir: dir.components().collect(),
        })
    }

    /// Refuses a directory outside the repository, unless it is the named one.
    pub fn require(&self, named: Option<&Path>) -> Result<(), CliError> {
        let dir = self.dir.display();
        if let Some(named) = named {
            let named = std::path::absolute(named).map_err(|error| io_trouble(&error))?;
            if without_links(&named) == without_links(&self.dir) {
                return Ok(());
            }
            let message = format!("git looks for hooks in {dir}, not in {}", named.display());
            let hint = Hint::step("omit --hooks-path, or change core.hooksPath");
            return Err(CliError::new(Class::Usage, "usage", message, hint));
        }
        if !self.outside {
            return Ok(());
        }
        let message = format!(
            "core.hooksPath is {dir}, outside this repository; other repositories may use it too"
        );
        let own = self.dir.to_string_lossy();
        let words = ["git", "--hooks-path", own.as_ref()];
        let hint = Hint::run("install", words, "to install there anyway");
        Err(CliError::new(Class::Invalid, "invalid", message, hint))
    }

    /// The hooks of an edit.
    pub fn of(edit: &Edit) -> Self {
        let dir = edit.file.clone();
        let outside = false;
        Self { dir, outside }
    }

    /// The edit that installing is.
    pub fn edit(&self) -> Edit {
        Edit::of(GIT, Kind::Git, FileOwner::Project, &self.dir, &self.dir)
    }

    fn there(&self, hook: &str, program: &str) -> Result<There, CliError> {
        let path = self.dir.join(hook);
        match fs_err::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(There::Nothing),
            Err(error) => return Err(io_trouble(&error)),
            Ok(found) if !found.is_file() => return Ok(There::Other),
            Ok(_) => {}
        }
        let found = read::whole(&path, MAX_LENGTH).map_err(|error| io_trouble(&error))?;
        Ok(
            match (is_ours(&found), found == text(program, hook).into_bytes()) {
                (true, true) => There::Ours,
                (true, false) => There::Old,
                (false, _) => There::Other,
            },
        )
    }

    pub fn state(&self, program: &str) -> Result<State, CliError> {
        let mut all = Vec::new();
        for hook in HOOKS {
            all.push(self.there(hook, program)?);
        }
        let is_ours = |there: &There| matches!(there, There::Ours | There::Old);
        Ok(
            match (
                all.iter().all(|one| *one == There::Ours),
                all.iter().any(is_ours),
            ) {
                (true, _) => State::Installed,
                (false, true) => State::Outdated,
                (false, false) => State::NotInstalled,
            },
        )
    }

    /// Puts our hooks in place; a hook that is there is kept.
    pub fn install(&self, program: &str, dry: bool) -> Result<GitHooksReport, CliError> {
        let mut done = GitHooksReport::nothing();
        for hook in HOOKS {
            let (path, kept) = (self.dir.join(hook), self.dir.join(kept(hook)));
            let there = self.there(hook, program)?;
            if there == There::Other && fs_err::symlink_metadata(&kept).is_ok() {
                let message = format!(
                    "{} and {} exist, and tenure wrote neither; nothing was changed",
                    path.display(),
                    kept.display()
                );
                let hint = Hint::run(
                    "install",
                    ["git"],
                    "after you merged the two hooks into one",
                );
                return Err(CliError::new(Class::Invalid, "invalid", message, hint));
            }
            let word = match there {
                There::Ours => continue,
                There::Nothing => "created",
                There::Old | There::Other => "changed",
            };
            let backup = (there == There::Other).then_some(kept.as_path());
            if !dry {
                replace(&path, backup, &text(program, hook)).map_err(|error| io_trouble(&error))?;
            }
            done.note(word, &path, backup);
        }
        Ok(done)
    }

    /// Takes our hooks away; a hook that was kept comes back.
    pub fn uninstall(&self, dry: bool) -> Result<GitHooksReport, CliError> {
        let mut done = GitHooksReport::nothing();
        for hook in HOOKS {
            let (path, kept) = (self.dir.join(hook), self.dir.join(kept(hook)));
            let has_kept = fs_err::symlink_metadata(&kept).is_ok();
            let (word, act): (_, fn(&Path, &Path) -> std::io::Result<()>) =
                match (self.there(hook, "")?, has_kept) {
                    (There::Ours | There::Old, false) => {
                        ("removed", |path, _| fs_err::remove_file(path))
                    }
                    (There::Ours | There::Old | There::Nothing, true) => {
                        ("changed", |path, kept| fs_err::rename(kept, path))
                    }
                    _ => continue,
                };
            if !dry {
                act(&path, &kept).map_err(|error| io_trouble(&error))?;
            }
            done.note(word, &path, None);
        }
        if !dry && self.dir.is_dir() {
            for hook in HOOKS {
                remove_leftovers(&self.dir.join(hook)).map_err(|error| io_trouble(&error))?;
            }
        }
        Ok(done)
    }

    /// Where things stand, for programs.
    pub fn json(&self, state: State, done: &GitHooksReport) -> Value {
        json!({
            "agent": GIT,
            "state": state.word().replace(' ', "_"),
            "found": true,
            "scope": "project",
            "file": self.dir,
            "mode": null,
            "trust": null,
            "changed": !done.files.is_empty(),
            "files": done.files,
            "notes": [],
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl GitHooksReport {
    pub fn nothing() -> Self {
        Self {
            lines: Vec::new(),
            files: Vec::new(),
        }
    }

    /// This and what was done elsewhere.
    pub fn join(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.files.extend(other.files);
    }

    pub fn is_nothing(&self) -> bool {
        self.files.is_empty()
    }

    fn note(&mut self, word: &str, path: &Path, backup: Option<&Path>) {
        let kept = match backup {
            Some(kept) => format!(" (the previous hook runs after it: {})", kept.display()),
            None => String::new(),
        };
        self.lines.push(format!("{word} {}{kept}", path.display()));
        self.files
            .push(json!({"file": path, "change": word, "backup": backup}));
    }
}

/// Writes beside, keeps what is there, and puts the new one in its place.
fn replace(path: &Path, kept: Option<&Path>, text: &str) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs_err::create_dir_all(dir)?;
    // Synced before it is renamed: after a power cut there is the old hook or the new one, never an empty
    // file that git would run.
    let beside = write_beside(path, text.as_bytes())?;
    fs_err::set_permissions(&beside, std::fs::Permissions::from_mode(0o755))?;
    if let Some(kept) = kept {
        fs_err::rename(path, kept)?;
    }
    fs_err::rename(&beside, path)?;
    sync_dir(path)
}
