//! Bare repositories that tenure makes for itself and that no agent can write.
//!
//! Git runs in them with an environment that is made ([`Place::Own`](crate::git_process)): no settings of the user,
//! the machine or a clone apply. Objects arrive from a server that the user named, checked
//! (`fetch.fsckObjects`), or through a pipe into a [`Quarantine`], within limits. Nothing is pruned: a reader that has
//! a commit can still fetch its neighbours.
//!
//! *Crash*: a repository is made under a temporary name and renamed when it is complete. What a quarantine has is
//! invisible until all of it was checked; its directory is then removed by who uses the name next.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tenure_core::commit::CommitId;

use crate::file;
use crate::git_command::{Git, GitError, failure};
use crate::git_process::Reach;
use crate::piped::{Input, Piped, ProcessLimits, ProcessOutput};

/// Settings for transfers: everything that arrives is checked, and nothing comes that was not asked for.
const FETCH_SETTINGS: &[&str] = &[
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    // Known faults of old repositories, which harm nobody.
    "fetch.fsck.badTimezone=ignore",
    "fetch.fsck.missingSpaceBeforeDate=ignore",
    "fetch.fsck.zeroPaddedFilemode=ignore",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "protocol.version=2",
];

/// How long a fetch may take. Others wait meanwhile; git itself notices only on HTTP that nothing comes any more.
const MAX_FETCH: Duration = Duration::from_secs(30 * 60);
/// How long a server may take to say what it has.
const MAX_QUESTION: Duration = Duration::from_secs(120);

/// Settings for a push: exactly what is named is sent.
const PUSH_SETTINGS: &[&str] = &[
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
    "push.followTags=false",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
];

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushResult {
    Done,
    /// The branch is not at the commit that was expected.
    Moved,
}

/// A path that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub path: String,
    /// What is there now: git's mode, and the object; zeros if nothing is.
    pub mode: String,
    pub id: String,
}

/// Keeps packs of ours from using up the address space of a limited process.
const LIMITED_SETTINGS: &[&str] = &["core.packedGitWindowSize=16m", "core.packedGitLimit=256m"];

/// What may arrive through a pipe, and what checking it may cost.
#[derive(Debug, Clone, Copy)]
pub struct PackLimits {
    /// Bytes of the pack.
    pub bytes: u64,
    pub process: ProcessLimits,
}

impl Default for PackLimits {
    fn default() -> Self {
        let bytes = 256 << 20;
        Self {
            bytes,
            process: ProcessLimits {
                // A pack of 16 KB can ask for 3 GB.
                memory: 2 << 30,
                seconds: 120,
                file: 4 * bytes,
            },
        }
    }
}

/// A bare repository of tenure's own.
#[derive(Debug, Clone)]
pub struct OwnRepository {
    dir: PathBuf,
}

impl OwnRepository {
    /// The repository in this directory; made if missing. `alternate` is another one whose objects it shares.
    /// The caller holds a lock.
    pub fn open(dir: &Path, alternate: Option<&Self>) -> io::Result<Self> {
        let own = Self {
            dir: dir.to_owned(),
        };
        if dir.join("HEAD").is_file() {
            return Ok(own);
        }
        let making = dir.with_extension("making");
        remove_all(&making)?;
        if let Some(parent) = dir.parent() {
            file::make_dirs(parent)?;
        }
        file::make_dir(&making)?;
        let git = Git::of_own(&making);
        let words = ["init", "--quiet", "--bare", "--template=", "-b", "main"];
        git.run(&words).map_err(io::Error::other)?;
        for (name, value) in [
            ("gc.auto", "0"),
            ("gc.pruneExpire", "never"),
            ("core.logAllRefUpdates", "false"),
        ] {
            git.set(name, value).map_err(io::Error::other)?;
        }
        if let Some(other) = alternate {
            let line = format!("{}\n", other.objects().display());
            file::make_dirs(&making.join("objects/info"))?;
            file::write_private(&making.join("objects/info/alternates"), line.as_bytes())?;
        }
        fs_err::rename(&making, dir)?;
        file::sync_dir(dir)?;
        Ok(own)
    }

