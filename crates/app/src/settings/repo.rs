//! `[repo."github.com/acme/web"]`: the user's settings for one repository.

use tenure_core::trust::{self, Ambiguous, Checkout, RepoName, RepoTrust};
use tenure_host::git::Worktree;
use tenure_service::answer::{Class, Hint, Problem};

use super::user_file;

/// The user's settings for a repository.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Repo {
    /// `HOST/OWNER/NAME`, `OWNER/NAME`, or its directory.
    pub name: String,
    /// Whether its own settings, hooks and skills may instruct an agent.
    pub trusted: bool,
    /// Further hosts that serve it.
    pub same_as: Vec<String>,
    /// The settings file that defines it.
    pub origin: String,
    #[serde(skip)]
    rule: RepoTrust,
}

/// Parses the section of a repository.
pub fn parse(name: &str, value: &toml::Value, origin: &str) -> Result<Repo, String> {
    let table = value.as_table();
    let table = table.ok_or("expected a section, such as [repo.\"github.com/acme/web\"]")?;
    let expected = "expected the repository's HOST/OWNER/NAME, or its directory";
    let mut rule = RepoTrust {
        name: RepoName::parse(name).ok_or(expected)?,
        trusted: false,
        same_as: Vec::new(),
    };
    for (key, value) in table {
        match key.as_str() {
            "trusted" => rule.trusted = value.as_bool().ok_or("trusted must be true or false")?,
            "same_as" => {
                let why = "same_as must be a list of hosts in quotes, without / or spaces";
                rule.same_as = hosts(value).ok_or(why)?;
            }
            other => {
                return Err(format!(
                    "{other} is not a setting of a repository; expected trusted or same_as"
                ));
            }
        }
    }
    Ok(Repo {
        name: match &rule.name {
            RepoName::Dir(text) | RepoName::Bare(text) => text.clone(),
            RepoName::OnHost { host, name } => format!("{host}/{name}"),
        },
        trusted: rule.trusted,
        same_as: rule.same_as.clone(),
        origin: origin.to_owned(),
        rule,
    })
}

fn hosts(value: &toml::Value) -> Option<Vec<String>> {
    let odd = |c: char| c == '/' || c.is_whitespace() || c.is_control();
    let host = |value: &toml::Value| {
        let host = value.as_str()?.to_ascii_lowercase();
        (!host.is_empty() && !host.contains(odd)).then_some(host)
    };
    value.as_array()?.iter().map(host).collect()
}

fn rules(repos: &[Repo]) -> Vec<RepoTrust> {
    repos.iter().map(|repo| repo.rule.clone()).collect()
}

/// Whether the user trusts the repository of a worktree. `known` finds the hosts that the store has
/// conversations of for a name. Refused if a name without a host may mean two repositories.
pub fn is_trusted(
    repos: &[Repo],
    worktree: &Worktree,
    known: impl FnOnce(&str) -> Result<Vec<String>, Problem>,
) -> Result<bool, Problem> {
    let remote = worktree.remote.as_deref().zip(worktree.host.as_deref());
    let checkout = Checkout {
        common_dir: &worktree.common_dir.to_string_lossy(),
        remote,
        hosts: &worktree.hosts,
    };
    let trusted = trust::is_trusted(&rules(repos), &checkout, known)?;
    trusted.map_err(|ambiguous| unclear(&ambiguous))
}

/// The host of a repository, by the one name that its aliases and mirrors share.
pub fn lead_host(repos: &[Repo], name: &str, host: &str) -> String {
    trust::lead_host(&rules(repos), name, host).to_owned()
}

