//! The git worktree of a directory, read from its files; git itself is never run.
//!
//! Nothing is written, no hook or setting of the repository takes effect, and includes and `insteadOf` are not
//! followed. Unreadable data is skipped: a repository without a readable remote is named after its directory.
//! The answer is a snapshot; a branch may change right after.

use std::path::{Path, PathBuf};

use tenure_core::repository::{Home, Repository};
use tenure_core::spelling;
use tenure_core::write_conflict::{FileStamp, RepoFile};

use crate::git_config::{self, Entry};
use crate::read;

/// Longer than any of these files in a real repository.
const FILE_LIMIT: u64 = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The directory that holds its `.git`.
    pub root: PathBuf,
    pub git_dir: PathBuf,
    /// The directory that all worktrees of the repository share.
    pub common_dir: PathBuf,
    /// The `owner/name` of its remote, if it has one on a server.
    pub remote: Option<String>,
    /// The host of that remote.
    pub host: Option<String>,
    /// The hosts of all remotes.
    pub hosts: Vec<String>,
    /// The branch that is checked out; none on a detached HEAD.
    pub branch: Option<String>,
}

impl Worktree {
    /// The repository's name: its remote, else its directory.
    pub fn repo(&self) -> String {
        self.remote
            .clone()
            .unwrap_or_else(|| self.common_dir.to_string_lossy().into_owned())
    }

    /// The name by which the user's settings trust it, and nothing else: with the host, else its directory.
    pub fn whole_name(&self) -> String {
        match (&self.host, &self.remote) {
            (Some(host), Some(remote)) => format!("{host}/{remote}"),
            _ => self.repo(),
        }
    }

    /// The repository with everything that identifies it.
    pub fn repository(&self) -> Repository {
        Repository {
            home: Home {
                dir: self.common_dir.to_string_lossy().into_owned(),
                mark: mark_of(&self.common_dir),
            },
            remote: self.remote.clone(),
        }
    }
}

/// What identifies a directory after a move: its inode and its creation time, because inodes are reused.
fn mark_of(dir: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let found = fs_err::metadata(dir).ok()?;
    let made = found.created().ok()?;
    let made = made.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!(
        "{}:{}:{}",
        found.dev(),
        found.ino(),
        made.as_nanos()
    ))
}

impl Worktree {
    /// The commit that is checked out, if there is one.
    pub fn head(&self) -> Option<String> {
        let head = read_text(&self.git_dir.join("HEAD"))?;
        let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
            return Some(head.trim().to_owned());
        };
        if let Some(commit) = read_text(&self.common_dir.join(name)) {
            return Some(commit.trim().to_owned());
        }
        let packed = read_text(&self.common_dir.join("packed-refs"))?;
        packed.lines().find_map(|line| {
            let (commit, packed) = line.split_once(' ')?;
            (packed == name).then(|| commit.to_owned())
        })
    }
}

/// The worktree of `dir`, if it is in one.
pub fn worktree(dir: &Path) -> Option<Worktree> {
    let dir = fs_err::canonicalize(dir).ok()?;
    let (root, git_dir) = dir
        .ancestors()
        .find_map(|root| Some((root, git_dir_of(root)?)))?;
    let git_dir = git_dir?;
    let common_dir = common_dir_of(&git_dir)?;
    let config = settings(&common_dir);
    let address = remote_url(&config).and_then(|url| address(&url));
    let (host, remote) = address.unzip();
    Some(Worktree {
        root: root.to_owned(),
        remote,
        host,
        hosts: hosts(&config),
        branch: branch_of(&git_dir),
        git_dir,
        common_dir,
    })
}

/// The `owner/name` of the remote of the repository with this common directory, if it has one.
pub fn remote(common_dir: &Path) -> Option<String> {
    remote_url(&settings(common_dir)).and_then(|url| owner_and_name(&url))
}

fn settings(common_dir: &Path) -> Vec<Entry> {
    let text = read_text(&common_dir.join("config"));
    text.map(|text| git_config::parse(&text))
        .unwrap_or_default()
}

