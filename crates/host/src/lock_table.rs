//! What is known about locks, for people: who holds each, since when, how many wait.
//!
//! Only the kernel knows whether a lock is held. Its answer is read in two places, because neither
//! is enough:
//! - /proc/locks has holders and waiters by inode. The kernel returns it in pieces of at most one
//!   page (about 80 locks), however large the buffer is. One piece is a consistent snapshot. The
//!   next one continues at an index, not at a lock, so a lock can fall between two pieces while
//!   others are released: one reading in a thousand misses it on a busy machine. Inside a pid
//!   namespace the table also omits every lock whose taker has exited, although a child that
//!   inherited the descriptor still holds it.
//! - /proc/PID/fdinfo/FD shows the locks of one open file, complete and consistent. A lock that is
//!   held throughout is always found there, but only in processes that this user may inspect.
//!
//! So a lock that either of them shows is held, and only a lock that neither shows is free. A lock
//! is never probed by taking it, because that would make a real attempt fail. The holder describes
//! itself in a record next to the lock file. The record is written after the lock was taken; if it
//! is missing, incomplete or old, it changes only what is shown.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::ignore::Ignore;
use tenure_core::process::{RunState, Sighting};
use tenure_core::time::Timestamp;

use crate::kernel_lock::{LockDir, LockName};
use crate::process;
use crate::system::{self, InodeId, LockEntry};

/// A holder's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HolderNote {
    /// The lock's name for people.
    pub lock: String,
    /// The session that the holder acts for.
    pub session: Option<String>,
    /// The process that took it, or that has it now if that one is gone.
    pub pid: u32,
    /// The program that asked for it with `--hold`: its pid, and the ticks at which it started.
    #[serde(default)]
    #[schemars(with = "Option<Vec<u64>>")]
    pub caller: Option<(u32, u64)>,
    /// The command that runs under the lock.
    pub command: String,
    pub since: Timestamp,
    pub shared: bool,
}

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LockState {
    /// Its name; the file's name if no holder ever left a record.
    pub name: String,
    pub held: bool,
    /// The pids that took it, according to the kernel; if they are gone, those that have it now.
    pub pids: Vec<u32>,
    /// How many wait for it.
    pub waiting: usize,
    /// The holder's description of itself; only while it is held.
    pub holder: Option<HolderNote>,
}

/// Leaves a record of who holds a lock. A failure only means that the list shows less.
pub fn leave_note(dir: &LockDir, name: &LockName, note: &HolderNote) {
    let path = dir.path().join(format!("{}~who", name.file()));
    let text = serde_json::to_string(note).unwrap_or_default();
    crate::file::write_private(&path, text.as_bytes())
        .ignore("the lock is held with or without the record");
}

/// What is known about one lock.
pub fn state(dir: &LockDir, name: &LockName) -> LockState {
    let files: Vec<LockFile> = LockFile::find(dir.path(), name.file())
        .into_iter()
        .collect();
    let table = Table::read(&files);
    let known = files.first().map(|file| file.describe(dir.path(), &table));
    known.unwrap_or_else(|| LockState {
        name: name.shown().to_owned(),
        held: false,
        pids: Vec::new(),
        waiting: 0,
        holder: None,
    })
}

/// What is known about every lock in a directory, ordered by name.
pub fn states(dir: &LockDir) -> std::io::Result<Vec<LockState>> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(dir.path())? {
        let name = entry?.file_name();
        let name = name.to_str().filter(|name| !name.contains('~'));
        files.extend(name.and_then(|name| LockFile::find(dir.path(), name)));
    }
    let table = Table::read(&files);
    let mut found: Vec<LockState> = files
        .iter()
        .map(|file| file.describe(dir.path(), &table))
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// An existing lock file.
struct LockFile {
    name: String,
    place: InodeId,
}

impl LockFile {
    fn find(dir: &Path, name: &str) -> Option<LockFile> {
        let found = fs_err::symlink_metadata(dir.join(name)).ok()?;
        Some(LockFile {
            name: name.to_owned(),
            place: system::inode_id(&found),
        })
    }