    /// The repository in this directory, if it was made.
    pub fn existing(dir: &Path) -> Option<Self> {
        let own = Self {
            dir: dir.to_owned(),
        };
        dir.join("HEAD").is_file().then_some(own)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// Git in it.
    pub fn git(&self) -> Git {
        Git::of_own(&self.dir)
    }

    /// Fetches refs of a server under names of ours; refs of ours that it no longer has are removed.
    pub fn fetch(&self, url: &str, refs: &[&str], settings: &[String]) -> Result<(), GitError> {
        self.fetch_within(url, refs, settings, MAX_FETCH)
    }

    fn fetch_within(
        &self,
        url: &str,
        refs: &[&str],
        settings: &[String],
        within: Duration,
    ) -> Result<(), GitError> {
        let fixed: Vec<String> = FETCH_SETTINGS.iter().map(|one| (*one).to_owned()).collect();
        let git = self.git().with(&fixed).with(settings);
        let mut words = vec![
            "fetch",
            "--quiet",
            "--prune",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--end-of-options",
            url,
        ];
        words.extend_from_slice(refs);
        git.transfer(&git.reach(url)?, &words, within)?;
        Ok(())
    }

    /// The branch that a server's HEAD names.
    pub fn default_branch_of(
        &self,
        url: &str,
        settings: &[String],
    ) -> Result<Option<String>, GitError> {
        let git = self.git().with(settings);
        let words = [
            "ls-remote",
            "--quiet",
            "--symref",
            "--end-of-options",
            url,
            "HEAD",
        ];
        let bytes = git.transfer(&git.reach(url)?, &words, MAX_QUESTION)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let line = text.lines().find_map(|line| {
            let name = line.strip_prefix("ref: refs/heads/")?;
            name.strip_suffix("\tHEAD")
        });
        Ok(line.map(str::to_owned))
    }

    /// Makes HEAD name this branch.
    pub fn set_head(&self, branch: &str) -> Result<(), GitError> {
        let name = format!("refs/heads/{branch}");
        self.git().run(&["check-ref-format", &name])?;
        self.git().run(&["symbolic-ref", "HEAD", &name])?;
        Ok(())
    }

    /// The branch that HEAD names.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        let name = self.git().text(&["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(name.strip_prefix("refs/heads/").map(str::to_owned))
    }

    /// The commit that a ref or an id names here, if any.
    pub fn commit(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        let found = self.git().commit(name)?;
        Ok(found.and_then(|id| CommitId::parse(&id).ok()))
    }

    pub fn set_ref(&self, name: &str, to: &CommitId) -> Result<(), GitError> {
        self.git().run(&["update-ref", name, to.as_str()])?;
        Ok(())
    }

    pub fn delete_ref(&self, name: &str) -> Result<(), GitError> {
        self.git().run(&["update-ref", "-d", name])?;
        Ok(())
    }

    /// The refs below a prefix, without it.
    pub fn refs_below(&self, prefix: &str) -> Result<Vec<String>, GitError> {
        let text = self
            .git()
            .text(&["for-each-ref", "--format=%(refname)", prefix])?;
        let names = text.lines().filter_map(|line| line.strip_prefix(prefix));
        Ok(names.map(str::to_owned).collect())
    }

    /// A new commit without files, on no branch.
    pub fn empty_commit(&self) -> Result<CommitId, GitError> {
        let who = ["user.name=tenure", "user.email=tenure@localhost"].map(str::to_owned);
        let tree = self.git().text(&["mktree"])?;
        let words = ["commit-tree", "-m", "Check", &tree];
        let id = self.git().with(&who).text(&words)?;
        CommitId::parse(&id).map_err(|_| GitError::Unexpected {
            command: "commit-tree".to_owned(),
        })
    }

    /// Pushes one commit to one branch of a server, which must have what was pushed last, or nothing.
    pub fn push(
        &self,
        url: &str,
        commit: &CommitId,
        branch: &str,
        last: Option<&CommitId>,
        settings: &[String],
    ) -> Result<PushResult, GitError> {
        let name = format!("refs/heads/{branch}");
        self.git().run(&["check-ref-format", &name])?;
        let lease = format!(
            "--force-with-lease={name}:{}",
            last.map_or("", CommitId::as_str)
        );
        let fixed: Vec<String> = PUSH_SETTINGS.iter().map(|one| (*one).to_owned()).collect();
        let git = self.git().with(&fixed).with(settings);
        let refs = format!("{commit}:{name}");
        let words = [
            "push",
            "--quiet",
            "--no-verify",
            "--no-follow-tags",
            "--no-signed",
            "--no-recurse-submodules",
            &lease,
            "--end-of-options",
            url,
            &refs,
        ];
        let output = git.reaching(&git.reach(url)?, &words)?;
        if output.status.success() {
            return Ok(PushResult::Done);
        }
        // Git has no exit code for it, and `--porcelain` prints the same words; `LC_ALL=C` keeps them.
        if String::from_utf8_lossy(&output.stderr).contains("(stale info)") {
            return Ok(PushResult::Moved);
        }
        Err(failure(&words, &output))
    }