/// The hosts of all remotes, each once.
fn hosts(config: &[Entry]) -> Vec<String> {
    let is_url = |entry: &&Entry| {
        entry.section == "remote" && matches!(entry.key.as_str(), "url" | "pushurl")
    };
    let urls = config.iter().filter(is_url);
    let mut all: Vec<String> = urls
        .filter_map(|entry| Some(address(&entry.value)?.0))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// A file's position in its repository; the file itself need not exist.
pub fn file(path: &Path) -> Option<RepoFile> {
    let there = path.ancestors().find(|dir| dir.is_dir())?;
    let worktree = worktree(there)?;
    let whole = fs_err::canonicalize(there).ok()?;
    let below = path.strip_prefix(there).ok()?;
    let relative = whole.join(below);
    let relative = relative.strip_prefix(&worktree.root).ok()?;
    Some(RepoFile {
        repo: worktree.repo(),
        repository: worktree.repository(),
        root: worktree.root.to_string_lossy().into_owned(),
        relative: relative.to_string_lossy().into_owned(),
        head: worktree.head(),
        branch: worktree.branch,
        stamp: stamp_of(path),
    })
}

fn stamp_of(path: &Path) -> Option<FileStamp> {
    use std::os::unix::fs::MetadataExt;
    let found = fs_err::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    let seconds = found.mtime().checked_mul(1_000_000_000)?;
    Some(FileStamp {
        size: found.len(),
        modified: seconds.checked_add(found.mtime_nsec())?,
    })
}

/// The git directory of `root`: its `.git`, or the target of the file with that name.
///
/// A file with a broken target ends the search (`Some(None)`), as it does for git: what is above is another
/// repository. A directory that only has the name does not.
fn git_dir_of(root: &Path) -> Option<Option<PathBuf>> {
    let dot_git = root.join(".git");
    if fs_err::metadata(&dot_git).ok()?.is_file() {
        return Some(linked_git_dir(root, &dot_git));
    }
    whole_git_dir(&dot_git).map(Some)
}

fn linked_git_dir(root: &Path, dot_git: &Path) -> Option<PathBuf> {
    let text = read_text(dot_git)?;
    let target = text.strip_prefix("gitdir:")?.trim_end_matches(['\n', '\r']);
    whole_git_dir(&root.join(target.trim_start()))
}

fn whole_git_dir(git_dir: &Path) -> Option<PathBuf> {
    let git_dir = fs_err::canonicalize(git_dir).ok()?;
    git_dir.join("HEAD").is_file().then_some(git_dir)
}

/// A linked worktree names the rest of the repository in `commondir`.
fn common_dir_of(git_dir: &Path) -> Option<PathBuf> {
    match read_text(&git_dir.join("commondir")) {
        Some(text) => fs_err::canonicalize(git_dir.join(text.trim_end_matches(['\n', '\r']))).ok(),
        None => Some(git_dir.to_owned()),
    }
}

fn branch_of(git_dir: &Path) -> Option<String> {
    let head = read_text(&git_dir.join("HEAD"))?;
    let branch = head
        .strip_prefix("ref:")?
        .trim()
        .strip_prefix("refs/heads/")?;
    // The content of HEAD if another format stores the refs.
    let real = !branch.is_empty() && branch != ".invalid";
    real.then(|| branch.to_owned())
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read::start(path, FILE_LIMIT).ok()?).ok()
}

/// The URL of `origin`, else of the only remote.
fn remote_url(config: &[Entry]) -> Option<String> {
    let mut remotes: Vec<(&str, &str)> = Vec::new();
    for entry in config
        .iter()
        .filter(|entry| entry.section == "remote" && entry.key == "url")
    {
        let Some(name) = entry.subsection.as_deref() else {
            continue;
        };
        // If there are several URLs, git fetches from the first.
        if !entry.value.is_empty() && !remotes.iter().any(|(known, _)| *known == name) {
            remotes.push((name, &entry.value));
        }
    }
    let origin = remotes.iter().find(|(name, _)| *name == "origin");
    let only = remotes.first().filter(|_| remotes.len() == 1);
    origin.or(only).map(|(_, url)| (*url).to_owned())
}

