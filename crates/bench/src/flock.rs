//! A lock of ours, and what anybody does who calls `flock` without us: open the file, lock, unlock, close.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fs_err::File;
use tenure_host::kernel_lock::{HeldLock, LockDir, LockName, Patience, Sharing};

use crate::Failed;
use crate::worker::Contender;

/// The lock for which processes contend.
pub const LOCK: &str = "bench";

/// Whose lock it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Side {
    Ours,
    /// Nobody's: bare calls.
    Bare,
}

/// Takes our lock, and gives it back.
pub fn ours(locks: &LockDir, name: &LockName) -> Result<(), Failed> {
    locks
        .lock(name, Sharing::Exclusive, Patience::Endless)?
        .unlock();
    Ok(())
}

/// Opens, locks, unlocks, closes.
pub fn bare(path: &Path) -> Result<(), Failed> {
    let file = open(path)?;
    file.file().lock()?;
    file.file().unlock()?;
    Ok(())
}

fn open(path: &Path) -> Result<File, Failed> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    Ok(options.open(path)?)
}

/// Our lock, waited for as long as it takes.
#[derive(Debug)]
pub struct OurLock {
    locks: LockDir,
    held: Option<HeldLock>,
}

impl OurLock {
    /// A lock in this directory.
    pub fn new(locks: LockDir) -> Self {
        Self { locks, held: None }
    }
}

impl Contender for OurLock {
    fn claim(&mut self, key: &str) -> Result<bool, Failed> {
        let name = LockName::plain(key)?;
        let held = self
            .locks
            .lock(&name, Sharing::Exclusive, Patience::Endless)?;
        self.held = Some(held);
        Ok(true)
    }

    fn release(&mut self, _: &str) -> Result<(), Failed> {
        self.held.take().ok_or("it is not held")?.unlock();
        Ok(())
    }
}

/// The bare calls, waiting as long as it takes.
#[derive(Debug)]
pub struct BareLock {
    dir: PathBuf,
    held: Option<File>,
}

impl BareLock {
    /// A lock in this directory.
    pub fn new(dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { dir, held: None }
    }
}

impl Contender for BareLock {
    fn claim(&mut self, key: &str) -> Result<bool, Failed> {
        let file = open(&self.dir.join(key))?;
        file.file().lock()?;
        self.held = Some(file);
        Ok(true)
    }

    fn release(&mut self, _: &str) -> Result<(), Failed> {
        let file = self.held.take().ok_or("it is not held")?;
        Ok(file.file().unlock()?)
    }
}
