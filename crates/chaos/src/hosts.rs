//! The hosts of a run on a server: each has its own state directory, and so its own id and its own keeper, and its own
//! link to the server. A worker of one host cannot see the processes of the other: it judges by what the keeper there
//! reports, and by leases.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_app::keeper::{self, KeeperStop};

/// Their names.
pub const NAMES: [&str; 2] = ["a", "b"];

/// How long a host, or a session that nobody watches, counts as alive after it was last heard of.
pub const LEASE: Duration = Duration::from_millis(1_600);
/// The setting; on a shared store twice this counts.
const LOCK_DELAY: Duration = Duration::from_millis(200);

/// How often a keeper is asked to end.
const ASKED: usize = 5;

/// What the checks have to know of these times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    pub lease: u64,
    pub delay: u64,
}

impl Terms {
    pub fn of_run() -> Self {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self {
            lease: nanos(LEASE),
            delay: nanos(LOCK_DELAY * 2),
        }
    }

    /// How long after a call that the store answered its session certainly keeps what it holds: a call renews the lease
    /// only if a quarter of it has passed.
    pub fn surely(&self) -> u64 {
        self.lease / 4 * 3 + self.delay
    }

    /// How long after its last sign of life nothing of a host is held any more.
    pub fn at_most(&self) -> u64 {
        self.lease + self.delay
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    pub name: &'static str,
    /// Its state directory.
    pub dir: PathBuf,
    /// The URL of the store, over its own link.
    pub store: String,
}

impl Host {
    /// The hosts of a run, one for each link.
    pub fn all(dir: &Path, links: &[String]) -> Vec<Self> {
        let hosts = NAMES.iter().zip(links);
        hosts
            .filter_map(|(name, store)| Self::named(name, dir, store.clone()))
            .collect()
    }

    /// One of the hosts of the run in this directory.
    pub fn named(name: &str, dir: &Path, store: String) -> Option<Self> {
        let name = *NAMES.iter().find(|one| **one == name)?;
        let dir = dir.join(format!("host-{name}"));
        Some(Self { name, dir, store })
    }

    /// The settings of a process on it.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let millis = |span: Duration| format!("{}ms", span.as_millis());
        let dir = self.dir.display().to_string();
        vec![
            ("HOME", dir.clone()),
            ("TENURE_HOME", dir),
            ("TENURE_STORE", self.store.clone()),
            ("TENURE_HOST_LEASE", millis(LEASE)),
            ("TENURE_LOCK_DELAY", millis(LOCK_DELAY)),
            ("TENURE_KEEPER_START", "true".to_owned()),
        ]
    }

    /// Ends its keeper; what went wrong, if anything did.
    pub fn rest(&self) -> Option<String> {
        let mut why = None;
        // One that ends by itself in the same moment answers nothing.
        for _ in 0..ASKED {
            match keeper::stop_at(&self.store, &self.dir) {
                Ok(KeeperStop::Ended | KeeperStop::NotRunning) => return None,
                Err(problem) => why = Some(problem.message),
            }
        }
        why.map(|why| format!("the keeper of host {} did not end: {why}", self.name))
    }

    /// When its keeper's last renewal began that the store answered, on the boot clock.
    pub fn renewal_began(&self) -> Option<Duration> {
        #[derive(Deserialize)]
        struct StoredMemory {
            began: u64,
        }
        let files = std::fs::read_dir(self.dir.join("keeper")).ok()?;
        let mut paths = files.flatten().map(|entry| entry.path());
        let path = paths.find(|path| path.extension().is_some_and(|end| end == "memory"))?;
        let text = std::fs::read(path).ok()?;
        let memory: StoredMemory = serde_json::from_slice(&text).ok()?;
        Some(Duration::from_millis(memory.began))
    }

    pub fn make(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().mode(0o700).create(&self.dir)
    }
}
