//! Runs git, for what cannot be read from its files and for changes that only git may make:
//! worktrees, refs, blobs.
//!
//! Every command names its repository and is built by [`crate::git_process`]. Git's own message is returned as
//! the error.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use crate::git_process::{self, BELIEVED, CREDENTIAL_HELPER, GitLocation, Reach, SSH_COMMAND};
use crate::piped::{Input, Piped};

/// The setting with which git believes the certificates of a file, from this server alone.
pub fn believed(server: &str, file: &str) -> String {
    format!("http.{server}{BELIEVED}{file}")
}

/// The settings of one worktree.
const OWN_FILE: &str = "config.worktree";

/// The remotes that a partial clone fetches missing objects from.
const PROMISOR: &str = r"^remote\..*\.promisor$";

/// How much of git's answer an error shows.
const SHOWN: usize = 500;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git cannot be run: {0}")]
    NotRun(io::Error),
    #[error("git {command} failed: {said}")]
    Failed {
        /// The first words of the command.
        command: String,
        said: String,
    },
    #[error("git {command} answered something unexpected")]
    Unexpected { command: String },
    #[error("{url} is not an address that tenure fetches from; use https, ssh, git or a path")]
    Protocol { url: String },
}

/// Whether git may use the programs that a repository's settings name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belief {
    /// The user trusts the repository, or tenure made it.
    Full,
    /// Only the user's own settings name programs. Check [`git_process::foreign_setting`] first.
    UserOnly,
}

impl Belief {
    pub fn of(trusted: bool) -> Self {
        if trusted { Self::Full } else { Self::UserOnly }
    }
}

/// A repository or a worktree to run git in.
#[derive(Debug, Clone)]
pub struct Git {
    place: GitLocation,
    belief: Belief,
    /// Settings for these commands only, as `NAME=VALUE`.
    settings: Vec<String>,
}

/// A worktree as git lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedWorktree {
    pub path: PathBuf,
    pub head: Option<String>,
    /// Why it is locked, if it is.
    pub locked: Option<String>,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub id: String,
    pub size: u64,
    pub path: String,
}

/// What is in a worktree besides its commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Changed, staged and untracked files.
    pub changed: Vec<String>,
    pub ignored: Vec<String>,
    /// Whether the only changes are missing files.
    pub only_missing: bool,
}

/// What git said when it failed.
pub(crate) fn failure<S: AsRef<OsStr>>(args: &[S], output: &Output) -> GitError {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = |line: &&str| !line.trim().is_empty() && !line.starts_with("hint:");
    let lines: Vec<&str> = said.lines().filter(line).collect();
    // Advice may follow the cause.
    let cause = lines.iter().find(|line| line.starts_with("fatal:"));
    let told = cause.or(lines.last()).copied();
    let told = told.unwrap_or("it gave no reason");
    GitError::Failed {
        command: named(args),
        said: told.chars().take(SHOWN).collect(),
    }
}

impl Git {
    /// The repository with this common directory.
    pub fn of_repository(common_dir: &Path, belief: Belief) -> Self {
        Self::at(GitLocation::Repository(common_dir.to_owned()), belief)
    }

    /// The worktree with this root.
    pub fn of_worktree(root: &Path, belief: Belief) -> Self {
        Self::at(GitLocation::Worktree(root.to_owned()), belief)
    }

    /// A bare repository that tenure made and that no agent can write.
    pub(crate) fn of_own(dir: &Path) -> Self {
        Self::at(GitLocation::Own(dir.to_owned()), Belief::Full)
    }

    fn at(place: GitLocation, belief: Belief) -> Self {
        Self {
            place,
            belief,
            settings: Vec::new(),
        }
    }

    /// The same, with these settings. Other users can read them while a command runs.
    #[must_use]
    pub fn with(mut self, settings: &[String]) -> Self {
        self.settings.extend_from_slice(settings);
        self
    }

