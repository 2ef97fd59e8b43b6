//! One linked worktree per item: created or reused, and removed when everything in it exists
//! elsewhere.
//!
//! They are below `worktrees` in the state directory, with a folder for each repository and a
//! record next to each worktree ([`Record`]). Everything happens under one lock per repository,
//! which a git process that outlives us keeps until it is done.
//!
//! *Removal*: the worktree is checked, moved aside, so that it can no longer be found by its name,
//! checked again, and removed by git without force. Any doubt moves it back. *Crash*: the next
//! check recognises every intermediate state by what is on disk, and restores it: see `recover`.
//! *Trust*: git runs in a repository that is not trusted only while its own settings name no program that
//! cannot be pinned ([`foreign_setting`]); its worktrees are kept otherwise. *Clock*: no decision depends on one. *Older version*: an unreadable record is left alone, with
//! its worktree.

mod add;
mod recover;
mod remove;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::ignore::Ignore;
use tenure_core::key::Key;
use tenure_core::run::worktree::Record;
use tenure_core::text;
use tenure_host::git::{self, Worktree};
use tenure_host::git_command::{Belief, Git, GitError};
use tenure_host::git_process::foreign_setting;
use tenure_host::kernel_lock::{HeldLock, LockDir, LockError, LockName, Patience, Sharing};
use tenure_host::{file, read};
use tenure_service::answer::{Class, Hint, Problem};

use tenure_app::open::Context;
use tenure_app::settings::repo::trust_or;

pub use remove::{Removal, remove};

/// Where the worktrees are, in the state directory.
const FOLDER: &str = "worktrees";
/// The prefix of a worktree that is being removed.
const ASIDE: &str = ".leaving-";
const MAX_RECORD: u64 = 1 << 20;
/// How long another run may take to create or remove a worktree of the same repository.
pub(super) const PATIENCE: Patience = Patience::AtMost(Duration::from_secs(600));

/// A worktree that an agent can work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWorktree {
    pub dir: PathBuf,
    pub branch: String,
    /// Whether it was just created.
    pub is_new: bool,
}

/// An existing worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingWorktree {
    pub record: Record,
    name: String,
    folder: PathBuf,
}

/// The worktrees of one repository.
#[derive(Debug)]
struct WorktreeFolder {
    git: Git,
    belief: Belief,
    common_dir: PathBuf,
    /// The folder with its worktrees and records, without symbolic links.
    folder: PathBuf,
}

/// Creates the worktree of an item, or finds the existing one. `of` is any worktree of the
/// repository.
///
/// A new worktree begins with the work of `base`, if there is one; a worktree that exists must contain that work.
pub fn for_item(
    item: &Key,
    of: &Worktree,
    belief: Belief,
    base: Option<&Base>,
    state: &Path,
    locks: &LockDir,
) -> Result<RunWorktree, Problem> {
    let worktree_folder = WorktreeFolder::of(of, belief, state)?;
    worktree_folder
        .require_plain()
        .map_err(|foreign| foreign.problem(of))?;
    let _locked = worktree_folder.lock(locks, PATIENCE)?;
    let start = base
        .map(|base| worktree_folder.commit_of(base))
        .transpose()?;
    match worktree_folder.record_of(item)? {
        Some((name, record)) => {
            worktree_folder
                .recover(&name, &record)
                .map_err(|error| unusable(&error))?;
            if let (Some(base), Some(start)) = (base, &start) {
                worktree_folder.must_contain(&record, base, start)?;
            }
            worktree_folder.reuse(&name, record)
        }
        None => worktree_folder.add(item, of.remote.as_deref(), start.as_deref()),
    }
}

/// Work that other work begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    pub item: Key,
    /// Where its newest run worked.
    pub dir: PathBuf,
}

/// The worktrees of all repositories. Any that a killed removal left aside is restored first.
pub fn left(state: &Path, locks: &LockDir) -> Vec<ExistingWorktree> {
    let folders = entries(&state.join(FOLDER));
    let mut all: Vec<ExistingWorktree> =
        folders.iter().flat_map(|folder| records(folder)).collect();
    for left in &all {
        if left.aside().exists() {
            let worktree_folder = left.worktree_folder();
            // If the lock is taken, its holder handles it.
            if worktree_folder.require_plain().is_ok()
                && let Ok(_locked) = worktree_folder.lock(locks, Patience::None)
            {
                // If it cannot be restored now, the next check finds it again.
                drop(worktree_folder.recover(&left.name, &left.record));
            }
        }
    }
    all.retain(|left| left.aside().exists() || Path::new(&left.record.dir).exists());
    all.sort_by(|one, other| one.record.item.cmp(&other.record.item));
    all
}