    fn describe(&self, dir: &Path, table: &Table) -> LockState {
        let (file, entry) = (&self.name, table.entry(self.place));
        let text = fs_err::read(dir.join(format!("{file}~who"))).unwrap_or_default();
        let note: Option<HolderNote> = serde_json::from_slice(&text).ok();
        // A record of another lock is ignored.
        let note = note.filter(|note| is_file_of(&note.lock, file));
        let plain = file.strip_prefix("n-").map(|name| name.replace('%', "/"));
        let name = plain.or_else(|| note.as_ref().map(|note| note.lock.clone()));
        let note = note.filter(|note| entry.held && is_by(note, &entry));
        let mut takers = entry
            .pids
            .iter()
            .copied()
            .chain(note.as_ref().map(|note| note.pid));
        let heirs = if entry.held && !takers.any(runs) {
            self.heirs()
        } else {
            Vec::new()
        };
        LockState {
            name: name.unwrap_or_else(|| file.clone()),
            held: entry.held,
            waiting: entry.waiting,
            holder: note.map(|note| HolderNote {
                pid: heirs.first().copied().unwrap_or(note.pid),
                ..note
            }),
            pids: if heirs.is_empty() { entry.pids } else { heirs },
        }
    }

    /// The processes that have the lock although the one that took it is gone.
    fn heirs(&self) -> Vec<u32> {
        let named = HashSet::from([self.name.as_str()]);
        let held = system::holders_of_files_named(&named).into_iter();
        let mut pids: Vec<u32> = held
            .filter(|(_, locks)| locks.get(&self.place).is_some_and(|entry| entry.held))
            .map(|(pid, _)| pid)
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }
}

/// Whether a process runs; one that only waits to be reaped does not.
fn runs(pid: u32) -> bool {
    match process::look(pid) {
        Sighting::Present { state, threads, .. } => state != RunState::Zombie || threads > 1,
        Sighting::Absent | Sighting::Thread { .. } => false,
        Sighting::Unreadable(_) => true,
    }
}

/// Whether a lock with this name has this file.
fn is_file_of(lock: &str, file: &str) -> bool {
    let plain = LockName::plain(lock).is_ok_and(|name| name.file() == file);
    plain || LockName::of_path(Path::new(lock)).is_ok_and(|name| name.file() == file)
}

/// Whether one of the current holders wrote a note, as far as the kernel names them.
fn is_by(note: &HolderNote, entry: &LockEntry) -> bool {
    entry.pids.is_empty() || entry.pids.contains(&note.pid)
}

/// How often the kernel's table is read again for the waiters of a lock that it missed.
const READINGS: usize = 5;

/// The locks that are held or waited for.
struct Table(HashMap<InodeId, LockEntry>);

impl Table {
    fn read(files: &[LockFile]) -> Table {
        let mut table = Table(system::locks());
        let free = files.iter().filter(|file| !table.entry(file.place).held);
        let names: HashSet<&str> = free.map(|file| file.name.as_str()).collect();
        if names.is_empty() {
            return table;
        }
        let places: HashSet<InodeId> = files.iter().map(|file| file.place).collect();
        let mut missed = system::locks_of_files_named(&names);
        missed.retain(|place, entry| {
            entry.held && places.contains(place) && !table.entry(*place).held
        });
        for _ in 0..READINGS {
            // Waiters are only in the kernel's table, below the lock that they wait for.
            if missed.keys().all(|place| table.entry(*place).held) {
                break;
            }
            for (place, entry) in system::locks() {
                if missed.contains_key(&place) && entry.held {
                    table.0.insert(place, entry);
                }
            }
        }
        for (place, entry) in missed {
            if !table.entry(place).held {
                table.0.insert(place, entry);
            }
        }
        table
    }

    fn entry(&self, place: InodeId) -> LockEntry {
        self.0.get(&place).cloned().unwrap_or_default()
    }
}
