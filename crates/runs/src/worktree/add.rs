//! Creating the worktree of an item, and reusing it.

use std::path::Path;

use tenure_core::key::Key;
use tenure_core::run::worktree::{Record, branch, names, slug};
use tenure_host::git;
use tenure_host::git_command::{Belief, GitError};
use tenure_service::answer::{Class, Hint, Problem};

use super::{Base, RunWorktree, WorktreeFolder, unusable};

/// Git's lock reason for a worktree that it has not finished adding.
const UNFINISHED: &str = "initializing";

impl WorktreeFolder {
    /// Creates a worktree for an item that has none, from this commit, or else from where the
    /// item's work begins.
    pub(super) fn add(
        &self,
        item: &Key,
        remote: Option<&str>,
        start: Option<&str>,
    ) -> Result<RunWorktree, Problem> {
        let start = match start {
            Some(commit) => commit.to_owned(),
            None => self.start(item, remote)?,
        };
        let (name, branch) = self.free_name(&slug(item, remote))?;
        let dir = self.dir(&name);
        let record = Record {
            item: item.to_string(),
            repository: self.common_dir.to_string_lossy().into_owned(),
            branch: branch.clone(),
            dir: dir.to_string_lossy().into_owned(),
            believed: self.belief == Belief::Full,
            kept: Vec::new(),
        };
        self.keep(&name, &record)?;
        if let Err(error) = self.git.add_worktree(&dir, &branch, &start) {
            self.forget(&name)?;
            return Err(unusable(&error));
        }
        Ok(RunWorktree {
            dir,
            branch,
            is_new: true,
        })
    }

    /// The newest commit on the branch of a base.
    pub(super) fn commit_of(&self, base: &Base) -> Result<String, Problem> {
        let (item, dir) = (&base.item, base.dir.display());
        let checked_out = git::worktree(&base.dir)
            .filter(|found| found.common_dir == self.common_dir)
            .and_then(|found| found.branch);
        // A worktree that was removed has left its record if it may come back.
        let branch = match checked_out {
            Some(branch) => Some(branch),
            None => self.record_of(item)?.map(|(_, record)| record.branch),
        };
        let not_there = || {
            let message = format!(
                "the newest run of {item} worked in {dir}, which is not on a branch of this repository"
            );
            let hint = Hint::step("omit --base, or check out a branch there");
            Problem::new(Class::NotFound, "not_found", message, hint)
        };
        let branch = branch.ok_or_else(not_there)?;
        let commit = self.git.commit(&format!("refs/heads/{branch}"));
        commit
            .map_err(|error| unusable(&error))?
            .ok_or_else(not_there)
    }

    /// Refuses a worktree that was begun without the work of a base.
    pub(super) fn must_contain(
        &self,
        record: &Record,
        base: &Base,
        commit: &str,
    ) -> Result<(), Problem> {
        let branch = format!("refs/heads/{}", record.branch);
        let contains = self.git.is_in(commit, &branch);
        if contains.map_err(|error| unusable(&error))? {
            return Ok(());
        }
        let message = format!(
            "{} already has the worktree {} on branch {}, which does not contain the work on {}",
            record.item, record.dir, record.branch, base.item
        );
        let hint = Hint::step("merge it there, or omit --base to continue without it");
        Err(Problem::new(Class::Refused, "has_worktree", message, hint))
    }

    /// A name that no branch, directory or other item has.
    fn free_name(&self, slug: &str) -> Result<(String, String), Problem> {
        let is_branch = |name: &str| {
            let commit = self.git.commit(&format!("refs/heads/{name}"));
            commit
                .map(|commit| commit.is_some())
                .map_err(|error| unusable(&error))
        };
        let is_tenure_a_branch = is_branch("tenure")?;
        for name in names(slug) {
            let branch = branch(&name, is_tenure_a_branch);
            let files = [self.dir(&name), self.aside(&name), self.record_file(&name)];
            let is_there = |path: &Path| fs_err::symlink_metadata(path).is_ok();
            if !files.iter().any(|path| is_there(path)) && !is_branch(&branch)? {
                return Ok((name, branch));
            }
        }
        Err(unusable(&format!(
            "too many branches are called tenure/{slug}-N; delete some"
        )))
    }