    /// Whether a commit is in the history of another.
    pub fn is_ancestor(&self, first: &CommitId, of: &CommitId) -> Result<bool, GitError> {
        Ok(self.merge_base(first, of)?.as_ref() == Some(first))
    }

    /// The newest commit that two have in common, if there is one.
    pub fn merge_base(
        &self,
        one: &CommitId,
        other: &CommitId,
    ) -> Result<Option<CommitId>, GitError> {
        let words = ["merge-base", one.as_str(), other.as_str()];
        let output = self.git().reaching(&Reach::Local, &words)?;
        match output.status.code() {
            Some(0) => {
                let text = String::from_utf8_lossy(&output.stdout);
                Ok(CommitId::parse(text.trim()).ok())
            }
            Some(1) => Ok(None),
            _ => Err(failure(&words, &output)),
        }
    }

    /// The paths that differ between two commits, with what the second has there.
    pub fn differences(
        &self,
        from: Option<&CommitId>,
        to: &CommitId,
    ) -> Result<Vec<Difference>, GitError> {
        let empty = self.git().text(&["hash-object", "-t", "tree", "--stdin"])?;
        let from = from.map_or(empty.as_str(), CommitId::as_str);
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--end-of-options",
            from,
            to.as_str(),
        ];
        let bytes = self.git().run(&words)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut parts = text.split('\0');
        let mut found = Vec::new();
        while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
            let mut words = head.split(' ');
            let (mode, id) = (words.nth(1), words.nth(1));
            found.push(Difference {
                path: path.to_owned(),
                mode: mode.unwrap_or_default().to_owned(),
                id: id.unwrap_or_default().to_owned(),
            });
        }
        Ok(found)
    }

    /// A blob, unless it is longer.
    pub fn short_blob(&self, id: &str, longest: u64) -> Result<Option<Vec<u8>>, GitError> {
        let length = self.git().text(&["cat-file", "-s", id])?;
        if length
            .parse::<u64>()
            .map_or(true, |length| length > longest)
        {
            return Ok(None);
        }
        self.git().run(&["cat-file", "blob", id]).map(Some)
    }

    /// What differs between two commits, as a patch that `git apply` takes; none if it is longer.
    pub fn patch(
        &self,
        from: Option<&CommitId>,
        to: &CommitId,
        longest: usize,
        deadline: Instant,
    ) -> io::Result<Option<Vec<u8>>> {
        let tree = |commit: &CommitId| {
            let name = format!("{commit}^{{tree}}");
            self.git().text(&["rev-parse", "--verify", &name])
        };
        let empty = || self.git().text(&["hash-object", "-t", "tree", "--stdin"]);
        let from = from.map_or_else(empty, tree).map_err(io::Error::other)?;
        let to = tree(to).map_err(io::Error::other)?;
        // Two trees by its input, so that it is limited before it works.
        let words = [
            "diff-tree",
            "--stdin",
            "--patch",
            "--binary",
            "--full-index",
            "--no-ext-diff",
            "--no-textconv",
        ];
        let mut git = Piped::start(&mut self.git().command(&words), Input::Ours)?;
        git.limit(PackLimits::default().process)?;
        git.write_all(format!("{from} {to}\n").as_bytes(), deadline)?;
        git.close_input();
        let mut patch = Vec::new();
        let mut buffer = [0; 16 << 10];
        loop {
            match git.read(&mut buffer, deadline)? {
                0 => break,
                read => patch.extend_from_slice(&buffer[..read]),
            }
            if patch.len() > longest {
                return Ok(None);
            }
        }
        let ended = git.finish(deadline)?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.errors).into_owned();
            return Err(io::Error::other(said));
        }
        // The first line names the trees.
        let start = patch.iter().position(|byte| *byte == b'\n');
        Ok(Some(patch.split_off(start.map_or(0, |at| at + 1))))
    }

    /// Starts writing a pack with these commits and all that they need.
    pub fn give(&self, commits: &[&CommitId], deadline: Instant) -> io::Result<Piped> {
        let words = ["pack-objects", "--revs", "--stdout", "-q", "--threads=1"];
        let mut git = Piped::start(&mut self.git().command(&words), Input::Ours)?;
        for commit in commits {
            git.write_all(format!("{commit}\n").as_bytes(), deadline)?;
        }
        git.close_input();
        Ok(git)
    }

    /// Starts to take a pack in. `name` is one that nobody else uses at the same time.
    pub fn quarantine(&self, name: &str, limits: PackLimits) -> io::Result<Quarantine> {
        let dir = self.objects().join(format!("{INCOMING}{name}"));
        remove_all(&dir)?;
        file::make_dir(&dir)?;
        let quarantine = Quarantine {
            of: self.clone(),
            dir,
            limits,
        };
        file::make_dir(&quarantine.dir.join("info"))?;
        let line = format!("{}\n", self.objects().display());
        let alternates = quarantine.dir.join("info/alternates");
        file::write_private(&alternates, line.as_bytes())?;
        Ok(quarantine)
    }
}

