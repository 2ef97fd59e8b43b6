//! The register of edits: every file outside the state directory that `install` changed or made.
//!
//! One file in the state directory, read and written under its kernel lock, which `install` and
//! `uninstall` hold from their first look to their last change. An edit is written here, and flushed,
//! before it is made. So what a kill leaves behind is always listed, and `uninstall` undoes what is listed:
//! an edit that was not made, or is undone already, costs nothing. An edit leaves the register only after it was
//! undone.
//!
//! *Older versions* kept a list of git hook directories alone (`git-hooks`); it is taken over. What they
//! installed elsewhere is found in the agents' usual places. *Newer versions*: an entry that this
//! version does not know is kept as it is, and `uninstall --all` names it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_core::json_fault::fault_at;
use tenure_host::file::{read_plain, remove, remove_leftovers, write_atomic};
use tenure_host::kernel_lock::{HeldLock, LockError, LockName, Patience, Sharing};
use tenure_service::answer::{Class, Hint};

use crate::output::{CliError, where_state_is};

/// The one target that is not an agent.
pub const GIT: &str = "git";

const FILE: &str = "installed.json";
/// What older versions kept.
const OLD_FILE: &str = "git-hooks";
/// Another `install` takes a moment; one that stands still is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// As many changes of a mode as are kept.
const MAX_MODES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The `hooks` object of a settings file.
    Hooks,
    /// The writable places of Codex's sandbox.
    Sandbox,
    /// The entry among an agent's MCP servers.
    Mcp,
    /// A plugin file for opencode, all ours.
    Script,
    /// A file of a plugin directory for Claude Code.
    Plugin,
    /// A directory of git hooks.
    Git,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileOwner {
    User,
    Project,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub agent: String,
    pub kind: Kind,
    pub owner: FileOwner,
    /// The agent's directory, or the plugin's.
    pub place: PathBuf,
    /// The file as its user names it; its directory has no links.
    pub file: PathBuf,
    /// The file without links.
    pub real: PathBuf,
    /// The directory that the sandbox may write to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The directories that were missing and are ours to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<PathBuf>,
    /// What we wrote, by SHA-256, if the whole file is ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hashes: Vec<String>,
    /// The modes of the hooks, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Installed>,
}

/// A mode, and since when it is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// In milliseconds of the wall clock, which process starts are compared with.
    pub at: i64,
    pub mode: String,
}

impl Edit {
    /// An edit of this file, as things stand before it is made.
    pub fn of(agent: &str, kind: Kind, owner: FileOwner, place: &Path, file: &Path) -> Self {
        let named = without_links_above(file);
        let missing = |dir: &&Path| fs_err::symlink_metadata(dir).is_err();
        let inside = match kind {
            Kind::Git => Some(named.as_path()),
            _ => named.parent(),
        };
        let above = inside.map(Path::ancestors).into_iter().flatten();
        let dirs = above.take_while(missing).map(Path::to_owned).collect();
        Self {
            agent: agent.to_owned(),
            kind,
            owner,
            place: without_links(place),
            real: without_links(&named),
            file: named,
            root: None,
            dirs,
            hashes: Vec::new(),
            modes: Vec::new(),
        }
    }

    /// Whether both undo the same thing.
    pub fn is(&self, other: &Self) -> bool {
        (self.kind, &self.agent, &self.file, &self.real, &self.root)
            == (
                other.kind,
                &other.agent,
                &other.file,
                &other.real,
                &other.root,
            )
    }

    /// Adds what an earlier edit of the same file made.
    pub fn join(&mut self, earlier: &Self) {
        let dirs = earlier.dirs.iter().filter(|dir| !self.dirs.contains(dir));
        let dirs: Vec<PathBuf> = dirs.cloned().collect();
        self.dirs.extend(dirs);
        let known = earlier.hashes.iter();
        let hashes: Vec<String> = known
            .filter(|hash| !self.hashes.contains(hash))
            .cloned()
            .collect();
        self.hashes.extend(hashes);
        let newer = std::mem::take(&mut self.modes);
        self.modes.clone_from(&earlier.modes);
        for one in newer {
            if self.modes.last().is_none_or(|last| last.mode != one.mode) {
                self.modes.push(one);
            }
        }
        let old = self.modes.len().saturating_sub(MAX_MODES);
        self.modes.drain(..old);
    }
}

/// The path without links, as far as it exists.
pub fn without_links(path: &Path) -> PathBuf {
    match (fs_err::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => without_links(parent).join(name),
        _ => path.to_owned(),
    }
}

/// The same, but a link at its end stays.
fn without_links_above(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => without_links(parent).join(name),
        _ => path.to_owned(),
    }
}

/// The register, and the lock on it; without a state directory there is neither.
#[derive(Debug)]
pub struct Register {
    dir: PathBuf,
    edits: Vec<Edit>,
    unknown: Vec<Value>,
    held: Option<HeldLock>,
}

impl Register {
    /// Locks it and reads it.
    pub fn open(state_dir: &str) -> Result<Self, CliError> {
        let locks = tenure_app::location::locks()?;
        let dir = Path::new(state_dir);
        let file = dir.join(FILE);
        let name = LockName::of_path(&file).map_err(lock_error)?;
        let patience = Patience::AtMost(PATIENCE);
        let held = locks.lock(&name, Sharing::Exclusive, patience);
        let held = held.map_err(lock_error)?;
        remove_leftovers(&file).map_err(|error| unread(&error))?;
        let mut register = Self::peek(state_dir)?;
        register.held = Some(held);
        Ok(register)
    }

