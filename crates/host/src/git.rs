//! The git worktree of a directory, read from its files; git itself is never run.
//!
//! Nothing is written, no hook or setting of the repository takes effect, and `insteadOf` is not followed. An
//! include is followed only inside the git directory. If the remote cannot be read for certain, the repository is
//! named after its directory, and the worktree states why. The answer is a snapshot; a branch may change right
//! after.

use std::path::{Path, PathBuf};

use tenure_core::repository::{Home, Repository};
use tenure_core::spelling;
use tenure_core::write_conflict::{FileStamp, RepoFile};

use crate::file::resolve;
use crate::git_config::{self, ConfigEntry};
use crate::read;

/// Longer than any of these files in a real repository, the config excepted.
const FILE_LIMIT: u64 = 1024 * 1024;
/// A config with 100,000 remotes is shorter.
const CONFIG_LIMIT: u64 = 16 * 1024 * 1024;
/// How many files a config may include, nested ones counted.
const MAX_INCLUDES: usize = 32;

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
    /// Why the remote could not be read, if it could not.
    pub unread_remote: Option<String>,
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
    worktree_above(&fs_err::canonicalize(dir).ok()?)
}

/// The branch of the worktree of `dir`, none in it if HEAD is detached. Reads two small files at most.
pub fn branch(dir: &Path) -> Option<Option<String>> {
    let whole = fs_err::canonicalize(dir).ok()?;
    let git_dir = whole.ancestors().find_map(git_dir_of)??;
    read_text(&git_dir.join("HEAD")).map(|head| branch_in(&head))
}

