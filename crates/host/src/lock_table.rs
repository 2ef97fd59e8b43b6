//! What is known about locks, for people: who holds each, since when, how many wait.
//!
//! Whether a lock is held is the kernel's word alone (/proc/locks, by inode). Nobody probes a lock by taking
//! it: that would make a real attempt fail. Who the holder says it is stands in a record beside the lock
//! file; it is written after the lock was had, and where it is missing, torn or old it changes nothing
//! but what is shown.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenure_core::time::Timestamp;

use crate::kernel_lock::{LockDir, LockName};

/// What a holder says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderNote {
    /// The lock, as people call it.
    pub lock: String,
    /// The session that it acts for.
    pub session: Option<String>,
    /// The process that took it.
    pub pid: u32,
    /// What it runs under it.
    pub command: String,
    /// Since when.
    pub since: Timestamp,
    /// Whether it shares it.
    pub shared: bool,
}

/// One lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockState {
    /// Its name; the file's where nobody ever said more.
    pub name: String,
    /// Whether somebody holds it now.
    pub held: bool,
    /// The processes that took it, as the kernel says.
    pub pids: Vec<u32>,
    /// How many wait for it.
    pub waiting: usize,
    /// What the holder says of itself; only while it is held.
    pub holder: Option<HolderNote>,
}

/// The record beside a lock file.
fn note_path(dir: &LockDir, name: &LockName) -> PathBuf {
    dir.path().join(format!("{}~who", name.file()))
}

/// Leaves word of who holds a lock. Failing to is nobody's problem but the reader's.
pub fn leave_note(dir: &LockDir, name: &LockName, note: &HolderNote) {
    let path = note_path(dir, name);
    let text = serde_json::to_string(note).unwrap_or_default();
    if crate::file::write_private(&path, text.as_bytes()).is_err() {
        // The lock is held all the same.
    }
}

/// What is known about one lock.
pub fn state(dir: &LockDir, name: &LockName) -> LockState {
    let kernel = kernel_table();
    describe(dir.path(), name.file(), &kernel).unwrap_or_else(|| LockState {
        name: name.shown().to_owned(),
        held: false,
        pids: Vec::new(),
        waiting: 0,
        holder: None,
    })
}

/// What is known about every lock of a directory, in order of their names.
pub fn states(dir: &LockDir) -> std::io::Result<Vec<LockState>> {
    let kernel = kernel_table();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir.path())? {
        let file = entry?.file_name();
        if let Some(file) = file.to_str().filter(|file| !file.contains('~'))
            && let Some(state) = describe(dir.path(), file, &kernel)
        {
            found.push(state);
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn describe(dir: &Path, file: &str, kernel: &HashMap<Place, Entry>) -> Option<LockState> {
    let found = std::fs::symlink_metadata(dir.join(file)).ok()?;
    let entry = kernel.get(&place_of(&found)).cloned().unwrap_or_default();
    let text = std::fs::read(dir.join(format!("{file}~who"))).unwrap_or_default();
    let note: Option<HolderNote> = serde_json::from_slice(&text).ok();
    // A record that is another lock's says nothing about this one.
    let note = note.filter(|note| is_file_of(&note.lock, file));
    let plain = file.strip_prefix("n-").map(|name| name.replace('%', "/"));
    let name = plain.or_else(|| note.as_ref().map(|note| note.lock.clone()));
    Some(LockState {
        name: name.unwrap_or_else(|| file.to_owned()),
        held: entry.held,
        waiting: entry.waiting,
        holder: note.filter(|note| entry.held && is_by(note, &entry)),
        pids: entry.pids,
    })
}

/// Whether a lock of this name has this file.
fn is_file_of(lock: &str, file: &str) -> bool {
    let plain = LockName::plain(lock).is_ok_and(|name| name.file() == file);
    plain || LockName::of_path(Path::new(lock)).is_ok_and(|name| name.file() == file)
}

/// Whether a note is by one of those who hold the lock now, as far as the kernel names them.
fn is_by(note: &HolderNote, entry: &Entry) -> bool {
    entry.pids.is_empty() || entry.pids.contains(&note.pid)
}

/// Device and inode, as /proc/locks writes them.
type Place = (u32, u32, u64);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    held: bool,
    pids: Vec<u32>,
    waiting: usize,
}

fn place_of(found: &std::fs::Metadata) -> Place {
    (
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev()),
        found.ino(),
    )
}

/// How often the kernel's table is read. It is handed out in pieces, between which locks come and go, so
/// one reading may miss a lock that is held all along.
const READINGS: usize = 5;

fn kernel_table() -> HashMap<Place, Entry> {
    let mut table = HashMap::new();
    for _ in 0..READINGS {
        let reading = parse(&std::fs::read_to_string("/proc/locks").unwrap_or_default());
        for (place, entry) in reading {
            let known: &mut Entry = table.entry(place).or_default();
            if !known.held {
                *known = entry;
            }
        }
    }
    table
}

/// Lines such as `3: FLOCK  ADVISORY  WRITE 4242 fe:00:1234567 0 EOF`; a waiter has `->` before FLOCK.
fn parse(text: &str) -> HashMap<Place, Entry> {
    let mut table: HashMap<Place, Entry> = HashMap::new();
    let mut seen: HashSet<(Place, u32)> = HashSet::new();
    for line in text.lines() {
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let waits = words.first() == Some(&"->");
        if waits {
            words.remove(0);
        }
        let (Some(&"FLOCK"), Some(pid), Some(place)) = (words.first(), words.get(3), words.get(4))
        else {
            continue;
        };
        let Some(place) = parse_place(place) else {
            continue;
        };
        let entry = table.entry(place).or_default();
        if waits {
            // A line may be handed out twice, where locks came and went in between.
            let pid = pid.parse::<u32>().unwrap_or(0);
            if pid == 0 || seen.insert((place, pid)) {
                entry.waiting += 1;
            }
        } else {
            entry.held = true;
            entry
                .pids
                .extend(pid.parse::<u32>().ok().filter(|pid| *pid != 0));
        }
    }
    table
}

fn parse_place(text: &str) -> Option<Place> {
    let mut parts = text.split(':');
    let major = u32::from_str_radix(parts.next()?, 16).ok()?;
    let minor = u32::from_str_radix(parts.next()?, 16).ok()?;
    let inode = parts.next()?.parse().ok()?;
    Some((major, minor, inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_tells_holders_from_waiters() {
        let text = "1: FLOCK  ADVISORY  WRITE 4242 fe:00:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 5 fe:00:77 0 EOF\n\
                    2: POSIX  ADVISORY  WRITE 9 fe:00:78 0 EOF\n3: FLOCK  ADVISORY  READ 0 fe:00:79 0 EOF\n";
        let table = parse(text);
        let first = &table[&(0xfe, 0, 77)];
        assert_eq!(
            (first.held, first.waiting, first.pids.as_slice()),
            (true, 1, [4242].as_slice())
        );
        assert!(!table.contains_key(&(0xfe, 0, 78)));
        assert!(table[&(0xfe, 0, 79)].held && table[&(0xfe, 0, 79)].pids.is_empty());
    }
}
