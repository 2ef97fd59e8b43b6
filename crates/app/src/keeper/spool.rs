//! What sessions of this state directory gave up: one file per store, appended to before anything is sent.
//!
//! It has two uses. While the store is away, a release waits here and is brought to the store by the next command that
//! reaches it. And what is here is never permitted from memory, because the list in memory may be older than the
//! release. So a line stays until the store has it *and* a renewal that began later has replaced the list.
//!
//! A line is added under a lock, whole or not at all. *Crash* after it was added and before it was sent: the next command
//! brings it; a line that does not say which epoch was never answered to anybody, so it is only not permitted from
//! memory. *Full disk*: the release fails, and nothing was given up. *Clock jump*: times are on the boot clock; lines of
//! another boot are sent, and were never permitted from memory. *Older version*: a line that cannot be read stays as it
//! is.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use serde::{Deserialize, Serialize};
use tenure_core::id::{Epoch, Life, SessionId, SessionToken};
use tenure_core::keeper::BootTime;
use tenure_core::key::Key;
use tenure_core::process::{BootId, Process};
use tenure_core::store::Lock;
use tenure_host::kernel_lock::{HeldLock, LockDir, LockName, Patience, Sharing};
use tenure_host::{clock, file, pidfd, read};
use tenure_service::{AgentEvent, GivenUp};

/// Longer than any file of ours.
const MAX_LENGTH: u64 = 64 << 20;
/// How long a command waits for another one that writes.
const WAITS: Duration = Duration::from_secs(5);

/// One thing that was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolLine {
    /// Tells lines apart.
    id: String,
    what: What,
    session: Option<String>,
    life: Option<u32>,
    key: Option<String>,
    epoch: Option<u64>,
    boot: BootId,
    /// What the agent reported, if it is an end that a hook could not bring.
    event: Option<Box<AgentEvent>>,
    /// The command that wrote it, while it does not say which epoch.
    by: Option<Process>,
    /// When the store had it, on the boot clock; none until then.
    sent: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Release,
    Done,
    End,
}

impl SpoolLine {
    /// A release whose session and epoch are known, or not yet.
    pub fn release(
        key: &Key,
        done: bool,
        known: Option<(SessionToken, Epoch)>,
        boot: &BootId,
    ) -> Self {
        Self {
            id: String::new(),
            what: if done { What::Done } else { What::Release },
            session: known.map(|(token, _)| token.id.to_string()),
            life: known.map(|(token, _)| token.life.0),
            key: Some(key.to_string()),
            epoch: known.map(|(_, epoch)| epoch.0),
            boot: boot.clone(),
            event: None,
            by: None,
            sent: None,
        }
    }

    pub fn end(session: Option<SessionToken>, boot: &BootId) -> Self {
        Self {
            id: String::new(),
            what: What::End,
            session: session.map(|token| token.id.to_string()),
            life: session.map(|token| token.life.0),
            key: None,
            epoch: None,
            boot: boot.clone(),
            event: None,
            by: None,
            sent: None,
        }
    }

    /// An end that an agent reported; its session may not be known here yet.
    pub fn ended(session: Option<SessionToken>, event: &AgentEvent, boot: &BootId) -> Self {
        Self {
            event: Some(Box::new(event.clone())),
            ..Self::end(session, boot)
        }
    }

    /// The same, written by a command that will add the rest.
    #[must_use]
    pub fn by(self, process: Option<Process>) -> Self {
        Self {
            by: process,
            ..self
        }
    }

    /// Whether the command that wrote it is gone and cannot add the rest.
    pub fn is_abandoned(&self, boot: &BootId) -> bool {
        self.boot != *boot || self.by.as_ref().is_none_or(pidfd::is_gone)
    }

    fn token(&self) -> Option<SessionToken> {
        Some(SessionToken {
            id: SessionId::parse(self.session.as_deref()?).ok()?,
            life: Life(self.life?),
        })
    }

    /// What the store is told; none if the line does not say enough.
    pub fn given_up(&self) -> Option<GivenUp> {
        let session = self.token();
        if let Some(event) = self.event.clone() {
            return Some(GivenUp::Ended { session, event });
        }
        let session = session?;
        match self.what {
            What::End => Some(GivenUp::Session(session)),
            What::Release | What::Done => Some(GivenUp::Claim {
                session,
                key: Key::stored(self.key.as_deref()?).ok()?,
                epoch: Epoch(self.epoch?),
                done: self.what == What::Done,
            }),
        }
    }

    /// Whether it gives up this claim. What it does not say may be anything.
    fn covers(&self, holder: SessionToken, key: &Key, epoch: Epoch) -> bool {
        if self.event.is_some() && self.session.is_none() {
            // Its session is in no list.
            return false;
        }
        let same_session = self
            .session
            .as_deref()
            .is_none_or(|id| id == holder.id.to_string())
            && self.life.is_none_or(|life| life == holder.life.0);
        let same_key = self.key.as_deref().is_none_or(|held| held == key.as_str());
        let same_epoch = self.epoch.is_none_or(|held| held == epoch.0);
        same_session && same_key && same_epoch
    }

    /// Whether it changes what this lock protects.
    pub fn is_about(&self, lock: &Lock) -> bool {
        match lock {
            Lock::Key(key) => self.key.as_deref() == Some(key.as_str()),
            Lock::Session(id) => self.session.as_deref() == Some(id.to_string().as_str()),
            _ => false,
        }
    }

