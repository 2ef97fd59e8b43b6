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
            file: whole(file).to_string_lossy().into_owned(),
        }
    }

    /// The forge as a runner uses it.
    fn for_runner(&self) -> Option<JobForge> {
        Some(JobForge {
            kind: self.row.kind.to_owned(),
            url: self.url.clone()?,
            credential: self.credential(self.token_file.as_deref()?),
            ca_file: self
                .ca_file
                .as_deref()
                .map(|file| whole(file).to_string_lossy().into_owned()),
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
            let Some(file) = &rule.action.push else {
                continue;
            };
            let is_meant = |repo: &&RepoEnd| {
                let named = rule.when.repo.as_ref();
                named.is_none_or(|name| *name == repo.name)
            };
            let ends = repos.iter().map(|known| &known.end);
            for repo in ends.filter(is_meant).filter(|repo| !repo.worktree) {
                let why = format!(
                    "{} needs worktree = true: the credential is for one worktree, not for all who use the clone",
                    repo.name
                );
                self.faults.push(section.fault("push", why));
            }
            if !rule.action.wrap.is_empty() {
                self.notes.push(format!(
                    "rule {}: git asks for the credential with this program and {file}, which its wrap must let the agent reach",
                    rule.name
                ));
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
    let push = action.push.as_deref();
    let settings = whole(&config.file).to_string_lossy().into_owned();
    JobCode {
        head: run.head.clone(),
        clone: cloned.then(|| forge.clone_url(&repo.name)).flatten(),
        forge: forge.for_runner(),
        push: push.map(|file| forge.credential(Path::new(file))),
        settings: push.map(|_| settings),
    }
}

/// Whether a rule of this name still lets its agent push with a credential.
pub fn still_pushes(config: &Config, rule: &str, with: &Credential) -> Result<(), String> {
    let file = config.file.display();
    let Some(rule) = config.rules.rule(rule) else {
        return Err(format!("{file} has no rule {rule} any more"));
    };
    match &rule.action.push {
        Some(own) if whole(Path::new(own)) == Path::new(&with.file) => Ok(()),
        Some(_) => Err(format!(
            "rule {} now names another file for push",
            rule.name
        )),
        None => Err(format!("rule {} has no push any more", rule.name)),
    }
}

/// The directory of a repository.
pub(super) fn dir(config: &Config, repo: &RepoEnd) -> PathBuf {
    let clones = config.clones.as_ref();
    let dir = repo.dir.clone().or_else(|| Some(clones?.join(&repo.name)));
    dir.map(|dir| whole(&dir)).unwrap_or_default()
}

/// The absolute path.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
