//! The kernel's table of locks, and how its lines are read.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::system::{InodeId, LockEntry};

use super::lock_fds;

/// Device and inode of a file, in the form of the table.
pub fn inode_id(found: &Metadata) -> InodeId {
    (
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev()),
        found.ino(),
    )
}

/// The locks of whole files that are held or waited for. One may be missing while others come and go.
pub fn locks() -> HashMap<InodeId, LockEntry> {
    parse(&table().unwrap_or_default())
}

/// The locks that are held through a file with one of these names: none is missing, but none has waiters.
pub fn locks_of_files_named(names: &HashSet<&str>) -> HashMap<InodeId, LockEntry> {
    parse(&lock_fds::locks_of_files_named(names))
}

/// The same with the process that has each, which is not the one that took it if that passed its descriptor on.
pub fn holders_of_files_named(names: &HashSet<&str>) -> Vec<(u32, HashMap<InodeId, LockEntry>)> {
    let held = lock_fds::holders_of_files_named(names).into_iter();
    held.map(|(pid, lines)| (pid, parse(&lines))).collect()
}

/// The inodes on which any process holds a lock of any kind.
pub fn locked_inodes() -> io::Result<HashSet<u64>> {
    let table = table()?;
    let words = table.lines().flat_map(str::split_whitespace);
    let inodes = words.filter_map(|word| word.rsplit_once(':')?.1.parse().ok());
    Ok(inodes.collect())
}

/// The lines of the table, as the kernel returns them.
pub(super) fn table() -> io::Result<String> {
    fs_err::read_to_string("/proc/locks")
}

/// Lines such as `3: FLOCK  ADVISORY  WRITE 4242 fe:00:1234567 0 EOF`; a waiter has `->` before FLOCK.
fn parse(text: &str) -> HashMap<InodeId, LockEntry> {
    let mut table: HashMap<InodeId, LockEntry> = HashMap::new();
    let mut seen: HashSet<(InodeId, u32)> = HashSet::new();
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
            // A line may be returned twice if locks came and went in between.
            let pid = pid.parse::<u32>().unwrap_or(0);
            if pid == 0 || seen.insert((place, pid)) {
                entry.waiting += 1;
            }
        } else {
            entry.held = true;
            let pid = pid.parse::<u32>().ok().filter(|pid| *pid != 0);
            // Every process that inherited the descriptor shows the one that took it.
            entry
                .pids
                .extend(pid.filter(|pid| !entry.pids.contains(pid)));
        }
    }
    table
}

fn parse_place(text: &str) -> Option<InodeId> {
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