    /// Whether it says that this session has ended.
    pub fn ends(&self, id: SessionId) -> bool {
        self.what == What::End && self.is_about(&Lock::Session(id))
    }

    fn is_waiting(&self) -> bool {
        self.sent.is_none()
    }

    /// Whether the store has had it since before then.
    fn is_over(&self, before: BootTime, boot: &BootId) -> bool {
        self.sent
            .is_some_and(|sent| self.boot != *boot || Duration::from_millis(sent) < before.0)
    }
}

/// What is known of a line once the store has it.
#[derive(Debug, Clone, Default)]
pub struct Learnt {
    pub session: Option<String>,
    pub epoch: Option<Epoch>,
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SpoolEntry {
    Line(Box<SpoolLine>),
    /// Of another version.
    Other(Vec<u8>),
}

/// The spool of a store.
#[derive(Debug, Clone)]
pub struct Spool {
    path: PathBuf,
    locks: PathBuf,
    name: String,
}

impl Spool {
    pub fn at(path: PathBuf, locks: &Path, name: String) -> Self {
        Self {
            path,
            locks: locks.to_owned(),
            name,
        }
    }

    fn lock(&self) -> io::Result<HeldLock> {
        let name = LockName::plain(&self.name).map_err(io::Error::other)?;
        let locks = LockDir::open(&self.locks)?;
        let lock = locks.lock(&name, Sharing::Exclusive, Patience::AtMost(WAITS));
        lock.map_err(io::Error::other)
    }

    /// Whether there is nothing in it; one look at the file.
    pub fn is_empty(&self) -> bool {
        fs_err::symlink_metadata(&self.path).map_or(true, |found| found.len() == 0)
    }

    fn entries(&self) -> Vec<SpoolEntry> {
        let text = read::whole(&self.path, MAX_LENGTH).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        let entry = |line: &[u8]| match serde_json::from_slice(line) {
            Ok(line) => SpoolEntry::Line(line),
            Err(_) => SpoolEntry::Other(line.to_vec()),
        };
        lines.filter(|line| !line.is_empty()).map(entry).collect()
    }

    fn lines(&self) -> Vec<SpoolLine> {
        let line = |entry| match entry {
            SpoolEntry::Line(line) => Some(*line),
            SpoolEntry::Other(_) => None,
        };
        self.entries().into_iter().filter_map(line).collect()
    }

    /// Whether a session gave a claim up since the list in memory was made.
    pub fn has_given_up(&self, holder: SessionToken, key: &Key, epoch: Epoch) -> bool {
        let lines = self.lines();
        lines.iter().any(|line| line.covers(holder, key, epoch))
    }

    /// Adds a line; returns its name.
    pub fn add(&self, mut line: SpoolLine, name: String) -> io::Result<String> {
        let _lock = self.lock()?;
        line.id = name;
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let file = fs_err::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)?;
        let before = file.metadata()?.len();
        // What is about to be sent need not outlive this boot: nothing is permitted from a list of an earlier one.
        let written = (&file).write_all(&text).and_then(|()| match &line.by {
            Some(_) => Ok(()),
            None => file.sync_data(),
        });
        if let Err(error) = written {
            // Half a line must not spoil the next one.
            file.set_len(before)?;
            return Err(error);
        }
        Ok(line.id)
    }

    /// Changes the lines, or removes them.
    fn change(&self, mut keep: impl FnMut(&mut SpoolLine) -> bool) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut entries = self.entries();
        let before = entries.clone();
        entries.retain_mut(|entry| match entry {
            SpoolEntry::Line(line) => keep(line),
            SpoolEntry::Other(_) => true,
        });
        if entries == before {
            return Ok(());
        }
        let mut text = Vec::new();
        for entry in &entries {
            match entry {
                SpoolEntry::Line(line) => serde_json::to_writer(&mut text, line)?,
                SpoolEntry::Other(bytes) => text.extend(bytes),
            }
            text.push(b'\n');
        }
        file::write_atomic(&self.path, &text)
    }

    /// Notes that the store has what a line says, and what was learnt with that.
    pub fn sent(&self, name: &str, learnt: &Learnt) -> io::Result<()> {
        let now = u64::try_from(clock::since_boot().0.as_millis()).unwrap_or(u64::MAX);
        self.change(|line| {
            if line.id == name {
                line.sent = Some(now);
                line.epoch = learnt.epoch.map(|epoch| epoch.0).or(line.epoch);
                line.session = learnt.session.clone().or(line.session.take());
            }
            true
        })
    }

    /// Removes a line that gave up nothing after all.
    pub fn take_back(&self, name: &str) -> io::Result<()> {
        self.change(|line| line.id != name)
    }

    /// Removes what the store has had since before then: every list that is still good began later.
    pub fn prune(&self, before: BootTime, boot: &BootId) -> io::Result<()> {
        let mut lines = self.lines().into_iter();
        if !lines.any(|line| line.is_over(before, boot)) {
            return Ok(());
        }
        self.change(|line| !line.is_over(before, boot))
    }

    /// The lines that the store does not have yet.
    pub fn waiting(&self) -> Vec<(String, SpoolLine)> {
        if self.is_empty() {
            return Vec::new();
        }
        let lines = self.lines().into_iter().filter(SpoolLine::is_waiting);
        lines.map(|line| (line.id.clone(), line)).collect()
    }
}
