//! How a worktree stands against the branch that others build on, for people who look at it.
//!
//! Git is asked within a deadline, without a lock, and runs no program of the repository's choice: one whose settings name
//! such programs is not read.

use std::time::{Duration, Instant};

use crate::git::Worktree;
use crate::git_command::{Belief, Git, GitError};
use crate::git_process::{Reach, foreign_setting};

/// How long all of it may take.
const WITHIN: Duration = Duration::from_secs(5);

/// How a worktree stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// Files that are changed, staged or untracked.
    pub uncommitted: u64,
    /// Files with a conflict that nobody resolved yet.
    pub conflicts: u64,
    /// The branch that it is compared with; none if there is none.
    pub base: Option<String>,
    /// Commits here that the base does not have, and the other way round.
    pub ahead: u64,
    pub behind: u64,
    /// Files and lines that differ from where it left the base, with what is not committed.
    pub files: u64,
    pub added: u64,
    pub removed: u64,
    /// Whether a branch of a remote has its newest commit, as far as it was fetched; none without a remote.
    pub pushed: Option<bool>,
}

/// Asks git how a worktree stands. None for a repository whose settings name programs.
pub fn read(worktree: &Worktree) -> Result<Option<WorktreeChanges>, GitError> {
    if foreign_setting(&worktree.common_dir)
        .map_err(GitError::NotRun)?
        .is_some()
    {
        return Ok(None);
    }
    let git = Git::of_worktree(&worktree.root, Belief::UserOnly);
    let until = Instant::now() + WITHIN;
    let ask = |args: &[&str]| -> Result<String, GitError> {
        let left = until.saturating_duration_since(Instant::now());
        let bytes = git.transfer(&Reach::Local, args, left)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut found = WorktreeChanges::default();
    let status = ["status", "--porcelain=v2", "-z", "--untracked-files=normal"];
    count_status(&ask(&status)?, &mut found);
    if git.commit("HEAD")?.is_none() {
        return Ok(Some(found));
    }
    if git.remote()?.is_some() {
        let unknown = ask(&["rev-list", "--max-count=1", "HEAD", "--not", "--remotes"])?;
        found.pushed = Some(unknown.trim().is_empty());
    }
    if let Some(base) = git.base()? {
        let sides = format!("{base}...HEAD");
        let counts = ask(&["rev-list", "--left-right", "--count", &sides, "--"])?;
        let mut counts = counts
            .split_whitespace()
            .map(|one| one.parse().unwrap_or(0));
        found.behind = counts.next().unwrap_or(0);
        found.ahead = counts.next().unwrap_or(0);
        // Without a common commit there is nothing to compare with.
        if let Ok(left_at) = ask(&["merge-base", &base, "HEAD"]) {
            let stat = [
                "diff",
                "--shortstat",
                "--no-ext-diff",
                "--no-textconv",
                left_at.trim(),
                "--",
            ];
            count_stat(&ask(&stat)?, &mut found);
        }
        let short = base
            .strip_prefix("refs/remotes/")
            .or(base.strip_prefix("refs/heads/"));
        found.base = Some(short.unwrap_or(&base).to_owned());
    }
    Ok(Some(found))
}

/// Counts the entries of `git status --porcelain=v2 -z`; a renamed file is followed by its old path.
fn count_status(text: &str, found: &mut WorktreeChanges) {
    let mut entries = text.split('\0');
    while let Some(entry) = entries.next() {
        match entry.split(' ').next() {
            Some("1" | "?") => found.uncommitted += 1,
            Some("2") => {
                found.uncommitted += 1;
                entries.next();
            }
            Some("u") => {
                found.uncommitted += 1;
                found.conflicts += 1;
            }
            _ => {}
        }
    }
}

/// Reads `3 files changed, 10 insertions(+), 2 deletions(-)`, of which git leaves out what is zero.
fn count_stat(text: &str, found: &mut WorktreeChanges) {
    for part in text.split(',') {
        let mut words = part.split_whitespace();
        let count = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        match words.next().unwrap_or_default() {
            "file" | "files" => found.files = count,
            "insertion(+)" | "insertions(+)" => found.added = count,
            "deletion(-)" | "deletions(-)" => found.removed = count,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_prints_is_counted() {
        let mut found = WorktreeChanges::default();
        count_status(
            "1 .M N... 100644 100644 100644 a a x.rs\x002 R. N... 1 1 1 a a R100 new\0old\0u UU N... 1 1 1 1 a a a y.rs\0? z\0",
            &mut found,
        );
        assert_eq!((found.uncommitted, found.conflicts), (4, 1));
        count_stat(
            " 2 files changed, 10 insertions(+), 1 deletion(-)\n",
            &mut found,
        );
        assert_eq!((found.files, found.added, found.removed), (2, 10, 1));
        let mut none = WorktreeChanges::default();
        count_stat("", &mut none);
        assert_eq!(none, WorktreeChanges::default());
    }
}