/// The canonical `owner/name` in a remote's URL; deeper groups are kept, credentials never.
pub fn owner_and_name(url: &str) -> Option<String> {
    Some(address(url)?.1)
}

/// The host and the canonical `owner/name` in a remote's URL. A host has no port: one machine is one host.
fn address(url: &str) -> Option<(String, String)> {
    let (authority, path) = match url.split_once("://") {
        Some((scheme, rest)) => {
            let remote = [
                "https",
                "http",
                "ssh",
                "git",
                "git+ssh",
                "ssh+git",
                "git+https",
            ];
            remote
                .iter()
                .find(|known| scheme.eq_ignore_ascii_case(known))?;
            rest.split_once('/')?
        }
        None => scp_parts(url)?,
    };
    let host = host_of(authority)?;
    let path = path.split(['?', '#']).next()?.trim_matches('/');
    let path = path
        .strip_suffix(".git")
        .unwrap_or(path)
        .trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let odd = |part: &&str| {
        matches!(*part, "." | "..") || part.chars().any(|c| c.is_control() || c == '\\')
    };
    (parts.len() >= 2 && !parts.iter().any(odd))
        .then(|| (host, spelling::repository_name(&parts.join("/"))))
}

/// The host in `user:password@host:port`, in lower case.
fn host_of(authority: &str) -> Option<String> {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.find(']') {
        Some(end) => &host[..=end],
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let odd = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    (!host.is_empty() && !host.contains(odd)).then_some(host)
}

/// The two parts of `user@host:path`; not of a local path, nor of a Windows drive.
fn scp_parts(url: &str) -> Option<(&str, &str)> {
    let (host, path) = match url.find("]:") {
        Some(end) => (&url[..=end], &url[end + 2..]),
        None => url.split_once(':')?,
    };
    let local = host.is_empty() || host.contains('/') || (host.len() == 1 && !host.contains('@'));
    // `helper::address` is an address for a program that git runs, not a host.
    let helper = path.starts_with(':');
    (!local && !helper).then_some((host, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn repository() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(dir.path()).unwrap().join("repo");
        write(&root.join(".git/HEAD"), "ref: refs/heads/feature/x\n");
        let config =
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@github.com:o/n.git\n";
        write(&root.join(".git/config"), config);
        fs_err::create_dir_all(root.join("src/deep")).unwrap();
        (dir, root)
    }

    #[test]
    fn urls_name_their_owner() {
        for (url, expected) in [
            ("https://github.com/owner/name", "owner/name"),
            ("https://github.com/owner/name.git", "owner/name"),
            ("https://github.com/owner/name.git/", "owner/name"),
            (
                "https://user:secret@github.com/owner/name.git",
                "owner/name",
            ),
            ("HTTPS://github.com:8443//owner/name", "owner/name"),
            ("git@github.com:owner/name.git", "owner/name"),
            ("github.com:/owner/name", "owner/name"),
            ("git@[::1]:owner/name.git", "owner/name"),
            ("ssh://git@host:22/owner/name", "owner/name"),
            ("git://host/owner/name.git", "owner/name"),
            ("https://gitlab.com/group/sub/name.git", "group/sub/name"),
            ("git@gitlab.com:group/sub/name.git", "group/sub/name"),
            ("ssh://git@GitHub.com:22/Owner/Name.git", "owner/name"),
            ("https://github.com/OWNER/NAME", "owner/name"),
        ] {
            assert_eq!(owner_and_name(url).as_deref(), Some(expected), "{url}");
        }
    }

    #[test]
    fn urls_name_their_host() {
        for (url, expected) in [
            ("https://user:se@cret@GitHub.com:8443/o/n", "github.com"),
            ("git@github.com:o/n.git", "github.com"),
            ("github-work:o/n", "github-work"),
            ("git@[::1]:o/n.git", "[::1]"),
            ("ssh://git@[::1]:22/o/n", "[::1]"),
            ("ssh://git@evil.example.:22/github.com/o/n", "evil.example"),
        ] {
            let found = address(url).map(|(host, _)| host);
            assert_eq!(found.as_deref(), Some(expected), "{url}");
        }
        assert_eq!(address("https:///o/n"), None);
        let config = "[remote \"a\"]\nurl=https://x.example/o/n\npushurl=git@y.example:o/n\n[remote \"b\"]\nurl=/srv/n\n";
        assert_eq!(
            hosts(&git_config::parse(config)),
            ["x.example", "y.example"]
        );
    }

    #[test]
    fn local_and_odd_urls_name_nobody() {
        for url in [
            "",
            "/srv/git/name.git",
            "../other/name",
            "./a:b/c",
            "file:///srv/git/name.git",
            "C:/git/owner/name",
            "https://host",
            "https://host/name",
            "git@host:name",
            "https://host/../name",
            "ext::sh -c whoami/x",
        ] {
            assert_eq!(owner_and_name(url), None, "{url}");
        }
    }

    #[test]
    fn a_worktree_is_found_from_below() {
        let (_keep, root) = repository();
        let found = worktree(&root.join("src/deep")).unwrap();
        assert_eq!(found.root, root);
        assert_eq!(found.common_dir, root.join(".git"));
        assert_eq!(found.remote.as_deref(), Some("o/n"));
        assert_eq!(found.branch.as_deref(), Some("feature/x"));
        assert_eq!(found.repo(), "o/n");
    }

    #[test]
    fn a_linked_worktree_shares_the_repository() {
        let (_keep, root) = repository();
        let linked = root.with_file_name("linked");
        let admin = root.join(".git/worktrees/linked");
        write(&admin.join("HEAD"), "ref: refs/heads/other\n");
        write(&admin.join("commondir"), "../..\n");
        for target in [admin.to_str().unwrap(), "../repo/.git/worktrees/linked"] {
            write(&linked.join(".git"), &format!("gitdir: {target}\n"));
            let found = worktree(&linked).unwrap();
            assert_eq!(found.root, linked);
            assert_eq!(found.common_dir, root.join(".git"));
            assert_eq!(found.branch.as_deref(), Some("other"));
            assert_eq!(found.repo(), "o/n");
        }
    }

    #[test]
    fn a_detached_head_has_no_branch_and_a_local_repository_its_path() {
        let (_keep, root) = repository();
        write(
            &root.join(".git/HEAD"),
            "0123456789012345678901234567890123456789\n",
        );
        write(
            &root.join(".git/config"),
            "[remote \"origin\"]\n url = /srv/x/y.git\n",
        );
        let found = worktree(&root).unwrap();
        assert_eq!(
            (found.branch.as_deref(), found.remote.as_deref()),
            (None, None)
        );
        assert_eq!(found.repo(), root.join(".git").to_str().unwrap());
    }

    #[test]
    fn outside_of_a_repository_there_is_none() {
        let (_keep, root) = repository();
        assert_eq!(worktree(root.parent().unwrap()), None);
        assert_eq!(worktree(&root.join("no/such")), None);
        // A directory with that name that is not a repository does not hide the one above.
        fs_err::create_dir_all(root.join("src/.git")).unwrap();
        assert_eq!(worktree(&root.join("src")).unwrap().root, root);
        // A worktree whose repository is gone is not part of the one above.
        write(&root.join("src/deep/.git"), "gitdir: /no/such\n");
        assert_eq!(worktree(&root.join("src/deep")), None);
    }

    #[test]
    fn origin_counts_else_the_only_remote() {
        let url = |text: &str| remote_url(&git_config::parse(text));
        let two = "[remote \"a\"]\nurl=1\n[remote \"b\"]\nurl=2\n";
        assert_eq!(url(two), None);
        assert_eq!(
            url(&format!("{two}[remote \"origin\"]\nURL = 3\nurl = 4\n")).as_deref(),
            Some("3")
        );
        assert_eq!(
            url("[remote \"a\"]\nurl = 1\nfetch = x\n").as_deref(),
            Some("1")
        );
        assert_eq!(url("[branch \"a\"]\nurl = 1\n"), None);
    }
}
