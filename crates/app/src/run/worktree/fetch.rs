//! Fetching a repository before a run, and checking out the permitted commit.

use tenure_core::key::Key;
use tenure_core::queue::code::{HeadNow, check_head};
use tenure_core::run::worktree::Record;
use tenure_host::git::Worktree;
use tenure_host::git_command::{Belief, Git, GitError};
use tenure_host::kernel_lock::LockDir;
use tenure_service::answer::{Class, Hint, Problem};

use super::{Made, PATIENCE, Shelf, unusable};
use crate::run::permission::refused;

/// What to fetch for an item.
pub struct Fetch<'a> {
    pub item: &'a Key,
    /// Any worktree of the repository.
    pub of: &'a Worktree,
    /// Git settings for access to the remote.
    pub settings: &'a [String],
    /// The only commit that may be run, if the item has its own code.
    pub permitted: Option<&'a str>,
    /// The head that the forge reported.
    pub told: Option<&'a str>,
    /// Whether the item gets a worktree.
    pub checks_out: bool,
}

/// Fetches, and creates or finds the item's worktree.
pub fn fetch(
    wanted: &Fetch<'_>,
    state: &std::path::Path,
    locks: &LockDir,
) -> Result<Option<Made>, Problem> {
    let mut shelf = Shelf::of(wanted.of, Belief::Full, state)?;
    shelf.git = shelf.git.with(wanted.settings);
    let _locked = shelf.lock(locks, PATIENCE)?;
    let known = shelf.record_of(wanted.item)?;
    let head = shelf.bring(wanted)?;
    let branch = known.as_ref().map(|(_, record)| record.branch.as_str());
    let told = wanted.told.map(str::to_owned);
    for commit in told.into_iter().chain(head.clone()) {
        let in_worktree = match branch {
            Some(branch) => shelf.git.is_in(&commit, &format!("refs/heads/{branch}")),
            None => Ok(false),
        };
        let in_worktree = in_worktree.map_err(|error| unusable(&error))?;
        let now = HeadNow {
            commit,
            in_worktree,
        };
        check_head(wanted.permitted, &now).map_err(|moved| refused(wanted.item, &moved))?;
    }
    if !wanted.checks_out {
        return Ok(None);
    }
    let Some((name, record)) = known else {
        let made = shelf.add(wanted.item, wanted.of.remote.as_deref(), head.as_deref())?;
        return Ok(Some(made));
    };
    shelf
        .recover(&name, &record)
        .map_err(|error| unusable(&error))?;
    let made = shelf.reuse(&name, record.clone())?;
    if let Some(head) = head {
        catch_up(&shelf.git_in(&made.dir), &record, &head).map_err(|error| unusable(&error))?;
    }
    Ok(Some(made))
}

impl Shelf {
    /// Fetches the branches, and the head of an item that has its own code.
    fn bring(&self, wanted: &Fetch<'_>) -> Result<Option<String>, Problem> {
        let failed = |error: GitError| not_fetched(wanted, &error);
        let Some(remote) = self.git.remote().map_err(failed)? else {
            return match wanted.permitted {
                Some(_) => Err(not_fetched(wanted, &"the repository has no remote")),
                None => Ok(None),
            };
        };
        self.git.fetch_branches(&remote).map_err(failed)?;
        let (item, of) = (wanted.item, wanted.of.remote.as_deref());
        let own = of.and_then(|of| item.rest().strip_prefix(of));
        let name = match (item.scheme(), own) {
            ("pr", Some(own)) if own.starts_with('#') => {
                let fetched = self.pull_request(item, &own[1..]);
                fetched.map_err(|problem| not_fetched(wanted, &problem.message))?
            }
            ("branch", Some(own)) => {
                format!("refs/remotes/{remote}/{}", own.trim_start_matches(':'))
            }
            _ if wanted.permitted.is_none() => return Ok(None),
            _ => {
                let why = format!(
                    "{} is a clone of another repository",
                    wanted.of.root.display()
                );
                return Err(not_fetched(wanted, &why));
            }
        };
        let commit = self.git.commit(&name).map_err(failed)?;
        if commit.is_none() && wanted.permitted.is_some() {
            return Err(refused(item, &"it is gone from the remote"));
        }
        Ok(commit)
    }
}

/// Fast-forwards a worktree to the head of its item, if it contains nothing that the head does not
/// have.
fn catch_up(git: &Git, record: &Record, head: &str) -> Result<(), GitError> {
    let branch = format!("refs/heads/{}", record.branch);
    let is_on_it = git.commit("HEAD")? == git.commit(&branch)?;
    if is_on_it && git.is_in("HEAD", head)? && git.leftovers()?.changed.is_empty() {
        git.fast_forward(head)?;
    }
    Ok(())
}

fn not_fetched(wanted: &Fetch<'_>, why: &dyn std::fmt::Display) -> Problem {
    let name = wanted.of.repo();
    let message = format!("cannot fetch {name} for {}: {why}", wanted.item);
    let hint = Hint::step("fix the cause; tenure then tries the job again");
    Problem::new(Class::Invalid, "fetch", message, hint)
}
