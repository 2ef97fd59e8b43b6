//! `[repo."acme/web"]`: the user's settings for one repository.

use tenure_core::spelling;
use tenure_host::git::Worktree;

/// The user's settings for a repository.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Repo {
    /// `OWNER/NAME` of its remote, or its directory.
    pub name: String,
    /// Whether its own settings, hooks and skills may instruct an agent.
    pub trusted: bool,
    /// The settings file that defines it.
    pub origin: String,
}

/// Parses the section of a repository.
pub fn parse(name: &str, value: &toml::Value, origin: &str) -> Result<Repo, String> {
    let table = value.as_table();
    let table = table.ok_or("expected a section, such as [repo.\"acme/web\"]")?;
    let plain = spelling::repository_name(name.trim());
    let is_path = plain.starts_with('/');
    if !is_path && plain.split('/').filter(|part| !part.is_empty()).count() < 2 {
        return Err("expected the repository's OWNER/NAME, or its directory".to_owned());
    }
    let mut repo = Repo {
        name: if is_path {
            plain.trim_end_matches('/').to_owned()
        } else {
            plain
        },
        trusted: false,
        origin: origin.to_owned(),
    };
    for (key, value) in table {
        match key.as_str() {
            "trusted" => repo.trusted = value.as_bool().ok_or("trusted must be true or false")?,
            other => {
                return Err(format!(
                    "{other} is not a setting of a repository; the only one is trusted"
                ));
            }
        }
    }
    Ok(repo)
}

impl Repo {
    /// Whether this is the repository of a worktree: by its remote, or by its directory.
    fn is_of(&self, worktree: &Worktree) -> bool {
        let own = &worktree.common_dir;
        let is_dir = |dir: Option<&std::path::Path>| dir == Some(std::path::Path::new(&self.name));
        if self.name.starts_with('/') {
            is_dir(Some(own)) || (own.ends_with(".git") && is_dir(own.parent()))
        } else {
            worktree.remote.as_deref() == Some(self.name.as_str())
        }
    }
}

/// Whether the user trusts the repository of a worktree. The last entry about it counts.
pub fn is_trusted(repos: &[Repo], worktree: &Worktree) -> bool {
    let named = repos.iter().rev().find(|repo| repo.is_of(worktree));
    named.is_some_and(|repo| repo.trusted)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn worktree(remote: Option<&str>) -> Worktree {
        Worktree {
            root: PathBuf::from("/srv/linked"),
            git_dir: PathBuf::from("/srv/web/.git/worktrees/linked"),
            common_dir: PathBuf::from("/srv/web/.git"),
            remote: remote.map(str::to_owned),
            unread_remote: None,
            branch: None,
        }
    }

    fn repo(name: &str, text: &str) -> Result<Repo, String> {
        let table: toml::Table = text.parse().unwrap();
        parse(name, &toml::Value::Table(table), "config.toml")
    }

    #[test]
    fn a_repository_is_trusted_by_its_remote_or_its_directory() {
        let web = worktree(Some("acme/web"));
        for name in [
            "acme/web",
            "Acme/Web.git",
            "/srv/web",
            "/srv/web/",
            "/srv/web/.git",
        ] {
            let yes = repo(name, "trusted = true").unwrap();
            assert!(is_trusted(std::slice::from_ref(&yes), &web), "{name}");
            let no = repo(name, "trusted = false").unwrap();
            assert!(!is_trusted(&[yes, no.clone()], &web), "{name}");
            assert!(!is_trusted(&[no], &web), "{name}");
        }
        for name in [
            "acme/webs",
            "acme/web/x",
            "/srv",
            "/srv/linked",
            "/srv/web2",
        ] {
            let other = repo(name, "trusted = true").unwrap();
            assert!(!is_trusted(&[other], &web), "{name}");
        }
        let local = worktree(None);
        assert!(!is_trusted(
            &[repo("acme/web", "trusted = true").unwrap()],
            &local
        ));
        assert!(
            !is_trusted(&[repo("acme/web", "").unwrap()], &web),
            "not said"
        );
    }

    #[test]
    fn what_is_malformed_is_named() {
        for (name, text, word) in [
            ("acme/web", "trusted = \"yes\"", "true or false"),
            ("acme/web", "dir = \"/x\"", "dir"),
            ("web", "trusted = true", "OWNER/NAME"),
            ("", "trusted = true", "OWNER/NAME"),
        ] {
            let why = repo(name, text).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        assert!(parse("acme/web", &toml::Value::Boolean(true), "").is_err());
    }
}