/// Removes the worktrees of items that were closed longer ago than the grace period. The reasons
/// against a removal are stored in its record and shown by `status`.
pub fn remove_over(context: &mut Context) -> Result<(), Problem> {
    let state = context.dir().to_owned();
    if !state.join(FOLDER).is_dir() {
        return Ok(());
    }
    let locks = tenure_app::location::locks()?;
    let all = left(&state, &locks);
    let items = all.iter().map(|left| Key::stored(&left.record.item));
    let items: Vec<Key> = items.filter_map(Result::ok).collect();
    let over = context.service().items_over(&items)?.value;
    for left in all {
        if over.iter().any(|item| item.as_str() == left.record.item) {
            remove(&left, None, &locks)?;
        }
    }
    Ok(())
}

/// The same for a caller that only shows them.
pub fn records_left(state: &Path) -> Vec<Record> {
    if !state.join(FOLDER).is_dir() {
        return Vec::new();
    }
    let Ok(locks) = tenure_app::location::locks() else {
        return Vec::new();
    };
    let all = left(state, &locks).into_iter();
    all.map(|left| left.record).collect()
}

/// Warnings about worktrees that could not be removed, one sentence each.
pub fn warnings(all: &[Record]) -> Vec<String> {
    let kept = all.iter().filter(|record| !record.kept.is_empty());
    kept.map(|record| {
        let (item, dir) = (&record.item, text::name(&record.dir));
        let why: Vec<_> = record.kept.iter().map(|why| text::line(why)).collect();
        format!(
            "the worktree of {item} in {dir} was not removed: {}",
            why.join("; ")
        )
    })
    .collect()
}

impl ExistingWorktree {
    fn aside(&self) -> PathBuf {
        self.folder.join(format!("{ASIDE}{}", self.name))
    }

    fn worktree_folder(&self) -> WorktreeFolder {
        let common_dir = PathBuf::from(&self.record.repository);
        let belief = Belief::of(self.record.believed);
        WorktreeFolder {
            git: Git::of_repository(&common_dir, belief),
            belief,
            common_dir,
            folder: self.folder.clone(),
        }
    }
}

impl WorktreeFolder {
    /// The folder of a repository, created if missing.
    fn of(worktree: &Worktree, belief: Belief, state: &Path) -> Result<Self, Problem> {
        let common_dir = worktree.common_dir.clone();
        let folder = state.join(FOLDER).join(folder_name(worktree)?);
        file::make_dirs(&folder).map_err(|error| unusable(&error))?;
        Ok(Self {
            git: Git::of_repository(&common_dir, belief),
            belief,
            common_dir,
            folder: fs_err::canonicalize(folder).map_err(|error| unusable(&error))?,
        })
    }

    /// Refuses a repository that is not trusted if its settings may name programs that cannot be pinned.
    fn require_plain(&self) -> Result<(), Foreign> {
        if self.belief == Belief::Full {
            return Ok(());
        }
        match foreign_setting(&self.common_dir) {
            Ok(None) => Ok(()),
            Ok(Some(setting)) => Err(Foreign::Setting(setting)),
            Err(error) => Err(Foreign::Unreadable(error)),
        }
    }

    /// Git in one of its worktrees.
    fn git_in(&self, dir: &Path) -> Git {
        Git::of_worktree(dir, self.belief)
    }

    fn lock(&self, locks: &LockDir, patience: Patience) -> Result<WorktreeLock, Problem> {
        let folder = self.folder.file_name().unwrap_or_default();
        let name = format!("{FOLDER}/{}", folder.to_string_lossy());
        let name = LockName::plain(&name).map_err(|error| unusable(&error))?;
        lock(&name, locks, patience)
    }

    fn record_file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn aside(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{ASIDE}{name}"))
    }

    fn record_of(&self, item: &Key) -> Result<Option<(String, Record)>, Problem> {
        let own = |left: &ExistingWorktree| left.record.item == item.as_str();
        let found = records(&self.folder).into_iter().find(own);
        Ok(found.map(|left| (left.name, left.record)))
    }

    fn keep(&self, name: &str, record: &Record) -> Result<(), Problem> {
        let text = serde_json::to_vec_pretty(record).unwrap_or_default();
        file::write_atomic(&self.record_file(name), &text).map_err(|error| unusable(&error))
    }

