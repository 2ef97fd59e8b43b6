//! Locks that the kernel holds.
//!
//! A lock is a `flock` on an open file. The kernel holds it for every process that has the descriptor and
//! releases it with the last one, so the lock is released the moment its holder dies. There is no stale timer,
//! no pid file and nothing to clean up. The content of the file, and of files next to it, is for people and
//! decides nothing.
//!
//! *Name*: one lock has one file, however it is spelled: a plain name is checked and used as it is, a path is
//! made canonical first. *The file itself*: after locking, the file must not have been removed, and after a wait
//! it must still be the one at its path, else it is locked again; unused lock files may therefore be removed at
//! any time. *In one process*: `flock` would let a process wait for itself forever. Every lock that this process
//! holds is in a registry with the source location that took it. A second acquisition without the handle is an
//! error that names that location, even if the handle was leaked. A handle can be shared ([`HeldLock::again`]).
//! *Inherited*: a process that was started under a lock has its descriptor; acquiring the same lock is an
//! immediate error, never a wait for itself. *Fairness*: waiters block in the kernel, which wakes them in order
//! of arrival; a newcomer at that moment may still be first. None of 32 starves.
//!
//! ```
//! use std::time::Duration;
//! use tenure_host::kernel_lock::{LockDir, LockName, Patience, Sharing};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! let locks = LockDir::open(&scratch.path().join("locks"))?;
//! let name = LockName::plain("nightly")?;
//! let held = locks.lock(&name, Sharing::Exclusive, Patience::AtMost(Duration::from_secs(10)))?;
//! // … the protected section …
//! held.unlock();
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tenure_core::ignore::Ignore;

use fs_err::os::unix::fs::OpenOptionsExt;

use crate::digest::sha256;
use crate::file;
use crate::lock_wait::{FileId, Passing, block, block_within};
use crate::path_error::refused;
use crate::system;

pub use crate::lock_wait::Sharing;

/// The name of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockName {
    shown: String,
    file: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("lock name {name:?} is not valid: {why}")]
    Name {
        name: String,
        /// The rule that the name breaks.
        why: &'static str,
    },
    #[error("the lock {name} is held")]
    Held { name: String },
    #[error(
        "the lock {name} is already held by this process, which took it at {place}; waiting would never end"
    )]
    HeldHere {
        name: String,
        /// The source location that took it.
        place: String,
    },
    /// An ancestor of this process holds it and passed it on.
    #[error(
        "the lock {name} is already held by the command that runs this process; waiting would never end"
    )]
    Nested { name: String },
    #[error("cannot use the lock {name}: {why}")]
    Unusable { name: String, why: io::Error },
}

/// How long to wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    None,
    AtMost(Duration),
    Endless,
}

impl LockName {
    pub const MAX_LENGTH: usize = 200;

    /// A name chosen by people: letters, digits and `. _ - + @ =`, also `/` between such parts.
    pub fn plain(name: &str) -> Result<Self, LockError> {
        let bad = |why| {
            Err(LockError::Name {
                name: clip(name),
                why,
            })
        };
        if name.is_empty() {
            return bad("it is empty");
        }
        if name.len() > Self::MAX_LENGTH {
            return bad("it is longer than 200 bytes");
        }
        if name.starts_with('/') {
            return bad("it is a path; use --path to lock a file");
        }
        let plain = |b: u8| {
            b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+' | b'@' | b'=' | b':')
        };
        let part_ok = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
        if !name.split('/').all(part_ok) {
            return bad(
                "expected letters, digits and . _ - + @ = : in parts separated by single slashes",
            );
        }
        Ok(Self {
            shown: name.to_owned(),
            file: format!("n-{}", name.replace('/', "%")),
        })
    }

    /// The lock of a file or directory, however it is spelled. The file itself need not exist.
    pub fn of_path(path: &Path) -> Result<Self, LockError> {
        let shown = path.display().to_string();
        let unusable = |why| LockError::Unusable {
            name: clip(&shown),
            why,
        };
        let whole = canonical(path).map_err(unusable)?;
        let bytes = whole.as_os_str().as_encoded_bytes();
        Ok(Self {
            shown: whole.display().to_string(),
            file: format!("p-{}", sha256(bytes)),
        })
    }

    /// The name for people.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The name of its file.
    pub fn file(&self) -> &str {
        &self.file
    }
}

/// The canonical directory, with the last part unchanged, because that need not exist.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    if let Ok(whole) = fs_err::canonicalize(path) {
        return Ok(whole);
    }
    file::from_anywhere(path)
}

/// One spelling for one file: an absolute path without symbolic links and `..`, whether or not it exists; any other
/// path whose directory exists is made canonical.
pub fn one_spelling(path: &str) -> String {
    let typed = Path::new(path);
    let found = if typed.is_absolute() {
        file::resolve(typed)
    } else {
        canonical(typed).ok()
    };
    found.map_or_else(
        || path.to_owned(),
        |whole| whole.to_string_lossy().into_owned(),
    )
}