/// The same for a path without symbolic links that exists.
fn worktree_above(whole: &Path) -> Option<Worktree> {
    let (root, git_dir) = whole
        .ancestors()
        .find_map(|root| Some((root, git_dir_of(root)?)))?;
    let git_dir = git_dir?;
    let common_dir = common_dir_of(&git_dir)?;
    let (config, unread_remote) = match settings(&common_dir) {
        Ok(config) => (config, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let address = remote_url(&config).and_then(|url| address(&url));
    let (host, remote) = address.unzip();
    Some(Worktree {
        root: root.to_owned(),
        remote,
        host,
        hosts: hosts(&config),
        unread_remote,
        branch: branch_of(&git_dir),
        git_dir,
        common_dir,
    })
}

/// The `owner/name` of the remote of the repository with this common directory, if it has one.
pub fn remote(common_dir: &Path) -> Option<String> {
    let config = settings(common_dir).ok()?;
    remote_url(&config).and_then(|url| owner_and_name(&url))
}

/// The URL of the remote of the repository with this common directory, if it has one.
pub fn remote_address(common_dir: &Path) -> Option<String> {
    remote_url(&settings(common_dir).ok()?)
}

/// The entries of a repository's own config, or why they cannot be read for certain.
fn settings(common_dir: &Path) -> Result<Vec<ConfigEntry>, String> {
    let mut config = Vec::new();
    let mut budget = MAX_INCLUDES;
    read_config(
        &common_dir.join("config"),
        common_dir,
        &mut budget,
        &mut config,
    )?;
    Ok(config)
}

/// The hosts of all remotes, each once.
fn hosts(config: &[ConfigEntry]) -> Vec<String> {
    let is_url = |entry: &&ConfigEntry| {
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

/// Adds the entries of a config and, at their place in it, of the files that it includes.
fn read_config(
    path: &Path,
    common_dir: &Path,
    budget: &mut usize,
    into: &mut Vec<ConfigEntry>,
) -> Result<(), String> {
    let bytes = match read::whole(path, CONFIG_LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if read::is_absent(&error) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    // git accepts any byte in a value. One that is not text must not hide the other entries.
    for entry in git_config::parse(&String::from_utf8_lossy(&bytes)) {
        let is_include = matches!(entry.section.as_str(), "include" | "includeif");
        if !is_include || entry.key != "path" {
            into.push(entry);
            continue;
        }
        let says = || format!("{} includes {}", path.display(), entry.value);
        let outside = || format!("{}, which is outside the git directory", says());
        let folder = path.parent().unwrap_or(common_dir);
        let target = match (entry.value.strip_prefix("~/"), crate::env::var("HOME")) {
            (Some(below), Some(home)) => PathBuf::from(home).join(below),
            _ if entry.value.starts_with(['~', '%']) => return Err(outside()),
            _ => folder.join(&entry.value),
        };
        // git skips an included file that does not exist.
        let target = match fs_err::canonicalize(&target) {
            Ok(target) => target,
            Err(error) if read::is_absent(&error) => continue,
            Err(error) => return Err(format!("{}: {error}", says())),
        };
        if !target.starts_with(common_dir) {
            return Err(outside());
        }
        if entry.section == "includeif" {
            return Err(format!("{} under a condition", says()));
        }
        *budget = budget
            .checked_sub(1)
            .ok_or_else(|| format!("{}, after {MAX_INCLUDES} other files", says()))?;
        read_config(&target, common_dir, budget, into)?;
    }
    Ok(())
}

/// A file's position in its repository; the file itself need not exist.
pub fn file(path: &Path) -> Option<RepoFile> {
    // A link that leads out of every repository is a file of the one that it is in.
    let itself = || Some(resolve(path.parent()?)?.join(path.file_name()?));
    let found = |whole: PathBuf| {
        let there = whole.ancestors().find(|above| above.exists())?;
        Some((worktree_above(there)?, whole))
    };
    let (worktree, whole) = resolve(path)
        .and_then(found)
        .or_else(|| itself().and_then(found))?;
    let relative = whole.strip_prefix(&worktree.root).ok()?;
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

/// A path of a worktree, from its root, without symbolic links; none if it leads out of the worktree.
pub fn below_root(root: &Path, path: &str) -> Option<String> {
    let whole = resolve(&root.join(path))?;
    let below = whole.strip_prefix(root).ok()?;
    below.to_str().map(str::to_owned)
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
    branch_in(&read_text(&git_dir.join("HEAD"))?)
}

fn branch_in(head: &str) -> Option<String> {
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

/// The URL of `origin`, else of the only remote. If a remote has several URLs, git fetches from the first.
fn remote_url(config: &[ConfigEntry]) -> Option<String> {
    let is_url = |entry: &&ConfigEntry| entry.section == "remote" && entry.key == "url";
    let urls = config.iter().filter(is_url);
    let named = urls.filter_map(|entry| Some((entry.subsection.as_deref()?, &entry.value)));
    let mut named = named.filter(|(_, url)| !url.is_empty());
    let first = named.next()?;
    if first.0 == "origin" {
        return Some(first.1.clone());
    }
    let mut others = named.filter(|(name, _)| *name != first.0).peekable();
    if others.peek().is_none() {
        return Some(first.1.clone());
    }
    let origin = others.find(|(name, _)| *name == "origin");
    origin.map(|(_, url)| url.clone())
}

/// The canonical `owner/name` in a remote's URL; deeper groups are kept, credentials never.
pub fn owner_and_name(url: &str) -> Option<String> {
    Some(address(url)?.1)
}

/// The host and the canonical `owner/name` in a remote's URL. A host has no port: one machine is one host.
pub fn address(url: &str) -> Option<(String, String)> {
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
        matches!(*part, "." | "..") || part.chars().any(|c| c.is_control() || "\\:".contains(c))
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
    fn a_branch_is_read_without_the_rest() {
        let (_dir, root) = repository();
        assert_eq!(
            branch(&root.join("src/deep")),
            Some(Some("feature/x".into()))
        );
        write(&root.join(".git/HEAD"), "ref: refs/heads/topic\n");
        assert_eq!(branch(&root), Some(Some("topic".into())));
        write(&root.join(".git/HEAD"), "0a1b2c3d\n");
        assert_eq!(branch(&root), Some(None));
        assert_eq!(branch(&root.join("gone")), None);
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
            "git@host:a:b/c",
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
    fn a_file_is_found_behind_links_and_steps() {
        use std::os::unix::fs::symlink;
        let (_keep, root) = repository();
        write(&root.join("src/a.rs"), "");
        symlink("src", root.join("lsrc")).unwrap();
        symlink("src/a.rs", root.join("la.rs")).unwrap();
        symlink("/etc", root.join("out")).unwrap();
        let relative = |path: &str| file(&root.join(path)).map(|found| found.relative);
        for (path, expected) in [
            ("src/a.rs", "src/a.rs"),
            ("src/new/b.rs", "src/new/b.rs"),
            ("lsrc/a.rs", "src/a.rs"),
            ("lsrc/new.rs", "src/new.rs"),
            ("la.rs", "src/a.rs"),
            ("nope/../src/a.rs", "src/a.rs"),
            ("nope/../lsrc/a.rs", "src/a.rs"),
            ("src/deep/../a.rs", "src/a.rs"),
            ("./src/./a.rs", "src/a.rs"),
            ("out", "out"),
        ] {
            assert_eq!(relative(path).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(relative("../elsewhere/x"), None);
        assert_eq!(relative("nope/../../elsewhere/x"), None);
        assert_eq!(below_root(&root, "lsrc/x").as_deref(), Some("src/x"));
        assert_eq!(below_root(&root, "out/x"), None);
        assert_eq!(below_root(&root, "").as_deref(), Some(""));
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
    fn a_byte_that_is_not_text_or_a_long_config_hides_no_remote() {
        let (_keep, root) = repository();
        let config = root.join(".git/config");
        let remote = b"[user]\nname = J\xe9r\xf4me\n[remote \"origin\"]\nurl = git@h:o/n.git\n";
        fs_err::write(&config, remote).unwrap();
        assert_eq!(worktree(&root).unwrap().remote.as_deref(), Some("o/n"));
        let long = [&b"# comment\n".repeat(200_000)[..], remote].concat();
        fs_err::write(&config, long).unwrap();
        assert_eq!(worktree(&root).unwrap().remote.as_deref(), Some("o/n"));
        fs_err::write(&config, b"# comment\n".repeat(2_000_000)).unwrap();
        let found = worktree(&root).unwrap();
        assert_eq!(found.remote, None);
        assert!(found.unread_remote.unwrap().contains("is longer than"));
    }

    #[test]
    fn an_include_is_followed_only_inside_the_git_directory() {
        let (_keep, root) = repository();
        let config = root.join(".git/config");
        let remote = "[remote \"origin\"]\nurl = git@h:x/y.git\n";
        write(&root.join(".git/parts/remote"), remote);
        write(&root.join(".git/more"), "[include]\npath = parts/remote\n");
        let outside = root.with_file_name("outside");
        write(&outside, remote);
        let included = |path: &str| {
            write(
                &config,
                &format!("[include]\npath = {path}\n[remote \"origin\"]\nurl = git@h:o/n\n"),
            );
            let found = worktree(&root).unwrap();
            (found.remote, found.unread_remote)
        };
        assert_eq!(included("more").0.as_deref(), Some("x/y"));
        assert_eq!(included("no/such/file"), (Some("o/n".to_owned()), None));
        let (remote, why) = included("../../outside");
        assert_eq!(remote, None);
        let why = why.unwrap();
        assert!(
            why.contains("includes ../../outside, which is outside"),
            "{why}"
        );
        assert_eq!(included(outside.to_str().unwrap()).0, None);
        // A link that leads out of it counts as what it leads to.
        std::os::unix::fs::symlink(&outside, root.join(".git/link")).unwrap();
        assert_eq!(included("link").0, None);
        // A file that includes itself ends.
        assert!(
            included("config")
                .1
                .unwrap()
                .contains("after 32 other files")
        );
        write(&config, "[includeIf \"onbranch:x\"]\npath = parts/remote\n");
        let found = worktree(&root).unwrap();
        assert_eq!(found.remote, None);
        assert!(
            found
                .unread_remote
                .as_ref()
                .unwrap()
                .contains("under a condition")
        );
        assert_eq!(found.repo(), root.join(".git").to_str().unwrap());
    }

    #[test]
    fn many_remotes_are_read_in_linear_time() {
        let remotes = |count: usize| -> Vec<ConfigEntry> {
            let text: String = (0..count)
                .map(|at| format!("[remote \"r{at}\"]\nurl = git@h:o/r{at}\n"))
                .collect();
            git_config::parse(&text)
        };
        let time = |entries: &[ConfigEntry]| {
            let once = || {
                let began = std::time::Instant::now();
                assert_eq!(remote_url(entries), None);
                began.elapsed()
            };
            (0..5).map(|_| once()).min().unwrap()
        };
        let (few, many) = (time(&remotes(1_000)), time(&remotes(25_000)));
        assert!(
            many < few * 250,
            "{few:?} for 1,000 and {many:?} for 25,000"
        );
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