    /// The commit at which an item's work begins.
    fn start(&self, item: &Key, remote: Option<&str>) -> Result<String, Problem> {
        let own = remote.and_then(|remote| item.rest().strip_prefix(remote));
        let name = match (item.scheme(), own) {
            ("pr", Some(own)) if own.starts_with('#') => Some(self.pull_request(item, &own[1..])?),
            ("pr", _) if item.is_numbered() => return Err(elsewhere(item, remote)),
            ("branch", Some(own)) => self
                .branch_of_item(own.trim_start_matches(':'))
                .map_err(|error| unusable(&error))?,
            _ => None,
        };
        let base = match name {
            Some(name) => Some(name),
            None => self.git.base().map_err(|error| unusable(&error))?,
        };
        base.ok_or_else(|| unusable(&"the repository has no commit"))
    }

    /// The head of a pull request, fetched from the ref in which forges keep it.
    pub(super) fn pull_request(&self, item: &Key, number: &str) -> Result<String, Problem> {
        let remote = self.git.remote().map_err(|error| unusable(&error))?;
        let remote = remote.ok_or_else(|| unusable(&"the repository has no remote"))?;
        let to = format!("refs/tenure/pr-{number}");
        let fetch = |kind: &str| {
            self.git
                .fetch(&remote, &format!("refs/{kind}/{number}/head"), &to)
        };
        tenure_forges::fetch_pull(fetch)
            .map_err(|error| unusable(&format!("cannot fetch the head of {item}: {error}")))?;
        Ok(to)
    }

    /// The branch that an item names: the remote's, or else the local one.
    fn branch_of_item(&self, name: &str) -> Result<Option<String>, GitError> {
        let there = self
            .git
            .remote()?
            .map(|remote| format!("refs/remotes/{remote}/{name}"));
        for name in there.into_iter().chain([format!("refs/heads/{name}")]) {
            if self.git.commit(&name)?.is_some() {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// The worktree that a record names, created again if it is gone.
    pub(super) fn reuse(&self, name: &str, record: Record) -> Result<RunWorktree, Problem> {
        let dir = self.dir(name);
        let is_new = self.bring_back(&dir, &record)?;
        let now = Record {
            kept: Vec::new(),
            believed: self.belief == Belief::Full,
            ..record.clone()
        };
        if now != record {
            self.keep(name, &now)?;
        }
        Ok(RunWorktree {
            dir,
            branch: record.branch,
            is_new,
        })
    }

    /// Makes sure that a worktree is where its record says; returns whether it had to be created.
    fn bring_back(&self, dir: &Path, record: &Record) -> Result<bool, Problem> {
        let failed = |error: GitError| unusable(&error);
        let listed = self.git.worktrees().map_err(failed)?;
        let listed = listed.into_iter().find(|tree| tree.path == *dir);
        let is_unfinished = listed
            .as_ref()
            .is_some_and(|tree| tree.locked.as_deref() == Some(UNFINISHED));
        if is_unfinished {
            self.git.discard_unfinished(dir).map_err(failed)?;
        } else if self.is_worktree(dir) {
            return Ok(false);
        } else if fs_err::symlink_metadata(dir).is_ok() {
            let why = format!(
                "{} exists but is not a worktree of {}; move it away",
                dir.display(),
                self.common_dir.display()
            );
            return Err(unusable(&why));
        } else if listed.is_some() {
            self.git.remove_worktree(dir).map_err(failed)?;
        }
        let head = format!("refs/heads/{}", record.branch);
        match self.git.commit(&head).map_err(failed)? {
            Some(_) => self
                .git
                .add_worktree_on(dir, &record.branch)
                .map_err(failed)?,
            None => {
                let item = Key::stored(&record.item)?;
                let remote = tenure_host::git::remote(&self.common_dir);
                let start = self.start(&item, remote.as_deref())?;
                self.git
                    .add_worktree(dir, &record.branch, &start)
                    .map_err(failed)?;
            }
        }
        Ok(true)
    }
}

fn elsewhere(item: &Key, remote: Option<&str>) -> Problem {
    let here = remote.map_or_else(String::new, |remote| format!(", not to {remote}"));
    let message = format!("cannot create the worktree: {item} belongs to another repository{here}");
    let hint = Hint::step("run this in a clone of that repository");
    Problem::new(Class::Invalid, "worktree", message, hint)
}
