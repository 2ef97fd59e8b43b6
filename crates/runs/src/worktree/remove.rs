//! Removing the worktree of an item whose work is over.

use std::path::Path;

use tenure_core::run::worktree::{Objection, Record, WorktreeState, objections};
use tenure_host::git_command::GitError;
use tenure_host::inside;
use tenure_host::kernel_lock::LockDir;
use tenure_service::answer::Problem;

use super::{ExistingWorktree, PATIENCE, WorktreeFolder, unusable};

/// The outcome of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// It is gone; its branch stays.
    Removed,
    /// It was already gone.
    Gone,
    /// It stays, for these reasons.
    Kept(Vec<String>),
}

/// Removes a worktree if everything in it exists elsewhere. `merged` is the commit of its branch
/// that the forge merged.
pub fn remove(
    left: &ExistingWorktree,
    merged: Option<&str>,
    locks: &LockDir,
) -> Result<Removal, Problem> {
    let worktree_folder = left.worktree_folder();
    let _locked = worktree_folder.lock(locks, PATIENCE)?;
    let name = left.name.as_str();
    if fs_err::symlink_metadata(worktree_folder.record_file(name)).is_err() {
        return Ok(Removal::Gone);
    }
    if let Err(foreign) = worktree_folder.require_plain() {
        return worktree_folder.stays(left, vec![foreign.to_string()]);
    }
    worktree_folder
        .recover(name, &left.record)
        .map_err(|error| unusable(&error))?;
    let dir = worktree_folder.dir(name);
    if fs_err::symlink_metadata(&dir).is_err() {
        if worktree_folder
            .knows(&dir)
            .map_err(|error| unusable(&error))?
        {
            worktree_folder
                .git
                .remove_worktree(&dir)
                .map_err(|error| unusable(&error))?;
        }
        worktree_folder.forget(name)?;
        return Ok(Removal::Gone);
    }
    let against = worktree_folder.try_remove(name, &dir, merged);
    if against.is_empty() {
        worktree_folder.forget(name)?;
        return Ok(Removal::Removed);
    }
    worktree_folder.stays(left, against.iter().map(ToString::to_string).collect())
}

impl WorktreeFolder {
    /// Stores why a worktree stays.
    fn stays(&self, left: &ExistingWorktree, kept: Vec<String>) -> Result<Removal, Problem> {
        let record = Record {
            kept: kept.clone(),
            ..left.record.clone()
        };
        self.keep(&left.name, &record)?;
        Ok(Removal::Kept(kept))
    }

    /// Removes a worktree; returns the objections, in which case it is back in its place.
    fn try_remove(&self, name: &str, dir: &Path, merged: Option<&str>) -> Vec<Objection> {
        let against = self.against(dir, merged);
        if !against.is_empty() {
            return against;
        }
        let aside = self.aside(name);
        if let Err(error) = self.git.move_worktree(dir, &aside) {
            return vec![Objection::Unclear(error.to_string())];
        }
        // It can no longer be found by its name. A process that entered meanwhile is still inside.
        let mut against = self.against(&aside, merged);
        if against.is_empty() {
            match self.git.remove_worktree(&aside) {
                Ok(()) => return Vec::new(),
                Err(error) => against.push(Objection::Unclear(error.to_string())),
            }
        }
        if let Err(error) = self.git.move_worktree(&aside, dir) {
            let where_it_is = format!("it stays in {}: {error}", aside.display());
            against.push(Objection::Unclear(where_it_is));
        }
        against
    }

    /// The objections to removing the worktree in this directory.
    fn against(&self, dir: &Path, merged: Option<&str>) -> Vec<Objection> {
        if !self.is_worktree(dir) {
            let repository = self.common_dir.display();
            return vec![Objection::Unclear(format!(
                "it is not a worktree of {repository}"
            ))];
        }
        let mut against = match self.look(dir, merged) {
            Ok(seen) => objections(&seen),
            Err(error) => vec![Objection::Unclear(error.to_string())],
        };
        let inside = inside::find(dir);
        if !inside.found.is_empty() {
            let who = inside.found.iter();
            let who = who.map(|one| format!("pid {} ({})", one.pid, one.program));
            against.push(Objection::Occupied(who.collect()));
        }
        against.extend(inside.doubt.map(Objection::Unclear));
        against
    }

    fn look(&self, dir: &Path, merged: Option<&str>) -> Result<WorktreeState, GitError> {
        let all = self.git.worktrees()?;
        let listed = all
            .into_iter()
            .find(|tree| tree.path == dir)
            .unwrap_or_default();
        let left = self.git_in(dir).leftovers()?;
        let is_on_remote = match &listed.head {
            Some(head) => self.git.is_on_remote(head)?,
            None => false,
        };
        Ok(WorktreeState {
            head: listed.head,
            is_on_remote,
            merged: merged.map(str::to_owned),
            changed: left.changed,
            ignored: left.ignored,
            locked: listed.locked,
        })
    }
}