/// The prefix of a quarantine's directory.
const INCOMING: &str = "incoming-";

/// Objects that came in and are not part of the repository yet. Dropped without [`Quarantine::release`], they are
/// removed.
#[derive(Debug)]
pub struct Quarantine {
    of: OwnRepository,
    dir: PathBuf,
    limits: PackLimits,
}

impl Quarantine {
    fn command(&self, words: &[&str]) -> Command {
        let settings: Vec<String> = LIMITED_SETTINGS
            .iter()
            .map(|one| (*one).to_owned())
            .collect();
        let mut command = self.of.git().with(&settings).command(words);
        command.env("GIT_OBJECT_DIRECTORY", &self.dir);
        command
    }

    /// Starts git with the limits; it waits for its input.
    fn limited(&self, words: &[&str]) -> io::Result<Piped> {
        let git = Piped::start(&mut self.command(words), Input::Ours)?;
        git.limit(self.limits.process)?;
        Ok(git)
    }

    /// Starts to read a pack.
    pub fn index(&self) -> io::Result<Piped> {
        let most = format!("--max-input-size={}", self.limits.bytes);
        let words = [
            "index-pack",
            "--stdin",
            "--fix-thin",
            "--strict",
            "--threads=1",
            &most,
        ];
        self.limited(&words)
    }

    /// Whether the id names a commit here.
    pub fn has_commit(&self, id: &CommitId, deadline: Instant) -> io::Result<bool> {
        let mut git = self.limited(&["cat-file", "--batch-check=%(objecttype)"])?;
        git.write_all(format!("{id}\n").as_bytes(), deadline)?;
        let ended = git.finish(deadline)?;
        Ok(ended.status.success() && ended.output == b"commit\n")
    }

    /// Checks that everything that a commit needs is here, or was before `known`.
    pub fn check_whole(
        &self,
        id: &CommitId,
        known: &CommitId,
        deadline: Instant,
    ) -> io::Result<ProcessOutput> {
        let words = [
            "rev-list",
            "--objects",
            "--quiet",
            "--stdin",
            "--not",
            "--all",
        ];
        let mut git = self.limited(&words)?;
        git.write_all(format!("{id}\n^{known}\n").as_bytes(), deadline)?;
        git.finish(deadline)
    }

    /// Makes the objects part of the repository.
    pub fn release(self) -> io::Result<()> {
        let (from, to) = (self.dir.join("pack"), self.of.objects().join("pack"));
        file::make_dirs(&to)?;
        let mut names = Vec::new();
        for entry in fs_err::read_dir(&from)? {
            names.push(entry?.file_name());
        }
        // A pack counts as soon as its index is there.
        names.sort_by_key(|name| name.to_string_lossy().ends_with(".idx"));
        for name in &names {
            fs_err::rename(from.join(name), to.join(name))?;
        }
        file::sync_dir(&to)
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        // What remains is removed by who uses the name next.
        drop(remove_all(&self.dir));
    }
}

fn remove_all(dir: &Path) -> io::Result<()> {
    match fs_err::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// As an ssh connection whose other end is gone.
    #[test]
    fn a_fetch_from_a_server_that_says_nothing_ends() {
        let dir = tempfile::tempdir().unwrap();
        let own = OwnRepository::open(&dir.path().join("base.git"), None).unwrap();
        // It accepts connections and never answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("git://{}/acme/web.git", silent.local_addr().unwrap());
        let refs = ["+refs/heads/*:refs/heads/*"];
        let fetched = own.fetch_within(&url, &refs, &[], Duration::from_millis(300));
        let why = fetched.unwrap_err().to_string();
        assert!(why.contains("did not finish within"), "{why}");
    }
}
