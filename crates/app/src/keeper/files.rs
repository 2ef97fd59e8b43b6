//! The files of a keeper in the state directory.

use std::io;
use std::path::{Path, PathBuf};

use tenure_core::process::Observer;
use tenure_host::digest::sha256;
use tenure_host::file;
use tenure_host::kernel_lock::{LockDir, LockError, LockName, Sharing};

use super::spool::Spool;

/// How much of a digest tells stores apart.
const DIGITS: usize = 12;

/// Where a keeper's lock, socket and log are. Their name tells user, pid namespace and store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeeperFiles {
    dir: PathBuf,
    name: String,
    /// Names the user and the store alone.
    store: String,
}

impl KeeperFiles {
    /// The files of the keeper for a store, in a state directory.
    pub fn of(state: &Path, store: &str, observer: &Observer) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let digest = sha256(store.as_bytes());
        let digest = &digest[..DIGITS.min(digest.len())];
        Self {
            dir: state.join("keeper"),
            name: format!("{uid}-{}-{digest}", observer.pid_ns),
            store: format!("{uid}-{digest}"),
        }
    }

    /// Makes the directory if it is missing.
    pub fn make(&self) -> io::Result<()> {
        file::make_dir(&self.dir).map(drop)
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join(format!("{}.sock", self.name))
    }

    /// There while a parent is asked to start no further keeper.
    pub fn stop_mark(&self) -> PathBuf {
        self.dir.join(format!("{}.stop", self.name))
    }

    /// Whether somebody holds the lock.
    pub fn is_held(&self) -> bool {
        let tried = self.locks().ok().zip(self.lock_name().ok());
        tried.is_some_and(|(locks, name)| {
            let free = locks.try_lock(&name, Sharing::Exclusive);
            matches!(free, Err(LockError::Held { .. }))
        })
    }

    /// Whether the directory is still there.
    pub fn exist(&self) -> bool {
        self.dir.exists()
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.name))
    }

    /// The files of the keeper in another pid namespace.
    pub fn in_namespace(state: &Path, store: &str, observer: &Observer, pid_ns: u64) -> Self {
        let observer = Observer {
            pid_ns,
            ..observer.clone()
        };
        Self::of(state, store, &observer)
    }

    /// The boots in which this machine is known to be the host that its id names.
    pub fn boots(&self) -> PathBuf {
        self.dir.join("boots")
    }

    /// The generation of what it has recorded. The notes of hooks lie beside it.
    pub fn generation(&self) -> PathBuf {
        self.dir.join(format!("{}.generation", self.name))
    }

    /// What the store said last.
    pub fn memory(&self) -> PathBuf {
        self.dir.join(format!("{}.memory", self.name))
    }

    /// The same of all pid namespaces.
    pub fn memories(&self) -> Vec<PathBuf> {
        let Some((uid, digest)) = self.store.split_once('-') else {
            return Vec::new();
        };
        let (first, last) = (format!("{uid}-"), format!("-{digest}.memory"));
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&first) && name.ends_with(&last)
        };
        let all = fs_err::read_dir(&self.dir).into_iter().flatten().flatten();
        all.map(|entry| entry.path()).filter(is_one).collect()
    }

    /// What was given up, in whichever pid namespace.
    pub fn spool(&self) -> Spool {
        let path = self.dir.join(format!("{}.spool", self.store));
        Spool::at(path, &self.dir, format!("{}-spool", self.store))
    }

    pub fn locks(&self) -> io::Result<LockDir> {
        LockDir::open(&self.dir)
    }

    pub fn lock_name(&self) -> io::Result<LockName> {
        LockName::plain(&self.name).map_err(io::Error::other)
    }
}
