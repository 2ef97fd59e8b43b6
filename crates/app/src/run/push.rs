//! An agent's credential for pushing, available only in the item's worktree.
//!
//! Git asks for it by a setting of that worktree alone (`git config --worktree`), which names the file with the
//! token. It is set before each run of a rule with `push`, and when a person goes on with such a run while the rule
//! is still there; it is taken away before each run of a rule without and when a run ends. *Crash*: what a killed runner leaves is taken away by the next run in that worktree.

use std::path::Path;

use tenure_core::queue::code::Credential;
use tenure_core::run::Trigger;
use tenure_host::git;
use tenure_host::git_command::{Belief, Git, GitError};
use tenure_service::answer::{Class, Hint, Problem};

use super::order::Push;
use super::runner::Runner;
use crate::credential;
use crate::dispatch::{Config, still_pushes};
use crate::open::Context;
use crate::private_file;

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
    let repository = Git::of_repository(common_dir, Belief::Full);
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
        let why = format!("remote {remote} does not use https");
        return Err(cannot(&why));
    };
    withdraw(worktree, common_dir).map_err(failed)?;
    let program = credential::program(with).map_err(|error| cannot(&error))?;
    let name = credential::setting(&server);
    // An empty value first: it disables all other helpers, to which git would give the token to
    // store.
    let set = Git::of_worktree(worktree, Belief::Full).set_here(&name, &["", &program]);
    set.map_err(failed)
}

/// Removes the credential of an earlier run from a worktree.
pub(super) fn withdraw(worktree: &Path, common_dir: &Path) -> Result<(), GitError> {
    if !has_own_settings(&Git::of_repository(common_dir, Belief::Full))? {
        return Ok(());
    }
    let git = Git::of_worktree(worktree, Belief::Full);
    let all = git.settings_here()?;
    for (name, _) in all.iter().filter(|(_, value)| credential::is_ours(value)) {
        git.unset_here(name)?;
    }
    Ok(())
}

/// Whether an agent that goes on with its run may push as before, and why not.
pub(super) fn still_permitted(context: &Context, push: &Push) -> Result<(), String> {
    let config = Config::load(Path::new(&push.settings), &context.settings);
    let config = config.map_err(|problem| problem.message)?.config;
    still_pushes(&config, &push.rule, &push.credential)?;
    private_file::secret(Path::new(&push.credential.file)).map(|_| ())
}

impl Runner {
    /// Gives a run that goes on with another what that one had for its pushes. It has the directory by now.
    pub fn give_credential(&self, workdir: &str) -> Result<(), Problem> {
        let goes_on = self.order.trigger()? == Trigger::Resume;
        let Some(push) = self.order.push.as_ref().filter(|_| goes_on) else {
            return Ok(());
        };
        let found = git::worktree(Path::new(workdir));
        let found = found.ok_or_else(|| cannot(&"its directory is not in a git repository"))?;
        set(&found.root, &found.common_dir, Some(&push.credential))
    }

    /// Takes away what this run was given for its pushes.
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
    let hint = Hint::step(
        "fix the cause, then run the same command again; tenure tries a job again by itself",
    );
    Problem::new(Class::Invalid, "push", message, hint)
}
