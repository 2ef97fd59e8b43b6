//! Where the code of a job comes from: what its runner needs for cloning, fetching and pushing.

use std::path::{Path, PathBuf};

use tenure_core::dispatch::{Action, Matched};
use tenure_core::queue::code::{Credential, JobCode, JobForge};
use tenure_core::spelling;

use super::config::Config;
use super::document::{Document, Section};
use super::ends::{ForgeEnd, Known, RepoEnd};
use super::reading::Reading;
use super::rules::Placed;

impl ForgeEnd {
    /// The URL to clone a repository from; none if the forge's URL is unknown.
    pub fn clone_url(&self, repo: &str) -> Option<String> {
        let url = match (self.url.as_deref(), self.row.kind) {
            (Some("https://api.github.com") | None, "github") => "https://github.com",
            (Some(url), "github") => url.strip_suffix("/api/v3").unwrap_or(url),
            (Some(url), _) => url,
            (None, _) => return None,
        };
        Some(format!("{url}/{repo}.git"))
    }

    /// The user name that git sends with a token. GitHub and GitLab define one for tokens that
    /// belong to no person.
    fn git_user(&self) -> String {
        match self.row.kind {
            "github" => "x-access-token".to_owned(),
            "gitlab" => "oauth2".to_owned(),
            _ => self
                .own_account
                .clone()
                .unwrap_or_else(|| "token".to_owned()),
        }
    }

    fn credential(&self, file: &Path) -> Credential {
        Credential {
            user: self.git_user(),
            file: name(file),
        }
    }

    /// The forge as a runner uses it.
    fn for_runner(&self) -> Option<JobForge> {
        Some(JobForge {
            kind: self.row.kind.to_owned(),
            url: self.url.clone()?,
            credential: self.credential(self.token_file.as_deref()?),
            ca_file: self.ca_file.as_deref().map(name),
        })
    }
}

impl Reading<'_> {
    /// Checks that every repository without a directory can be cloned, and that every credential
    /// for a push reaches its worktree.
    pub fn code_is_reached(
        &mut self,
        document: &Document<'_>,
        repos: &[Known],
        forges: &[ForgeEnd],
        rules: &[Placed],
    ) {
        for known in repos {
            let forge = forges.iter().find(|forge| forge.name == known.end.forge);
            let unknown = forge.filter(|forge| forge.clone_url(&known.end.name).is_none());
            if let Some(forge) = unknown.filter(|_| known.end.dir.is_none()) {
                let why = format!("forge {} needs url and token_file for a clone", forge.name);
                let is_its = |(name, _): &&(String, Section<'_>)| {
                    spelling::repository_name(name.trim()) == known.end.name
                };
                let section = document.repos.iter().find(is_its);
                self.faults
                    .extend(section.map(|(_, section)| section.fault("forge", why)));
            }
        }
        for (place, rule) in rules {
            let section = &document.rules[*place];
            if !rule.action.publishing.push {
                continue;
            }
            let is_meant = |repo: &&RepoEnd| {
                let named = rule.when.repo.as_ref();
                named.is_none_or(|name| *name == repo.name)
            };
            let ends = repos.iter().map(|known| &known.end);
            let without = ends.filter(is_meant).find(|repo| {
                let forge = forges.iter().find(|forge| forge.name == repo.forge);
                repo.push_credential.is_none()
                    && forge.is_some_and(|forge| forge.token_file.is_none())
            });
            if let Some(repo) = without {
                let why = format!(
                    "{} has no token to push with; set push_credential, or token_file of forge {}",
                    repo.name, repo.forge
                );
                self.faults.push(section.fault("push", why));
            }
        }
    }
}

/// What a runner needs for the code of a job.
pub(super) fn code(
    config: &Config,
    forge: &ForgeEnd,
    repo: &RepoEnd,
    run: &Matched,
    action: &Action,
) -> JobCode {
    let cloned = repo.dir.is_none();
    let token = repo.push_credential.as_ref().or(forge.token_file.as_ref());
    let token = token.filter(|_| action.publishing.push);
    JobCode {
        head: run.head.clone(),
        clone: cloned.then(|| forge.clone_url(&repo.name)).flatten(),
        forge: forge.for_runner(),
        publishing: action.publishing,
        push: token.map(|file| forge.credential(file)),
        places: config.places.as_deref().map(name),
        model: action.model.clone(),
    }
}

/// The directory of a repository.
pub(super) fn dir(config: &Config, repo: &RepoEnd) -> PathBuf {
    let clones = config.clones.as_ref();
    let dir = repo.dir.clone().or_else(|| Some(clones?.join(&repo.name)));
    dir.map(|dir| whole(&dir)).unwrap_or_default()
}

/// The absolute path as text.
fn name(path: &Path) -> String {
    whole(path).to_string_lossy().into_owned()
}

/// The absolute path.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