    fn forget(&self, name: &str) -> Result<(), Problem> {
        file::remove(&self.record_file(name)).map_err(|error| unusable(&error))
    }

    /// Whether git knows a worktree at this path.
    fn knows(&self, path: &Path) -> Result<bool, GitError> {
        let all = self.git.worktrees()?;
        Ok(all.iter().any(|tree| tree.path == path))
    }

    /// Whether a directory is a worktree of this repository, so that git commands there act on it
    /// and not on a repository that happens to contain it.
    fn is_worktree(&self, dir: &Path) -> bool {
        git::worktree(dir)
            .is_some_and(|found| found.root == dir && found.common_dir == self.common_dir)
    }
}

/// What git could run in a repository that is not trusted.
#[derive(Debug, thiserror::Error)]
enum Foreign {
    #[error(
        "its repository is not trusted, and git could run a program that {0} in its settings names"
    )]
    Setting(String),
    #[error("its repository is not trusted, and its settings cannot be read: {0}")]
    Unreadable(std::io::Error),
}

impl Foreign {
    fn problem(&self, of: &Worktree) -> Problem {
        let name = of.repo();
        let file = of.common_dir.join("config");
        let file = file.display();
        let message = match self {
            Foreign::Setting(setting) => format!(
                "{name} is not trusted, and {file} has {setting}, with which git could run a program of its author"
            ),
            Foreign::Unreadable(error) => {
                format!("{name} is not trusted, and git cannot read {file}: {error}")
            }
        };
        let other = match self {
            Foreign::Setting(setting) => format!("remove {setting} from {file}"),
            Foreign::Unreadable(_) => format!("correct {file}"),
        };
        let hint = trust_or(Some(of), &other);
        Problem::new(Class::Invalid, "untrusted", message, hint)
    }
}

/// Takes the lock of a repository, which git processes that we start keep too.
pub(super) fn lock(
    name: &LockName,
    locks: &LockDir,
    patience: Patience,
) -> Result<WorktreeLock, Problem> {
    let take = || -> Result<HeldLock, LockError> {
        let held = locks.lock(name, Sharing::Exclusive, patience)?;
        held.pass_on().map_err(|why| LockError::Unusable {
            name: held.name().to_owned(),
            why,
        })?;
        Ok(held)
    };
    match take() {
        Ok(held) => Ok(WorktreeLock(Some(held))),
        Err(LockError::Held { name }) => {
            let message =
                format!("another process is changing the worktrees of this repository ({name})");
            let hint = Hint::verb("locks", "to see which process");
            Err(Problem::new(Class::Held, "held", message, hint))
        }
        Err(error) => Err(unusable(&error)),
    }
}

/// The lock of a repository's worktrees.
pub(super) struct WorktreeLock(Option<HeldLock>);

/// Git processes that we started have the lock too, but they are done when we are.
impl Drop for WorktreeLock {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            held.unlock_for_all()
                .ignore("closing it, which comes next, releases it as well");
        }
    }
}

/// A name that people recognise, with a part that distinguishes two clones.
fn folder_name(worktree: &Worktree) -> Result<String, Problem> {
    let lock = LockName::of_path(&worktree.common_dir).map_err(|error| unusable(&error))?;
    let own = lock
        .file()
        .trim_start_matches("p-")
        .get(..8)
        .unwrap_or_default();
    let name = worktree.repo();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.trim_end_matches("/.git").chars().map(plain).collect();
    let tail: String = name
        .chars()
        .rev()
        .take(40)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    Ok(format!("{}-{own}", tail.trim_matches('-')))
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = fs_err::read_dir(dir).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).collect()
}

/// The records in a folder; unreadable ones are skipped and left alone.
fn records(folder: &Path) -> Vec<ExistingWorktree> {
    let Ok(folder) = fs_err::canonicalize(folder) else {
        return Vec::new();
    };
    let read = |path: PathBuf| {
        let name = path
            .file_name()?
            .to_str()?
            .strip_suffix(".json")?
            .to_owned();
        let text = read::text(&path, MAX_RECORD).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        Some(ExistingWorktree {
            record,
            name,
            folder: folder.clone(),
        })
    };
    entries(&folder).into_iter().filter_map(read).collect()
}

fn unusable(why: &dyn std::fmt::Display) -> Problem {
    let hint =
        Hint::step("fix that and run the same command again, or pass a directory with --dir");
    Problem::new(
        Class::Invalid,
        "worktree",
        format!("cannot use the worktree: {why}"),
        hint,
    )
}

#[cfg(test)]
mod tests;