fn clip(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The directory of a state directory's lock files.
#[derive(Debug, Clone)]
pub struct LockDir {
    path: PathBuf,
}

/// A lock that this process holds.
#[derive(Debug, Clone, Copy)]
struct HeldHere {
    place: &'static Location<'static>,
    sharing: Sharing,
    handles: usize,
}

/// Locks that this process holds, each with the location that took it first.
static HELD_HERE: LazyLock<Mutex<HashMap<FileId, HeldHere>>> = LazyLock::new(Mutex::default);

impl LockDir {
    /// Opens the directory; creates it with mode 0700 if it is missing.
    pub fn open(path: &Path) -> io::Result<Self> {
        file::make_dir(path)?;
        if !fs_err::symlink_metadata(path)?.is_dir() {
            let why = "it must be a directory, not a link or a file";
            return Err(refused("use", path, why));
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file_of(&self, name: &LockName) -> PathBuf {
        self.path.join(&name.file)
    }

    /// Takes a lock, waiting as long as `patience` allows.
    #[track_caller]
    pub fn lock(
        &self,
        name: &LockName,
        sharing: Sharing,
        patience: Patience,
    ) -> Result<HeldLock, LockError> {
        let place = Location::caller();
        let path = self.file_of(name);
        let unusable = |why| LockError::Unusable {
            name: name.shown.clone(),
            why,
        };
        loop {
            let file = open_lock_file(&path).map_err(unusable)?;
            // Most locks are free. Which file it is, is asked once: after it is locked, or before it is waited for.
            let (file, id) = match try_flock(&file, sharing) {
                Ok(()) => {
                    let found = look_at(&file, &path).map_err(unusable)?;
                    if found.st_nlink == 0 {
                        continue;
                    }
                    (file, id_of(&found))
                }
                Err(TryLockError::Error(error)) => return Err(unusable(error)),
                Err(TryLockError::WouldBlock) => {
                    let id = id_of(&look_at(&file, &path).map_err(unusable)?);
                    refuse_own(id, sharing, name)?;
                    let file = take(file, id, sharing, patience, name)?;
                    if !is_still_there(&path, id) {
                        continue;
                    }
                    (file, id)
                }
            };
            note_held(id, place, sharing);
            return Ok(HeldLock {
                inner: Arc::new(Inner {
                    file,
                    id,
                    name: name.shown.clone(),
                    passed_on: AtomicBool::new(false),
                }),
            });
        }
    }

    /// Takes a lock if it is free now.
    #[track_caller]
    pub fn try_lock(&self, name: &LockName, sharing: Sharing) -> Result<HeldLock, LockError> {
        self.lock(name, sharing, Patience::None)
    }
}

fn registry() -> std::sync::MutexGuard<'static, HashMap<FileId, HeldHere>> {
    HELD_HERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records a lock that was just taken. A handle of this process that is being dropped may still be recorded.
fn note_held(id: FileId, place: &'static Location<'static>, sharing: Sharing) {
    let mut held_here = registry();
    let entry = held_here.entry(id).or_insert(HeldHere {
        place,
        sharing,
        handles: 0,
    });
    entry.handles += 1;
    if sharing == Sharing::Exclusive || entry.sharing != sharing {
        (entry.place, entry.sharing) = (place, sharing);
    }
}

fn open_lock_file(path: &Path) -> io::Result<File> {
    let opened = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(file::flags(rustix::fs::OFlags::NOFOLLOW))
        .open(path);
    opened.map(fs_err::File::into_file)
}

/// What an opened lock file is; refuses what cannot be one.
fn look_at(file: &File, path: &Path) -> io::Result<rustix::fs::Stat> {
    // The calls of rustix, because those of the standard library ask for more and take longer.
    let found = rustix::fs::fstat(file)?;
    if !rustix::fs::FileType::from_raw_mode(found.st_mode).is_file() {
        return Err(refused("use", path, "it must be a regular file"));
    }
    if found.st_size == 0 && found.st_mode & 0o600 != 0o600 {
        rustix::fs::fchmod(file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    }
    Ok(found)
}

fn id_of(found: &rustix::fs::Stat) -> FileId {
    system::file_id(found)
}

fn is_still_there(path: &Path, id: FileId) -> bool {
    rustix::fs::lstat(path).is_ok_and(|found| id_of(&found) == id)
}

/// Refuses to wait for a handle of this process.
fn refuse_own(id: FileId, sharing: Sharing, name: &LockName) -> Result<(), LockError> {
    let both_share =
        |held: &HeldHere| held.sharing == Sharing::Shared && sharing == Sharing::Shared;
    if let Some(held) = registry().get(&id).filter(|held| !both_share(held)) {
        return Err(LockError::HeldHere {
            name: name.shown.clone(),
            place: held.place.to_string(),
        });
    }
    Ok(())
}

/// Whether we inherited a descriptor of this file that holds its lock. What we opened ourselves is closed on
/// exec; a command that outlived its lock has the descriptor, but no lock any more.
///
/// A contender checks this at each attempt, so all descriptors are read only once: a process cannot inherit a
/// descriptor after its start.
fn inherited(id: FileId) -> bool {
    static AT_FIRST: OnceLock<Vec<FileId>> = OnceLock::new();
    let at_first = match AT_FIRST.get() {
        Some(at_first) => at_first,
        None => {
            let Ok(open) = descriptors() else {
                // Where they cannot be listed, inherited descriptors are invisible.
                return false;
            };
            let may_be_passed_on = |descriptor: RawFd| {
                let closes = system::own_descriptor(descriptor).and_then(|one| one.closes_on_exec);
                closes != Some(true)
            };
            AT_FIRST.get_or_init(|| {
                open.filter(|(descriptor, _)| may_be_passed_on(*descriptor))
                    .map(|(_, id)| id)
                    .collect()
            })
        }
    };
    let is_passed_on =
        |(descriptor, found): (RawFd, FileId)| found == id && is_passed_on(descriptor);
    at_first.contains(&id) && descriptors().is_ok_and(|mut open| open.any(is_passed_on))
}

/// The open descriptors of this process, and their files.
fn descriptors() -> io::Result<impl Iterator<Item = (RawFd, FileId)>> {
    let open = system::own_descriptors()?;
    Ok(open.filter_map(|descriptor| Some((descriptor, system::file_of(descriptor)?))))
}

fn is_passed_on(descriptor: RawFd) -> bool {
    let found = system::own_descriptor(descriptor);
    found.is_some_and(|one| one.holds_lock && one.closes_on_exec == Some(false))
}

fn try_flock(file: &File, sharing: Sharing) -> Result<(), TryLockError> {
    match sharing {
        Sharing::Exclusive => file.try_lock(),
        Sharing::Shared => file.try_lock_shared(),
    }
}

/// One attempt. A waiter of this process that gave up earlier and gets the lock just now does not count as a
/// holder.
fn try_now(file: &File, id: FileId, sharing: Sharing) -> Result<(), TryLockError> {
    loop {
        let passing = Passing::of(id);
        let tried = try_flock(file, sharing);
        if matches!(tried, Err(TryLockError::WouldBlock)) && passing.is_the_holder() {
            std::thread::yield_now();
            continue;
        }
        return tried;
    }
}

fn take(
    file: File,
    id: FileId,
    sharing: Sharing,
    patience: Patience,
    name: &LockName,
) -> Result<File, LockError> {
    let held = || LockError::Held {
        name: name.shown.clone(),
    };
    let unusable = |why| LockError::Unusable {
        name: name.shown.clone(),
        why,
    };
    match (try_now(&file, id, sharing), patience) {
        (Ok(()), _) => Ok(file),
        (Err(TryLockError::Error(error)), _) => Err(unusable(error)),
        // Only a held lock can be an inherited one.
        (Err(TryLockError::WouldBlock), _) if inherited(id) => Err(LockError::Nested {
            name: name.shown.clone(),
        }),
        (Err(TryLockError::WouldBlock), Patience::None) => Err(held()),
        (Err(TryLockError::WouldBlock), Patience::Endless) => {
            block(&file, sharing).map_err(unusable)?;
            Ok(file)
        }
        (Err(TryLockError::WouldBlock), Patience::AtMost(limit)) => {
            block_within(file, id, sharing, limit)
                .map_err(unusable)?
                .ok_or_else(held)
        }
    }
}

/// A held lock. Dropping the last handle releases it.
#[derive(Debug)]
pub struct HeldLock {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    id: FileId,
    name: String,
    passed_on: AtomicBool,
}

impl HeldLock {
    /// The same lock again, for a part of the section that needs it too.
    #[must_use]
    pub fn again(&self) -> HeldLock {
        HeldLock {
            inner: Arc::clone(&self.inner),
        }
    }

    /// Releases the lock: now, if this is the last handle.
    pub fn unlock(self) {
        drop(self);
    }

    /// Releases the lock although others, such as a daemon that a command left running, still have
    /// its descriptor.
    pub fn unlock_for_all(self) -> io::Result<()> {
        self.inner.file.unlock()
    }

    /// Lets children inherit the descriptor, and the lock with it.
    pub fn pass_on(&self) -> io::Result<()> {
        rustix::io::fcntl_setfd(&self.inner.file, rustix::io::FdFlags::empty())?;
        self.inner.passed_on.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }
}

impl AsFd for HeldLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.file.as_fd()
    }
}

/// Unlocks explicitly: a program that another thread is just starting has a copy of every descriptor until it
/// executes, and closing only ours would leave the lock with it. A descriptor that was passed on deliberately
/// stays locked.
impl Drop for Inner {
    fn drop(&mut self) {
        if !self.passed_on.load(Ordering::Relaxed) {
            self.file
                .unlock()
                .ignore("closing it, which comes next, releases it as well");
        }
        let mut held_here = registry();
        if let Some(entry) = held_here.get_mut(&self.id) {
            entry.handles -= 1;
            if entry.handles == 0 {
                held_here.remove(&self.id);
            }
        }
    }
}
