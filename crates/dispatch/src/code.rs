//! Where the code of a job comes from: what its runner needs for cloning, fetching and pushing.

use std::path::{Path, PathBuf};

use tenure_core::dispatch::{Action, Matched};
use tenure_core::queue::code::{Credential, JobCode, JobForge};

use super::config::Config;
use super::document::Document;
use super::forge_config::{ForgeConfig, RepoCheckout, RepoConfig};
use super::reading::Reading;
use super::rules::PlacedRule;

impl ForgeConfig {
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

    /// The user name that git sends with a token.
    fn git_user(&self) -> String {
        let defined = self.row.token_user.map(str::to_owned);
        let user = defined.or_else(|| self.own_account.clone());
        user.unwrap_or_else(|| "token".to_owned())
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
    /// Checks that everything that is pushed has a credential.
    pub fn code_is_reached(
        &mut self,
        document: &Document<'_>,
        repos: &[RepoCheckout],
        forges: &[ForgeConfig],
        rules: &[PlacedRule],
    ) {
        for (place, rule) in rules {
            let section = &document.rules[*place];
            let publishing = rule.action.publishing;
            let key = match (publishing.open_pr, publishing.merge, publishing.push) {
                (true, ..) => "open_pr",
                (_, true, _) => "merge",
                (_, _, true) => "push",
                _ => continue,
            };
            let is_meant = |repo: &&RepoConfig| {
                let named = rule.when.repo.as_ref();
                named.is_none_or(|name| *name == repo.name)
            };
            let ends = repos.iter().map(|known| &known.end);
            let by_api = key != "push";
            let without = ends.filter(is_meant).find(|repo| {
                let forge = forges.iter().find(|forge| forge.name == repo.forge);
                let lacks = |forge: &ForgeConfig| {
                    if by_api {
                        !forge.has_api()
                    } else {
                        repo.push_credential.is_none() && forge.token_file.is_none()
                    }
                };
                forge.is_some_and(lacks)
            });
            if let (Some(repo), true) = (without, by_api) {
                let why = format!(
                    "it needs url, token_file and own_account of forge {}",
                    repo.forge
                );
                self.faults.push(section.fault(key, why));
                continue;
            }
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
    forge: &ForgeConfig,
    repo: &RepoConfig,
    run: &Matched,
    action: &Action,
) -> JobCode {
    let token = repo.push_credential.as_ref().or(forge.token_file.as_ref());
    let token = token.filter(|_| action.publishing.push);
    JobCode {
        head: run.head.clone(),
        branch: run.branch.clone(),
        url: Some(repo.url.clone()),
        origin: Some(repo.origin.clone()),
        forge: forge.for_runner(),
        publishing: action.publishing,
        push: token.map(|file| forge.credential(file)),
        places: config.places.as_deref().map(name),
        model: action.model.clone(),
        secrets: if action.wrap.is_empty() {
            Vec::new()
        } else {
            let files = config.secret_files();
            files.iter().map(|file| name(file)).collect()
        },
    }
}

/// The absolute path as text.
fn name(path: &Path) -> String {
    whole(path).to_string_lossy().into_owned()
}

/// The absolute path.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
