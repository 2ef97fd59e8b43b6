//! Restoring the state after a removal was killed.
//!
//! | what is there | what happened | what is done |
//! |---|---|---|
//! | git knows the worktree aside, its files exist | killed after the move, or while git deleted files | files are restored, it is moved back |
//! | git knows it aside, its files are gone | killed before git forgot it | git forgets it |
//! | files aside, git knows the old place | killed within the move | renamed back |
//! | files aside, git knows neither | it was pruned by hand | left there, and shown |

use std::path::{Path, PathBuf};

use tenure_core::run::worktree::Record;
use tenure_host::git_command::GitError;
use tenure_host::{file, read};

use super::WorktreeFolder;

#[derive(Debug, thiserror::Error)]
pub(super) enum RecoverError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("{} was moved aside, and git no longer knows it; move it elsewhere", .0.display())]
    Unknown(PathBuf),
}

impl WorktreeFolder {
    /// Restores a worktree to the place in its record. Call only under the lock.
    pub(super) fn recover(&self, name: &str, record: &Record) -> Result<(), RecoverError> {
        let (aside, dir) = (self.aside(name), self.dir(name));
        let is_there = fs_err::symlink_metadata(&aside).is_ok();
        if !is_there && !self.knows_if_asked(&aside, &dir)? {
            return Ok(());
        }
        match (self.knows(&aside)?, is_there) {
            (true, true) => {
                self.restore(&aside)?;
                Ok(self.git.move_worktree(&aside, &dir)?)
            }
            (true, false) => Ok(self.git.remove_worktree(&aside)?),
            (false, false) => Ok(()),
            (false, true) if self.knows(&dir)? && fs_err::symlink_metadata(&dir).is_err() => {
                fs_err::rename(&aside, &dir)?;
                Ok(file::sync_dir(Path::new(&record.dir))?)
            }
            (false, true) => Err(RecoverError::Unknown(aside)),
        }
    }

    /// Whether git knows the worktree aside; checked only if its place is empty.
    fn knows_if_asked(&self, aside: &Path, dir: &Path) -> Result<bool, GitError> {
        Ok(!dir.exists() && self.knows(aside)?)
    }

    /// Restores the files that git had deleted when it was killed. Changed files stay as they are.
    fn restore(&self, aside: &Path) -> Result<(), RecoverError> {
        let dot_git = aside.join(".git");
        if fs_err::symlink_metadata(&dot_git).is_err() {
            let admin = self.admin_dir(&dot_git);
            let admin = admin.ok_or_else(|| RecoverError::Unknown(aside.to_owned()))?;
            let text = format!("gitdir: {}\n", admin.display());
            file::write_atomic(&dot_git, text.as_bytes())?;
        }
        if !self.is_worktree(aside) {
            return Err(RecoverError::Unknown(aside.to_owned()));
        }
        let git = self.git_in(aside);
        if git.leftovers()?.only_missing {
            git.restore_missing()?;
        }
        Ok(())
    }

    /// Git's own directory for the worktree with this `.git`.
    fn admin_dir(&self, dot_git: &Path) -> Option<PathBuf> {
        let all = fs_err::read_dir(self.common_dir.join("worktrees")).ok()?;
        let mut all = all.flatten().map(|entry| entry.path());
        all.find(|own| {
            let text = read::text(&own.join("gitdir"), 1 << 16).unwrap_or_default();
            Path::new(text.trim_end_matches('\n')) == dot_git
        })
    }
}