    /// Runs git on this machine's files and reads its whole output.
    fn output<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Output, GitError> {
        self.reaching(&Reach::Local, args)
    }

    pub(crate) fn reaching<S: AsRef<OsStr>>(
        &self,
        reach: &Reach,
        args: &[S],
    ) -> Result<Output, GitError> {
        let mut command = git_process::command(&self.place, reach, &self.settings);
        command.args(args).output().map_err(GitError::NotRun)
    }

    /// Runs a transfer that must succeed within this time. Its output is short.
    pub(crate) fn transfer(
        &self,
        reach: &Reach,
        args: &[&str],
        within: Duration,
    ) -> Result<Vec<u8>, GitError> {
        let mut command = git_process::command(&self.place, reach, &self.settings);
        command.args(args);
        let started = Piped::start(&mut command, Input::Nothing);
        let ended = started.and_then(|git| git.finish(Instant::now() + within));
        let ended = ended.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => GitError::Failed {
                command: named(args),
                said: format!("the server did not finish within {} s", within.as_secs()),
            },
            _ => GitError::NotRun(error),
        })?;
        let output = Output {
            status: ended.status,
            stdout: ended.output,
            stderr: ended.errors,
        };
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(failure(args, &output))
    }

    /// A command on this machine's files, for who feeds and reads it.
    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = git_process::command(&self.place, &Reach::Local, &self.settings);
        command.args(args);
        command
    }

    /// Runs a command that must succeed.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Vec<u8>, GitError> {
        self.run_reaching(&Reach::Local, args)
    }

    pub(crate) fn run_reaching<S: AsRef<OsStr>>(
        &self,
        reach: &Reach,
        args: &[S],
    ) -> Result<Vec<u8>, GitError> {
        let output = self.reaching(reach, args)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(failure(args, &output))
    }

    pub(crate) fn text<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, GitError> {
        let bytes = self.run(args)?;
        let text = String::from_utf8(bytes).map_err(|_| unexpected(args))?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// What a transfer from this URL needs.
    pub(crate) fn reach(&self, url: &str) -> Result<Reach, GitError> {
        let Some(protocols) = git_process::protocols(url) else {
            let url = url.chars().take(SHOWN).collect();
            return Err(GitError::Protocol { url });
        };
        Ok(Reach::Remote {
            protocols: protocols.to_owned(),
            missing_objects: false,
            programs: self.programs()?,
        })
    }

    /// Settings that name the user's own programs for transfers, unless the repository's are believed.
    fn programs(&self) -> Result<Vec<String>, GitError> {
        if self.belief == Belief::Full {
            return Ok(Vec::new());
        }
        let users = Self::at(GitLocation::Nowhere, self.belief);
        let ssh = users.own_values(SSH_COMMAND)?.pop();
        let plain = || crate::env::var("GIT_SSH").map(|own| own.to_string_lossy().into_owned());
        let ssh = ssh.or_else(|| plain().map(|own| tenure_core::text::shell(&own)));
        let ssh = ssh.unwrap_or_else(|| "ssh".to_owned());
        // An empty helper first: it disables all earlier ones.
        let mut programs = vec![
            format!("{SSH_COMMAND}={ssh}"),
            format!("{CREDENTIAL_HELPER}="),
        ];
        let helpers = users.own_values(CREDENTIAL_HELPER)?.into_iter();
        programs.extend(helpers.map(|helper| format!("{CREDENTIAL_HELPER}={helper}")));
        Ok(programs)
    }

    /// All values of a setting, without those that tenure sets itself; the last one counts.
    fn own_values(&self, name: &str) -> Result<Vec<String>, GitError> {
        let args = ["config", "--null", "--show-scope", "--get-all", name];
        let output = self.output(&args)?;
        // The scope and the value take turns.
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let parts: Vec<&str> = text.split('\0').collect();
        let pairs = parts.chunks_exact(2).filter(|pair| pair[0] != "command");
        Ok(pairs.map(|pair| pair[1].to_owned()).collect())
    }

    /// What a checkout needs: the servers of a partial clone that the user trusts, else nothing.
    fn reach_of_checkout(&self) -> Result<Reach, GitError> {
        if self.belief != Belief::Full {
            return Ok(Reach::Local);
        }
        let args = ["config", "--null", "--name-only", "--get-regexp", PROMISOR];
        let names = self.output(&args)?.stdout;
        let names = String::from_utf8_lossy(&names).into_owned();
        let mut needed: Vec<&str> = Vec::new();
        for name in names.split('\0') {
            let name = name.strip_prefix("remote.");
            let Some(remote) = name.and_then(|name| name.strip_suffix(".promisor")) else {
                continue;
            };
            needed.extend(git_process::protocols(&self.address(remote)?));
        }
        if needed.is_empty() {
            return Ok(Reach::Local);
        }
        Ok(Reach::Remote {
            protocols: needed.join(":"),
            missing_objects: true,
            programs: Vec::new(),
        })
    }

    /// The directory of the repository's hooks, as the settings have it: absolute, or relative to the worktree.
    pub fn hooks_path(&self) -> Result<Option<PathBuf>, GitError> {
        // Fails in a directory whose owner git does not believe; reading a setting there does not.
        self.run(&["rev-parse", "--git-dir"])?;
        let args = ["config", "--null", "--show-scope", "--type=path"];
        let output = self.output(&[&args[..], &["--get-all", "core.hooksPath"]].concat())?;
        let parts: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        let mut own = parts.chunks_exact(2).filter(|pair| pair[0] != b"command");
        let last = own.next_back().filter(|pair| !pair[1].is_empty());
        Ok(last.map(|pair| PathBuf::from(OsString::from_vec(pair[1].to_vec()))))
    }

    /// The commit that a name refers to, if any.
    pub fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let asked = format!("{name}^{{commit}}");
        let args = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &asked,
        ];
        let output = self.output(&args)?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !text.is_empty()).then_some(text))
    }

    /// The remote to use: `origin`, or else the only one.
    pub fn remote(&self) -> Result<Option<String>, GitError> {
        let text = self.text(&["remote"])?;
        let all: Vec<&str> = text.lines().collect();
        let origin = all.iter().find(|name| **name == "origin");
        let only = all.first().filter(|_| all.len() == 1);
        Ok(origin.or(only).map(|name| (*name).to_owned()))
    }

    /// The branch that others build on: the remote's default branch, else its `main` or `master`,
    /// else the local one, else the one that is checked out.
    pub fn base(&self) -> Result<Option<String>, GitError> {
        let mut names = Vec::new();
        if let Some(remote) = self.remote()? {
            let head = format!("refs/remotes/{remote}/HEAD");
            let chosen = self.output(&["symbolic-ref", "--quiet", &head])?;
            names.push(String::from_utf8_lossy(&chosen.stdout).trim().to_owned());
            names.extend(["main", "master"].map(|name| format!("refs/remotes/{remote}/{name}")));
        }
        names.extend(["refs/heads/main", "refs/heads/master", "HEAD"].map(str::to_owned));
        for name in names {
            if !name.is_empty() && self.commit(&name)?.is_some() {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Fetches a ref of a remote under a name of our own.
    pub fn fetch(&self, remote: &str, from: &str, to: &str) -> Result<(), GitError> {
        let refs = format!("+{from}:{to}");
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        let reach = self.reach(&self.address(remote)?)?;
        self.run_reaching(&reach, &[&fetch[..], &["--", remote, &refs]].concat())?;
        Ok(())
    }

    /// Fetches all branches of a remote, into the refs that its settings name. Branches deleted on
    /// the remote are not pruned here.
    pub fn fetch_branches(&self, remote: &str) -> Result<(), GitError> {
        let fetch = ["fetch", "--quiet", "--no-prune", "--no-write-fetch-head"];
        let alone = ["--no-recurse-submodules", "--", remote];
        let reach = self.reach(&self.address(remote)?)?;
        self.run_reaching(&reach, &[&fetch[..], &alone].concat())?;
        Ok(())
    }

    /// Clones a repository without its files into a directory below this one.
    pub fn clone_into(&self, url: &str, name: &str) -> Result<(), GitError> {
        let clone = ["clone", "--quiet", "--no-checkout", "--template="];
        let alone = [
            "--no-recurse-submodules",
            "--origin=origin",
            "--",
            url,
            name,
        ];
        let reach = self.reach(url)?;
        self.run_reaching(&reach, &[&clone[..], &alone].concat())?;
        Ok(())
    }

    /// The URL that a remote is fetched from.
    pub fn address(&self, remote: &str) -> Result<String, GitError> {
        self.text(&["remote", "get-url", "--", remote])
    }

    /// Whether `commit` is an ancestor of `other`. False for a commit that is missing here.
    pub fn is_in(&self, commit: &str, other: &str) -> Result<bool, GitError> {
        if self.commit(commit)?.is_none() {
            return Ok(false);
        }
        let args = ["merge-base", "--is-ancestor", commit, other];
        Ok(self.output(&args)?.status.success())
    }

    /// Fast-forwards the branch of this worktree to a commit.
    pub fn fast_forward(&self, commit: &str) -> Result<(), GitError> {
        let reach = self.reach_of_checkout()?;
        self.run_reaching(&reach, &["merge", "--quiet", "--ff-only", commit])?;
        Ok(())
    }

    /// The values of a setting, from all configuration files that apply here.
    pub fn setting(&self, name: &str) -> Result<Option<String>, GitError> {
        let output = self.output(&["config", "--get", name])?;
        let text = String::from_utf8_lossy(&output.stdout)
            .trim_end_matches('\n')
            .to_owned();
        Ok(output.status.success().then_some(text))
    }

    /// Sets a setting of the repository.
    pub fn set(&self, name: &str, value: &str) -> Result<(), GitError> {
        self.run(&["config", name, value])?;
        Ok(())
    }

    /// Sets a setting of this worktree only, to these values in this order.
    pub fn set_here(&self, name: &str, values: &[&str]) -> Result<(), GitError> {
        self.unset_here(name)?;
        for value in values {
            self.run(&["config", "--worktree", "--add", name, value])?;
        }
        Ok(())
    }

    /// Removes a setting of this worktree only; a missing one is not an error.
    pub fn unset_here(&self, name: &str) -> Result<(), GitError> {
        /// Git's exit code when there is nothing to unset.
        const NOT_SET: i32 = 5;
        let args = ["config", "--worktree", "--unset-all", name];
        let output = self.output(&args)?;
        if output.status.success() || output.status.code() == Some(NOT_SET) {
            return Ok(());
        }
        Err(unexpected(&args))
    }

    /// The settings of this worktree only, as names and values.
    pub fn settings_here(&self) -> Result<Vec<(String, String)>, GitError> {
        let file = self.text(&[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            OWN_FILE,
        ])?;
        if !Path::new(&file).exists() {
            return Ok(Vec::new());
        }
        let bytes = self.run(&["config", "--worktree", "--null", "--list"])?;
        let text = String::from_utf8_lossy(&bytes);
        let entries = text.split('\0').filter_map(|entry| entry.split_once('\n'));
        Ok(entries
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect())
    }

    /// Whether a branch of this repository has this commit.
    pub fn has_branch_with(&self, commit: &str) -> Result<bool, GitError> {
        let args = [
            "for-each-ref",
            "--count=1",
            "--contains",
            commit,
            "refs/heads",
        ];
        Ok(!self.text(&args)?.is_empty())
    }

    /// Whether a branch of a remote had this commit when it was last seen.
    pub fn is_on_remote(&self, commit: &str) -> Result<bool, GitError> {
        let args = [
            "for-each-ref",
            "--count=1",
            "--contains",
            commit,
            "refs/remotes",
        ];
        Ok(!self.text(&args)?.is_empty())
    }

    pub fn worktrees(&self) -> Result<Vec<ListedWorktree>, GitError> {
        let bytes = self.run(&["worktree", "list", "--porcelain", "-z"])?;
        Ok(listed(&bytes))
    }

    /// Adds a worktree on a new branch that starts at a commit.
    pub fn add_worktree(&self, dir: &Path, branch: &str, start: &str) -> Result<(), GitError> {
        let add = [
            "worktree",
            "add",
            "--quiet",
            "--no-track",
            "-b",
            branch,
            "--",
        ];
        let reach = self.reach_of_checkout()?;
        self.run_reaching(&reach, &words(&add, &[dir.as_os_str(), start.as_ref()]))?;
        Ok(())
    }

    /// Adds a worktree on an existing branch.
    pub fn add_worktree_on(&self, dir: &Path, branch: &str) -> Result<(), GitError> {
        let add = ["worktree", "add", "--quiet", "--"];
        let reach = self.reach_of_checkout()?;
        self.run_reaching(&reach, &words(&add, &[dir.as_os_str(), branch.as_ref()]))?;
        Ok(())
    }

    pub fn move_worktree(&self, from: &Path, to: &Path) -> Result<(), GitError> {
        let paths = [from.as_os_str(), to.as_os_str()];
        self.run(&words(&["worktree", "move", "--"], &paths))?;
        Ok(())
    }

    /// Removes a worktree. Git refuses if it has changes or untracked files.
    pub fn remove_worktree(&self, dir: &Path) -> Result<(), GitError> {
        self.run(&words(&["worktree", "remove", "--"], &[dir.as_os_str()]))?;
        Ok(())
    }

    /// Removes a worktree that git was killed while adding. No agent has worked in it.
    pub fn discard_unfinished(&self, dir: &Path) -> Result<(), GitError> {
        let remove = ["worktree", "remove", "--force", "--force", "--"];
        self.run(&words(&remove, &[dir.as_os_str()]))?;
        Ok(())
    }

    /// What is in this worktree besides its commit.
    pub fn leftovers(&self) -> Result<Leftovers, GitError> {
        let args = ["status", "--porcelain=v1", "-z", "--ignored=traditional"];
        let untracked = ["--untracked-files=normal", "--ignore-submodules=none"];
        let bytes = self.run(&[&args[..], &untracked].concat())?;
        let mut found = leftovers(&bytes);
        let hidden = self.hidden()?;
        found.only_missing &= hidden.is_empty();
        found.changed.extend(hidden);
        Ok(found)
    }

    /// Files that the user told git to ignore changes of, so whether they changed is unknown.
    fn hidden(&self) -> Result<Vec<String>, GitError> {
        let GitLocation::Worktree(root) = &self.place else {
            return Ok(Vec::new());
        };
        let bytes = self.run(&["ls-files", "-v", "-z"])?;
        let all = bytes.split(|byte| *byte == 0).filter_map(hidden);
        let there = all.filter(|path| fs_err::symlink_metadata(root.join(path)).is_ok());
        Ok(there
            .map(|path| path.to_string_lossy().into_owned())
            .collect())
    }

    /// Restores files of the commit that are missing in this worktree.
    pub fn restore_missing(&self) -> Result<(), GitError> {
        let reach = self.reach_of_checkout()?;
        self.run_reaching(&reach, &["checkout", "--quiet", "HEAD", "--", "."])?;
        Ok(())
    }

    /// The plain files directly in a folder of a commit.
    pub fn files(&self, commit: &str, folder: &str) -> Result<Vec<Blob>, GitError> {
        let inside = format!("{folder}/");
        let args = ["ls-tree", "-z", "-l", "--full-tree", commit, "--", &inside];
        let bytes = self.run(&args)?;
        let entries = bytes.split(|byte| *byte == 0);
        Ok(entries.filter_map(blob).collect())
    }

    /// The content of a file of a commit.
    pub fn content(&self, blob: &Blob) -> Result<Vec<u8>, GitError> {
        self.run(&["cat-file", "blob", &blob.id])
    }
}

/// The words of a command, followed by paths and names.
fn words<'a>(first: &[&'a str], rest: &[&'a OsStr]) -> Vec<&'a OsStr> {
    let first = first.iter().map(|word| OsStr::new(*word));
    first.chain(rest.iter().copied()).collect()
}

fn named<S: AsRef<OsStr>>(args: &[S]) -> String {
    let plain = |word: &&S| !word.as_ref().as_bytes().starts_with(b"-");
    let words = args.iter().take(2).filter(plain);
    let words: Vec<_> = words.map(|word| word.as_ref().to_string_lossy()).collect();
    words.join(" ")
}

fn unexpected<S: AsRef<OsStr>>(args: &[S]) -> GitError {
    GitError::Unexpected {
        command: named(args),
    }
}

/// Parses `git worktree list --porcelain -z`: lines that end in NUL, with an empty one after each
/// worktree.
fn listed(bytes: &[u8]) -> Vec<ListedWorktree> {
    let mut all: Vec<ListedWorktree> = Vec::new();
    for line in bytes.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            all.push(ListedWorktree {
                path: PathBuf::from(OsString::from_vec(path.to_vec())),
                ..ListedWorktree::default()
            });
            continue;
        }
        let Some(last) = all.last_mut() else {
            continue;
        };
        let line = String::from_utf8_lossy(line);
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("HEAD", commit) => last.head = Some(commit.to_owned()),
            ("locked", why) => last.locked = Some(why.trim().to_owned()),
            _ => {}
        }
    }
    all
}