fn unclear(ambiguous: &Ambiguous) -> Problem {
    let name = &ambiguous.name;
    let (own, others) = match ambiguous.hosts.split_first() {
        Some((own, others)) => (own.as_str(), others.join(" and ")),
        None => ("", String::new()),
    };
    let message = format!(
        "[repo.\"{name}\"] trusts a name without a host, but this clone of {name} is from {own}, and {name} is also on {others}"
    );
    let file = config_file();
    let hint = Hint::step(format!(
        "name the host that you trust: change it to [repo.\"{own}/{name}\"] or [repo.\"{others}/{name}\"] in {file}"
    ));
    let mut problem = Problem::new(Class::Invalid, "untrusted", message, hint);
    problem.hints.push(Hint::step(format!(
        "if both serve the same repository, add same_as = [\"{own}\"] below [repo.\"{others}/{name}\"]"
    )));
    problem
}

/// How to trust the repository of a worktree.
pub fn trust_line(worktree: &Worktree) -> String {
    let name = worktree.whole_name();
    format!("add [repo.\"{name}\"] trusted = true to {}", config_file())
}

/// What to do about a repository that is not trusted: trust it, or something else.
pub fn trust_or(worktree: Option<&Worktree>, other: &str) -> Hint {
    Hint::step(match worktree {
        Some(worktree) => format!("{} if you trust it, or {other}", trust_line(worktree)),
        None => other.to_owned(),
    })
}

/// The user's settings file, as shown to people.
fn config_file() -> String {
    let file = user_file(&tenure_host::env::var);
    file.map_or_else(
        || "your config.toml".to_owned(),
        |file| file.display().to_string(),
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn worktree(host: &str) -> Worktree {
        Worktree {
            root: PathBuf::from("/srv/linked"),
            git_dir: PathBuf::from("/srv/web/.git/worktrees/linked"),
            common_dir: PathBuf::from("/srv/web/.git"),
            remote: Some("acme/web".to_owned()),
            host: Some(host.to_owned()),
            hosts: vec![host.to_owned()],
            unread_remote: None,
            branch: None,
        }
    }

    fn repo(name: &str, text: &str) -> Result<Repo, String> {
        let table: toml::Table = text.parse().unwrap();
        parse(name, &toml::Value::Table(table), "config.toml")
    }

    #[test]
    fn a_repository_is_trusted_by_its_host_and_name_or_its_directory() {
        let web = worktree("github.com");
        let nobody = |_: &str| Ok(Vec::new());
        for name in ["github.com/acme/web", "acme/web", "/srv/web/"] {
            let yes = repo(name, "trusted = true").unwrap();
            assert!(is_trusted(&[yes], &web, nobody).unwrap(), "{name}");
            let unsaid = repo(name, "").unwrap();
            assert!(!is_trusted(&[unsaid], &web, nobody).unwrap(), "{name}");
        }
    }

    #[test]
    fn a_name_that_two_hosts_have_is_refused_with_both() {
        let bare = [repo("acme/web", "trusted = true").unwrap()];
        let known = |_: &str| Ok(vec!["github.com".to_owned()]);
        let problem = is_trusted(&bare, &worktree("evil.example"), known).unwrap_err();
        assert_eq!(problem.kind, "untrusted");
        for host in ["evil.example", "github.com"] {
            assert!(problem.message.contains(host), "{}", problem.message);
        }
        let same = "trusted = true\nsame_as = [\"GitHub-Work\"]";
        let named = [repo("github.com/acme/web", same).unwrap()];
        assert!(is_trusted(&named, &worktree("github-work"), known).unwrap());
        assert_eq!(lead_host(&named, "acme/web", "github-work"), "github.com");
    }

    #[test]
    fn what_is_malformed_is_named() {
        for (name, text, word) in [
            ("acme/web", "trusted = \"yes\"", "true or false"),
            ("acme/web", "dir = \"/x\"", "dir"),
            ("acme/web", "same_as = \"x\"", "list of hosts"),
            ("acme/web", "same_as = [\"https://x\"]", "list of hosts"),
            ("web", "trusted = true", "OWNER/NAME"),
            ("", "trusted = true", "OWNER/NAME"),
        ] {
            let why = repo(name, text).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        assert!(parse("acme/web", &toml::Value::Boolean(true), "").is_err());
    }
}
