//! Which repositories the user trusts.
//!
//! A name is not enough: anybody can serve `acme/web`. So trust names the host too (`github.com/acme/web`), or
//! the repository's directory. A name without a host trusts a checkout only where nothing speaks of two hosts:
//! neither its remotes nor the conversations that the store has of that name. *Limit*: who can write a checkout's
//! settings can also write the address of its remote; a directory that strangers packed is trusted by their word.

use crate::spelling;

/// How the user names a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepoName {
    /// Its directory, absolute.
    Dir(String),
    /// Its name on a host.
    OnHost { host: String, name: String },
    /// Its name on whichever host.
    Bare(String),
}

impl RepoName {
    /// Parses `HOST/OWNER/NAME`, `OWNER/NAME` or a directory. The first of three or more parts is a host if it
    /// contains a dot; otherwise it may also be a group.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = spelling::repository_name(text.trim());
        if plain.starts_with('/') {
            return Some(Self::Dir(plain.trim_end_matches('/').to_owned()));
        }
        let parts: Vec<&str> = plain.split('/').collect();
        if parts.len() < 2 || parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        match plain.split_once('/') {
            Some((host, name)) if parts.len() > 2 && host.contains('.') => Some(Self::OnHost {
                host: host.to_owned(),
                name: name.to_owned(),
            }),
            _ => Some(Self::Bare(plain)),
        }
    }
}

/// What the user says about one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoTrust {
    pub name: RepoName,
    pub trusted: bool,
    /// Further hosts that serve the same repository: aliases of ssh, mirrors.
    pub same_as: Vec<String>,
}

/// A checkout, as its files describe it.
#[derive(Debug, Clone, Copy)]
pub struct Checkout<'a> {
    /// The directory that all its worktrees share.
    pub common_dir: &'a str,
    /// The name of its remote, and the host of that.
    pub remote: Option<(&'a str, &'a str)>,
    /// The hosts of all its remotes.
    pub hosts: &'a [String],
}

/// A trusted name without a host that several hosts have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguous {
    pub name: String,
    /// The host of this checkout, and the others.
    pub hosts: Vec<String>,
}

impl RepoTrust {
    /// The host that stands for all that are one here, if `host` is one of them.
    fn lead(&self, name: &str, host: &str) -> Option<&str> {
        let (lead, own) = match &self.name {
            RepoName::OnHost { host, name } => (Some(host), name),
            RepoName::Bare(name) => (self.same_as.first(), name),
            RepoName::Dir(_) => return None,
        };
        let lead = lead?;
        let is_one = lead == host || self.same_as.iter().any(|same| same == host);
        (own == name && is_one).then_some(lead)
    }

    /// Whether it names this checkout with its host, or by its directory.
    fn names(&self, checkout: &Checkout<'_>) -> bool {
        match (&self.name, checkout.remote) {
            (RepoName::Dir(dir), _) => {
                let own = checkout.common_dir;
                own == dir || own.strip_suffix("/.git") == Some(dir)
            }
            (RepoName::OnHost { host, .. }, Some((name, own))) => {
                self.lead(name, own) == Some(host.as_str())
            }
            // A host without a dot.
            (RepoName::Bare(whole), Some((name, own))) => {
                whole.split_once('/') == Some((own, name)) && name.contains('/')
            }
            _ => false,
        }
    }
}

/// The host of a repository, by the one name that its aliases and mirrors share.
pub fn lead_host<'a>(all: &'a [RepoTrust], name: &str, host: &'a str) -> &'a str {
    let lead = all.iter().rev().find_map(|one| one.lead(name, host));
    lead.unwrap_or(host)
}