/// Parses `git status --porcelain=v1 -z`: two letters, a space, a path; a renamed file is followed
/// by its old path.
fn leftovers(bytes: &[u8]) -> Leftovers {
    let mut found = Leftovers {
        only_missing: true,
        ..Leftovers::default()
    };
    let mut entries = bytes.split(|byte| *byte == 0).filter(|one| !one.is_empty());
    while let Some(entry) = entries.next() {
        let text = String::from_utf8_lossy(entry);
        let (Some(code), Some(path)) = (text.get(..2), text.get(3..)) else {
            continue;
        };
        if code == "!!" {
            found.ignored.push(path.to_owned());
            continue;
        }
        if code.contains(['R', 'C']) {
            entries.next();
        }
        found.only_missing &= code == " D";
        found.changed.push(path.to_owned());
    }
    found.only_missing &= !found.changed.is_empty();
    found
}

/// Parses an entry of `git ls-files -v`: a letter, a space, a path. A lower-case letter means
/// "assume unchanged", `S` means "skip worktree".
fn hidden(entry: &[u8]) -> Option<&Path> {
    let (letter, rest) = entry.split_first()?;
    let is_hidden = letter.is_ascii_lowercase() || *letter == b'S';
    is_hidden.then(|| Path::new(OsStr::from_bytes(rest.strip_prefix(b" ").unwrap_or(rest))))
}

/// Parses an entry of `git ls-tree -l`: `MODE TYPE ID SIZE<tab>PATH`. Links and folders are
/// skipped.
fn blob(entry: &[u8]) -> Option<Blob> {
    let text = std::str::from_utf8(entry).ok()?;
    let (about, path) = text.split_once('\t')?;
    let mut about = about.split_whitespace();
    let (mode, kind, id, size) = (about.next()?, about.next()?, about.next()?, about.next()?);
    let is_plain = kind == "blob" && mode.starts_with("100");
    is_plain.then_some(())?;
    Some(Blob {
        id: id.to_owned(),
        // Not a number for a file that a partial clone left out: reading it fails.
        size: size.parse().unwrap_or(0),
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests;