    /// Reads it without the lock, for callers that only read.
    pub fn peek(state_dir: &str) -> Result<Self, CliError> {
        let dir = Path::new(state_dir);
        let mut register = Self::none(state_dir);
        let read = |name: &str| {
            let file = dir.join(name);
            read_plain(&file).map_err(|error| unread(&error))
        };
        if let Some(text) = read(FILE)? {
            register.parse(&text)?;
        }
        for hooks in read(OLD_FILE)?.unwrap_or_default().lines().map(Path::new) {
            let edit = Edit::of(GIT, Kind::Git, FileOwner::Project, hooks, hooks);
            let edit = Edit {
                dirs: Vec::new(),
                ..edit
            };
            if !register.edits.iter().any(|known| known.is(&edit)) {
                register.edits.push(edit);
            }
        }
        Ok(register)
    }

    pub fn none(state_dir: &str) -> Self {
        Self {
            dir: state_dir.into(),
            edits: Vec::new(),
            unknown: Vec::new(),
            held: None,
        }
    }

    fn parse(&mut self, text: &str) -> Result<(), CliError> {
        let file = self.dir.join(FILE);
        let whole: Value =
            serde_json::from_str(text).map_err(|error| unusable(&file, &fault_at(&error)))?;
        let Some(edits) = whole["edits"].as_array() else {
            return Err(unusable(&file, "it has no list of edits"));
        };
        for value in edits {
            match Edit::deserialize(value) {
                Ok(edit) => self.edits.push(edit),
                Err(_) => self.unknown.push(value.clone()),
            }
        }
        Ok(())
    }

    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// The modes that an agent's hooks had in this file, oldest first.
    pub fn modes(&self, agent: &str, file: &Path) -> &[Installed] {
        let real = without_links(file);
        let has = |edit: &&Edit| edit.agent == agent && edit.real == real && !edit.modes.is_empty();
        let edit = self.edits.iter().find(has);
        edit.map_or(&[], |edit| edit.modes.as_slice())
    }

    /// How many entries this version does not know.
    pub fn unknown(&self) -> usize {
        self.unknown.len()
    }

    /// Lists edits that will be made now; returns when the disk has it.
    pub fn note(&mut self, edits: Vec<Edit>) -> Result<(), CliError> {
        let before = self.edits.clone();
        for mut edit in edits {
            if let Some(known) = self.edits.iter_mut().find(|known| known.is(&edit)) {
                edit.join(known);
                *known = edit;
            } else {
                self.edits.push(edit);
            }
        }
        if self.edits == before {
            Ok(())
        } else {
            self.save()
        }
    }

    /// An edit with all that is listed of it by now.
    pub fn latest(&self, edit: &Edit) -> Edit {
        let mut latest = edit.clone();
        if let Some(known) = self.edits.iter().find(|known| known.is(edit)) {
            latest.join(known);
        }
        latest
    }

    /// Strikes out edits that were undone. A directory of ours that another edit is in goes with that one.
    pub fn strike(&mut self, undone: &[Edit]) -> Result<(), CliError> {
        let count = self.edits.len();
        self.edits
            .retain(|edit| !undone.iter().any(|other| other.is(edit)));
        let left = undone.iter().flat_map(|edit| &edit.dirs);
        for dir in left.filter(|dir| dir.is_dir()) {
            let inside = |edit: &&mut Edit| edit.file.starts_with(dir) && !edit.dirs.contains(dir);
            for edit in self.edits.iter_mut().filter(inside) {
                edit.dirs.push(dir.clone());
            }
        }
        if self.edits.len() == count {
            Ok(())
        } else {
            self.save()
        }
    }

    fn save(&self) -> Result<(), CliError> {
        let file = self.dir.join(FILE);
        let known = self.edits.iter().map(|edit| json!(edit));
        let edits: Vec<Value> = known.chain(self.unknown.iter().cloned()).collect();
        let saved = if edits.is_empty() {
            remove(&file)
        } else {
            write_atomic(&file, format!("{:#}\n", json!({"edits": edits})).as_bytes())
        };
        saved
            .and_then(|()| remove(&self.dir.join(OLD_FILE)))
            .map_err(|error| unread(&error))
    }
}

fn lock_error(error: LockError) -> CliError {
    match error {
        LockError::Held { .. } => CliError::new(
            Class::TimedOut,
            "timed_out",
            "another `tenure install` or `tenure uninstall` is running",
            Hint::verb(
                "locks",
                "to see which process, then run the same command again",
            ),
        ),
        other => CliError::new(
            Class::Store,
            "store_unavailable",
            other.to_string(),
            where_state_is(),
        ),
    }
}

fn unusable(file: &Path, why: &str) -> CliError {
    unread(&format!("{} is not valid ({why})", file.display()))
}

/// The error names the file.
fn unread(error: &impl std::fmt::Display) -> CliError {
    let message = format!("the record of installed hooks cannot be used: {error}");
    let hint = Hint::step(
        "fix the file, or move it away; without it, only the agents' usual settings are searched",
    );
    CliError::new(Class::Invalid, "invalid", message, hint)
}