/// Whether the user trusts a checkout. An entry with a host or a directory counts more than one without; of
/// several, the last. `known` are the hosts that the store has conversations of for a name; it is asked only
/// where the answer depends on it.
pub fn is_trusted<E>(
    all: &[RepoTrust],
    checkout: &Checkout<'_>,
    known: impl FnOnce(&str) -> Result<Vec<String>, E>,
) -> Result<Result<bool, Ambiguous>, E> {
    if let Some(own) = all.iter().rev().find(|one| one.names(checkout)) {
        return Ok(Ok(own.trusted));
    }
    let Some((name, host)) = checkout.remote else {
        return Ok(Ok(false));
    };
    let is_bare = |one: &&RepoTrust| one.name == RepoName::Bare(name.to_owned());
    if !all
        .iter()
        .rev()
        .find(is_bare)
        .is_some_and(|one| one.trusted)
    {
        return Ok(Ok(false));
    }
    let known = known(name)?;
    let mut hosts: Vec<String> = Vec::new();
    let own = std::iter::once(host);
    let others = checkout.hosts.iter().chain(&known).map(String::as_str);
    for host in own.chain(others) {
        let lead = lead_host(all, name, host);
        if !hosts.iter().any(|known| known == lead) {
            hosts.push(lead.to_owned());
        }
    }
    Ok(match hosts.len() {
        1 => Ok(true),
        _ => Err(Ambiguous {
            name: name.to_owned(),
            hosts,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, trusted: bool, same_as: &[&str]) -> RepoTrust {
        RepoTrust {
            name: RepoName::parse(name).unwrap(),
            trusted,
            same_as: same_as.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    /// What is said of a checkout of `acme/web` whose first remote is on the first of these hosts.
    fn ask(all: &[RepoTrust], hosts: &[&str], known: &[&str]) -> Result<bool, Vec<String>> {
        let own: Vec<String> = hosts.iter().map(|one| (*one).to_owned()).collect();
        let known: Vec<String> = known.iter().map(|one| (*one).to_owned()).collect();
        let checkout = Checkout {
            common_dir: "/srv/web/.git",
            remote: hosts.first().map(|host| ("acme/web", *host)),
            hosts: &own,
        };
        let asked = is_trusted(all, &checkout, |_| Ok::<_, ()>(known));
        asked.unwrap().map_err(|ambiguous| ambiguous.hosts)
    }

    const HUB: &str = "github.com";
    const EVIL: &str = "evil.example";

    #[test]
    fn names_have_a_host_a_directory_or_neither() {
        let host = |host: &str, name: &str| RepoName::OnHost {
            host: host.into(),
            name: name.into(),
        };
        for (text, expected) in [
            ("github.com/acme/web", Some(host(HUB, "acme/web"))),
            ("GitHub.com/Acme/Web.git", Some(host(HUB, "acme/web"))),
            ("gitlab.com/a/b/c", Some(host("gitlab.com", "a/b/c"))),
            ("acme/web", Some(RepoName::Bare("acme/web".into()))),
            ("a.b/web", Some(RepoName::Bare("a.b/web".into()))),
            (
                "group/sub/web",
                Some(RepoName::Bare("group/sub/web".into())),
            ),
            ("/srv/web/", Some(RepoName::Dir("/srv/web".into()))),
            ("web", None),
            ("", None),
        ] {
            assert_eq!(RepoName::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_host_and_a_directory_trust_exactly_that() {
        let all = [entry("github.com/acme/web", true, &[])];
        assert_eq!(ask(&all, &[HUB], &[EVIL]), Ok(true));
        assert_eq!(ask(&all, &[HUB, EVIL], &[]), Ok(true), "a fork beside it");
        assert_eq!(ask(&all, &[EVIL], &[]), Ok(false));
        assert_eq!(ask(&all, &[EVIL, HUB], &[]), Ok(false));
        assert_eq!(
            ask(&[entry("github.com/acme/webs", true, &[])], &[HUB], &[]),
            Ok(false)
        );
        for dir in ["/srv/web", "/srv/web/.git"] {
            assert_eq!(
                ask(&[entry(dir, true, &[])], &[EVIL], &[HUB]),
                Ok(true),
                "{dir}"
            );
        }
        for dir in ["/srv", "/srv/web2", "/srv/web/.git/x"] {
            assert_eq!(
                ask(&[entry(dir, true, &[])], &[HUB], &[]),
                Ok(false),
                "{dir}"
            );
        }
        let dotless = [entry("forge/acme/web", true, &[])];
        assert_eq!(ask(&dotless, &["forge"], &[HUB]), Ok(true));
        assert_eq!(ask(&dotless, &[EVIL], &[]), Ok(false));
    }

    #[test]
    fn a_name_without_a_host_trusts_only_where_there_is_one() {
        let all = [entry("acme/web", true, &[])];
        assert_eq!(ask(&all, &[HUB], &[]), Ok(true));
        assert_eq!(ask(&all, &[HUB, HUB], &[HUB]), Ok(true));
        let both = Err(vec![EVIL.to_owned(), HUB.to_owned()]);
        assert_eq!(ask(&all, &[EVIL], &[HUB]), both);
        assert_eq!(ask(&all, &[EVIL, HUB], &[]), both);
        assert_eq!(ask(&all, &[], &[]), Ok(false), "no remote");
        assert_eq!(
            ask(&[entry("acme/web", false, &[])], &[EVIL], &[HUB]),
            Ok(false)
        );
        // What names the host decides before that.
        for said in [true, false] {
            let all = [
                entry("evil.example/acme/web", said, &[]),
                entry("acme/web", true, &[]),
            ];
            assert_eq!(ask(&all, &[EVIL], &[HUB]), Ok(said));
        }
        let changed = [entry("acme/web", true, &[]), entry("acme/web", false, &[])];
        assert_eq!(ask(&changed, &[HUB], &[]), Ok(false), "the last one counts");
    }

    #[test]
    fn hosts_that_are_one_are_one() {
        let all = [entry("github.com/acme/web", true, &["github-work"])];
        assert_eq!(ask(&all, &["github-work"], &[]), Ok(true));
        assert_eq!(ask(&all, &[EVIL], &[]), Ok(false));
        assert_eq!(lead_host(&all, "acme/web", "github-work"), HUB);
        assert_eq!(lead_host(&all, "acme/other", "github-work"), "github-work");
        let bare = [entry("acme/web", true, &[HUB, "github-work"])];
        assert_eq!(ask(&bare, &["github-work", HUB], &[HUB]), Ok(true));
        assert!(ask(&bare, &["github-work"], &[EVIL]).is_err());
    }
}
