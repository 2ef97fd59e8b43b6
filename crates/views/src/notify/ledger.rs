//! What was sent, shared by every process that sends: a small file in the state directory, changed under a lock.
//!
//! *Crash*: the file is replaced as a whole. A damaged or missing one only means that something may be sent twice.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_host::kernel_lock::{LockDir, LockName, Patience, Sharing};
use tenure_host::{file, read};

use super::rule::Sent;

/// Longer than any ledger.
const MAX_LENGTH: u64 = 1 << 22;
/// What was sent, by channel.
const FILE: &str = "sent.json";
/// How long a process waits for another one to write.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was sent on each channel; nothing is locked or created.
pub fn sent(state: &Path) -> BTreeMap<String, Sent> {
    sent_in(&state.join("notify").join(FILE))
}

fn sent_in(path: &Path) -> BTreeMap<String, Sent> {
    let text = read::text(path, MAX_LENGTH).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The directory with the ledger and with what went wrong on each channel.
pub struct Ledger {
    locks: LockDir,
}

impl Ledger {
    pub fn open(state: &Path) -> io::Result<Self> {
        let locks = LockDir::open(&state.join("notify"))?;
        Ok(Self { locks })
    }

    /// Changes what was sent on a channel.
    pub fn change<T>(&self, channel: &str, act: impl FnOnce(&mut Sent) -> T) -> io::Result<T> {
        let name = LockName::plain("ledger").map_err(io::Error::other)?;
        let patience = Patience::AtMost(PATIENCE);
        let held = self.locks.lock(&name, Sharing::Exclusive, patience);
        let held = held.map_err(io::Error::other)?;
        let path = self.locks.path().join(FILE);
        let mut all = sent_in(&path);
        let done = act(all.entry(channel.to_owned()).or_default());
        file::write_atomic(&path, &serde_json::to_vec(&all)?)?;
        held.unlock();
        Ok(done)
    }

    fn fault(&self, channel: &str) -> PathBuf {
        self.locks.path().join(format!("{channel}.failed"))
    }

    /// Keeps why a channel failed, for `tenure status`, until it works again.
    pub fn note(&self, channel: &str, outcome: &Result<(), String>) -> io::Result<()> {
        let path = self.fault(channel);
        match outcome {
            Ok(()) => match fs_err::remove_file(&path) {
                Err(error) if !read::is_absent(&error) => Err(error),
                _ => Ok(()),
            },
            Err(why) => file::write_private(&path, why.as_bytes()),
        }
    }
}
