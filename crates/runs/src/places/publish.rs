//! Publishing a result: pushing one branch of our name from the results to the forge.
//!
//! Whether it may be is decided by [`tenure_core::dispatch::publish`], on what differs from what the forge has. The
//! push names one commit and one ref, and expects there what was pushed last (`refs/published/BRANCH`), so what a
//! person pushed is never overwritten. *Crash* between the push and that record: the next push of the item finds
//! another commit than it expects and says so.

use std::io;
use std::time::Duration;

use tenure_core::commit::CommitId;
use tenure_core::dispatch::publish::{
    ChangeKind, PathChange, Publishing, RunResult, branch as own_branch, is_own_branch, publish,
};
use tenure_core::key::Key;
use tenure_core::queue::Trust;
use tenure_host::clock;
use tenure_host::git_command::GitError;
use tenure_host::own_repository::{OwnRepository, PushResult};

use super::{RemoteSource, Repositories};

/// Where it is recorded what was pushed.
const PUBLISHED: &str = "refs/published/";
/// The longest target of a link that is read.
const MAX_LINK: u64 = 4096;

/// How long making a patch may take.
const PATCH_WITHIN: Duration = Duration::from_secs(60);

/// A result that could be published.
#[derive(Debug, Clone, Copy)]
pub struct Publication<'a> {
    pub item: &'a Key,
    /// The canonical name of the repository.
    pub repo: &'a str,
    pub commit: &'a CommitId,
    /// The lowest trust that its place ever had.
    pub trust: Trust,
    /// The base branch, with its name.
    pub base: Option<(&'a str, &'a CommitId)>,
    /// The head of a pull request that was permitted.
    pub head: Option<&'a CommitId>,
    /// The branch of that pull request, if the repository itself has it.
    pub pull_branch: Option<&'a str>,
    /// Whether a person said yes.
    pub approved: bool,
    /// Where it goes, and what git needs for that.
    pub to: RemoteSource<'a>,
}

/// Why a result was not published.
#[derive(Debug, thiserror::Error)]
pub enum NotPublished {
    #[error(transparent)]
    Rule(#[from] tenure_core::dispatch::publish::Unpublished),
    #[error("the branch {0} is not at the commit that was pushed last; someone else changed it")]
    Moved(String),
    #[error("git did not push it: {0}")]
    Git(#[from] GitError),
}

impl NotPublished {
    /// Whether a person can publish it later: by approving it, or after the cause was fixed.
    pub fn waits(&self) -> bool {
        match self {
            Self::Rule(why) => why.waits(),
            Self::Moved(_) | Self::Git(_) => true,
        }
    }
}

impl Repositories {
    /// Pushes a result if its rule says so. Returns the branch.
    pub fn publish(&self, rule: Publishing, of: &Publication<'_>) -> Result<String, NotPublished> {
        let results = self.results();
        let (branch, last) = self.target(of)?;
        let record = format!("{PUBLISHED}{branch}");
        let changes = if rule.push {
            changes(results, &self.since(of, last.as_ref())?, of.commit)?
        } else {
            Vec::new()
        };
        let result = RunResult {
            branch: &branch,
            trust: of.trust,
            changes: &changes,
            base_branch: of.base.map_or("", |(name, _)| name),
            approved: of.approved,
        };
        publish(rule, &result)?;
        if last.as_ref() == Some(of.commit) {
            return Ok(branch);
        }
        let pushed = results.push(of.to.url, of.commit, &branch, last.as_ref(), of.to.settings);
        if pushed? == PushResult::Moved {
            return Err(NotPublished::Moved(branch));
        }
        results.set_ref(&record, of.commit)?;
        Ok(branch)
    }

    /// The branch that a result goes to, and what is there: that of its pull request if we pushed it, at the head that
    /// was permitted; else the item's own.
    fn target(&self, of: &Publication<'_>) -> Result<(String, Option<CommitId>), GitError> {
        let results = self.results();
        if let (Some(branch), Some(head)) = (of.pull_branch, of.head)
            && is_own_branch(branch)
            && results.commit(&format!("{PUBLISHED}{branch}"))?.is_some()
        {
            return Ok((branch.to_owned(), Some(head.clone())));
        }
        let branch = own_branch(of.item, of.repo);
        let last = results.commit(&format!("{PUBLISHED}{branch}"))?;
        Ok((branch, last))
    }

    /// What a result changes, as a patch; none if it is longer.
    pub fn patch(&self, of: &Publication<'_>, longest: usize) -> io::Result<Option<Vec<u8>>> {
        let since = self.since(of, None).map_err(io::Error::other)?;
        let deadline = clock::instant() + PATCH_WITHIN;
        self.results()
            .patch(since.as_ref(), of.commit, longest, deadline)
    }

    /// The newest commit below a result that the forge already has; none where all of it is new.
    fn since(
        &self,
        of: &Publication<'_>,
        last: Option<&CommitId>,
    ) -> Result<Option<CommitId>, GitError> {
        let results = self.results();
        for known in [last, of.head].into_iter().flatten() {
            if results.is_ancestor(known, of.commit)? {
                return Ok(Some(known.clone()));
            }
        }
        match of.base {
            Some((_, base)) => results.merge_base(base, of.commit),
            None => Ok(None),
        }
    }
}

/// What differs between two commits; everything in the second without the first.
fn changes(
    results: &OwnRepository,
    from: &Option<CommitId>,
    to: &CommitId,
) -> Result<Vec<PathChange>, GitError> {
    let mut found = Vec::new();
    for difference in results.differences(from.as_ref(), to)? {
        let kind = match difference.mode.as_str() {
            "120000" => ChangeKind::Link {
                // One that is too long leads nowhere that could be shown to be inside.
                target: results.short_blob(&difference.id, MAX_LINK)?.map_or_else(
                    || "/".to_owned(),
                    |bytes| String::from_utf8_lossy(&bytes).into_owned(),
                ),
            },
            "160000" => ChangeKind::Submodule,
            _ => ChangeKind::File,
        };
        let path = difference.path;
        found.push(PathChange { path, kind });
    }
    Ok(found)
}
