//! What the forge has and what agents made, in two bare repositories.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::commit::CommitId;
use tenure_core::id::RunId;
use tenure_host::digest;
use tenure_host::git_command::GitError;
use tenure_host::kernel_lock::{LockDir, LockError, LockName, Patience, Sharing};
use tenure_host::own_repository::OwnRepository;

/// Where they are, in the state directory.
const FOLDER: &str = "repositories";
/// Where results are, in their repository.
const RUNS: &str = "refs/runs/";
/// How long another run may take to fetch the same repository.
const PATIENCE: Patience = Patience::AtMost(Duration::from_secs(600));

/// The two repositories of a repository.
#[derive(Debug, Clone)]
pub struct Repositories {
    dir: PathBuf,
    base: OwnRepository,
    results: OwnRepository,
}

/// Where a repository is fetched from.
#[derive(Debug, Clone, Copy)]
pub struct RemoteSource<'a> {
    pub url: &'a str,
    /// Git settings for access: credentials, certificates.
    pub settings: &'a [String],
}

/// What the forge has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heads {
    /// The branch that others build on, with its name; none in an empty repository.
    pub base: Option<(String, CommitId)>,
    /// The head that was asked for; none if the forge does not have it.
    pub head: Option<CommitId>,
}

/// Why the repositories cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Repositories {
    /// Those of a repository, by its name with the host; made if missing.
    pub fn open(state: &Path, name: &str, locks: &LockDir) -> Result<Self, RepositoryError> {
        let dir = state.join(FOLDER).join(folder(name));
        let _locked = lock(&dir, locks)?;
        let base = OwnRepository::open(&dir.join("base.git"), None)?;
        let results = OwnRepository::open(&dir.join("results.git"), Some(&base))?;
        Ok(Self { dir, base, results })
    }

    /// All that were made, without making any.
    pub fn all(state: &Path) -> Vec<Self> {
        let Ok(entries) = fs_err::read_dir(state.join(FOLDER)) else {
            return Vec::new();
        };
        let found = entries.flatten().filter_map(|entry| {
            let dir = entry.path();
            let base = OwnRepository::existing(&dir.join("base.git"))?;
            let results = OwnRepository::existing(&dir.join("results.git"))?;
            Some(Self { dir, base, results })
        });
        found.collect()
    }

    /// What the forge has.
    pub fn base(&self) -> &OwnRepository {
        &self.base
    }

    /// What agents made. Its git also has the objects of [`Self::base`].
    pub fn results(&self) -> &OwnRepository {
        &self.results
    }

    /// The result of a run, if one was taken.
    pub fn result_of(&self, run: &RunId) -> Result<Option<CommitId>, GitError> {
        self.results.commit(&run_ref(run))
    }

    /// Keeps a commit as the result of a run.
    pub fn keep_result(&self, run: &RunId, commit: &CommitId) -> Result<(), GitError> {
        self.results.set_ref(&run_ref(run), commit)
    }

    /// Forgets the result of a run.
    pub fn forget(&self, run: &RunId) -> Result<(), GitError> {
        self.results.delete_ref(&run_ref(run))
    }

    /// The runs that have a result.
    pub fn runs(&self) -> Result<Vec<RunId>, GitError> {
        let names = self.results.refs_below(RUNS)?;
        Ok(names
            .iter()
            .filter_map(|name| RunId::parse(name).ok())
            .collect())
    }

    /// Fetches the branches, and the head of a pull request by its number or of a branch by its name.
    pub fn fetch(
        &self,
        from: RemoteSource<'_>,
        head: Option<&ExtraHead>,
        locks: &LockDir,
    ) -> Result<Heads, RepositoryError> {
        let _locked = lock(&self.dir, locks)?;
        let (base, settings) = (&self.base, from.settings);
        base.fetch(from.url, &["+refs/heads/*:refs/heads/*"], settings)?;
        if let Some(branch) = base.default_branch_of(from.url, settings)? {
            base.set_head(&branch)?;
        }
        let head = match head {
            Some(ExtraHead::Pull(number)) => self.fetch_pull(from, *number)?,
            Some(ExtraHead::Branch(name)) => base.commit(&format!("refs/heads/{name}"))?,
            None => None,
        };
        let branch = base.head_branch()?;
        let named = |branch: String| {
            let commit = base.commit(&format!("refs/heads/{branch}"))?;
            Ok::<_, GitError>(commit.map(|commit| (branch, commit)))
        };
        Ok(Heads {
            base: branch.map(named).transpose()?.flatten(),
            head,
        })
    }

    /// The head of a pull request, by the first name that the server has for it.
    fn fetch_pull(
        &self,
        from: RemoteSource<'_>,
        number: u64,
    ) -> Result<Option<CommitId>, GitError> {
        let names = || tenure_forges::pull_refs().map(|kind| format!("refs/{kind}/{number}/head"));
        // A pattern is no error where the server has no such ref; ours is removed then.
        let refs: Vec<String> = names().map(|name| format!("+{name}*:{name}*")).collect();
        let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
        self.base.fetch(from.url, &refs, from.settings)?;
        for name in names() {
            if let Some(head) = self.base.commit(&name)? {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }
}

/// A head to fetch besides the branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtraHead {
    Pull(u64),
    Branch(String),
}

pub(super) fn run_ref(run: &RunId) -> String {
    format!("{RUNS}{run}")
}

/// A folder that no two repositories share, whatever their names and the file system.
fn folder(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let readable: String = name.chars().map(plain).take(60).collect();
    format!("{readable}-{}", &digest::sha256(name.as_bytes())[..12])
}

/// Not passed on to git: what runs in a place could hold it.
fn lock(dir: &Path, locks: &LockDir) -> Result<tenure_host::kernel_lock::HeldLock, LockError> {
    let folder = dir.file_name().unwrap_or_default().to_string_lossy();
    let name = LockName::plain(&format!("{FOLDER}/{folder}"))?;
    locks.lock(&name, Sharing::Exclusive, PATIENCE)
}
