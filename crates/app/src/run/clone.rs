//! Cloning a repository once.
//!
//! A clone is created under a temporary name and renamed when it is complete, so a directory with
//! the clone's name is a clone. *Crash*: a git process that outlives its runner keeps the lock
//! until it is done; the next holder of the lock removes what a killed one left.

use std::io;
use std::path::Path;

use tenure_host::file;
use tenure_host::git::{self, Worktree};
use tenure_host::git_command::{Belief, Git};
use tenure_host::kernel_lock::{LockDir, LockName};
use tenure_service::answer::{Class, Hint, Problem};

use super::worktree;

/// The clone of a repository in this directory; created if missing.
pub(super) fn clone(
    dir: &Path,
    url: &str,
    repo: &str,
    settings: &[String],
    locks: &LockDir,
) -> Result<Worktree, Problem> {
    if let Some(found) = cloned(dir, repo)? {
        return Ok(found);
    }
    let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Err(cannot(repo, &io::ErrorKind::InvalidInput));
    };
    file::make_dirs(parent).map_err(|error| cannot(repo, &error))?;
    let lock = LockName::of_path(dir).map_err(|error| cannot(repo, &error))?;
    let _locked = worktree::lock(&lock, locks, worktree::PATIENCE)?;
    if let Some(found) = cloned(dir, repo)? {
        return Ok(found);
    }
    if fs_err::symlink_metadata(dir).is_ok() {
        let why = format!(
            "{} exists and is not a git repository; move it away",
            dir.display()
        );
        return Err(cannot(repo, &why));
    }
    let unfinished = format!(".{}.cloning", name.to_string_lossy());
    let aside = parent.join(&unfinished);
    remove(&aside).map_err(|error| cannot(repo, &error))?;
    let git = Git::of_worktree(parent, Belief::Full).with(settings);
    if let Err(error) = git.clone_into(url, &unfinished) {
        remove(&aside).map_err(|error| cannot(repo, &error))?;
        return Err(cannot(repo, &error));
    }
    fs_err::rename(&aside, dir).map_err(|error| cannot(repo, &error))?;
    file::sync_dir(dir).map_err(|error| cannot(repo, &error))?;
    cloned(dir, repo)?.ok_or_else(|| cannot(repo, &"git did not create a repository"))
}

/// The existing clone of this repository.
fn cloned(dir: &Path, repo: &str) -> Result<Option<Worktree>, Problem> {
    let whole = fs_err::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let Some(found) = git::worktree(dir).filter(|found| found.root == whole) else {
        return Ok(None);
    };
    match &found.remote {
        Some(other) if other != repo => {
            let why = format!("{} is a clone of {other}; move it away", dir.display());
            Err(cannot(repo, &why))
        }
        _ => Ok(Some(found)),
    }
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs_err::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn cannot(repo: &str, why: &dyn std::fmt::Display) -> Problem {
    let message = format!("cannot clone {repo}: {why}");
    let hint = Hint::step("fix the cause; tenure then tries the job again");
    Problem::new(Class::Invalid, "clone", message, hint)
}
