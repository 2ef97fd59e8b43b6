//! An agent's credential for pushing, available only in the item's worktree.
//!
//! Git asks for it because of a setting of that worktree only (`git config --worktree`), which
//! names the file with the token. It is set before each run of a rule with `push`, and removed
//! before each run of a rule without it and when a run ends. *Crash*: the next run in the worktree
//! removes what a killed runner left.

use std::path::Path;

use tenure_core::queue::code::Credential;
use tenure_host::git;
use tenure_host::git_command::{Git, GitError};
use tenure_service::answer::{Class, Hint, Problem};

use super::runner::Runner;
use crate::credential;

/// Makes git use this credential in a worktree, or none.
pub(super) fn set(
    worktree: &Path,
    common_dir: &Path,
    with: Option<&Credential>,
) -> Result<(), Problem> {
    match with {
        Some(with) => grant(worktree, common_dir, with),
        None => withdraw(worktree, common_dir).map_err(|error| cannot(&error)),
    }
}

fn grant(worktree: &Path, common_dir: &Path, with: &Credential) -> Result<(), Problem> {
    let failed = |error: GitError| cannot(&error);
    let repository = Git::of_repository(common_dir);
    if !has_own_settings(&repository).map_err(failed)? {
        let shared = |name| repository.setting(name).map_err(failed);
        if shared("core.worktree")?.is_some() || shared("core.bare")?.as_deref() == Some("true") {
            let why = "its settings have core.worktree or core.bare, which git would apply to every worktree";
            return Err(cannot(&why));
        }
        repository.set(OWN_SETTINGS, "true").map_err(failed)?;
    }
    let remote = repository.remote().map_err(failed)?;
    let remote = remote.ok_or_else(|| cannot(&"the repository has no remote"))?;
    let address = repository.address(&remote).map_err(failed)?;
    let Some(server) = credential::server(&address) else {
        let why = format!("remote {remote} is not reached over https");
        return Err(cannot(&why));
    };
    withdraw(worktree, common_dir).map_err(failed)?;
    let program = credential::program(with).map_err(|error| cannot(&error))?;
    let name = credential::setting(&server);
    // An empty value first: it disables all other helpers, to which git would give the token to
    // store.
    let set = Git::of_worktree(worktree).set_here(&name, &["", &program]);
    set.map_err(failed)
}

/// Removes the credential of an earlier run from a worktree.
pub(super) fn withdraw(worktree: &Path, common_dir: &Path) -> Result<(), GitError> {
    if !has_own_settings(&Git::of_repository(common_dir))? {
        return Ok(());
    }
    let git = Git::of_worktree(worktree);
    let all = git.settings_here()?;
    for (name, _) in all.iter().filter(|(_, value)| credential::is_ours(value)) {
        git.unset_here(name)?;
    }
    Ok(())
}

impl Runner {
    /// Removes this run's credential for pushing.
    pub fn withdraw_credential(&self) {
        let dir = self.order.dir.as_deref().unwrap_or(&self.order.here);
        let found = git::worktree(Path::new(dir)).filter(|_| self.order.dispatched);
        let withdrawn = found.map(|found| withdraw(&found.root, &found.common_dir));
        if matches!(withdrawn, Some(Err(_))) {
            // The next run in the worktree removes it.
        }
    }
}

/// The git setting that allows worktrees to have their own settings.
const OWN_SETTINGS: &str = "extensions.worktreeConfig";

fn has_own_settings(repository: &Git) -> Result<bool, GitError> {
    Ok(repository.setting(OWN_SETTINGS)?.as_deref() == Some("true"))
}

fn cannot(why: &dyn std::fmt::Display) -> Problem {
    let message = format!("cannot give the agent a credential for pushes: {why}");
    let hint = Hint::step("correct it; the job is tried again");
    Problem::new(Class::Invalid, "push", message, hint)
}
