//! Processes that keep a SQLite log from being truncated, because they are reading.
//!
//! Each holds a shared kernel lock on one of the five read marks in the index of the log (`NAME-shm`, bytes 123
//! to 127), which /proc/locks shows with its pid. Processes of other pid namespaces have no pid here and are
//! not listed. Nothing is opened or locked, because closing a descriptor of the index would release SQLite's
//! own locks.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::system::LogReader;

use super::locks;
use super::proc::proc_path;

/// The bytes of the read marks.
const MARKS: std::ops::RangeInclusive<u64> = 123..=127;

/// The processes that are reading a database now, by the index of its log.
pub fn readers_of_log(index: &Path) -> Vec<LogReader> {
    let Ok(found) = fs_err::symlink_metadata(index) else {
        return Vec::new();
    };
    let table = locks::table().unwrap_or_default();
    let name = |pid: u32| {
        let name = fs_err::read_to_string(proc_path(pid, "comm")).unwrap_or_default();
        name.trim_end().to_owned()
    };
    let readers = parse(&table, found.ino()).into_iter();
    readers
        .map(|pid| LogReader {
            pid,
            name: name(pid),
        })
        .collect()
}

/// Lines such as `3: POSIX ADVISORY READ 4242 fe:00:1234567 124 124`. The kernel merges adjacent locks, so a
/// range may extend beyond the marks. The device is not compared, because some file systems show another.
fn parse(table: &str, inode: u64) -> Vec<u32> {
    let reader = |line: &str| -> Option<u32> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "READ", pid, place, from, to] = words[..] else {
            return None;
        };
        let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
        let is_it = place.rsplit(':').next()?.parse() == Ok(inode);
        let reads = from <= *MARKS.end() && to >= *MARKS.start();
        let pid = pid.parse().ok().filter(|pid| *pid != 0)?;
        (is_it && reads).then_some(pid)
    };
    let mut pids: Vec<u32> = table.lines().filter_map(reader).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_read_are_told_from_those_who_are_only_connected() {
        let table = "1: POSIX  ADVISORY  READ 11 fe:00:77 128 128\n\
                     2: POSIX  ADVISORY  READ 12 fe:00:77 124 124\n\
                     3: POSIX  ADVISORY  READ 13 fe:00:77 127 128\n\
                     4: POSIX  ADVISORY  WRITE 14 fe:00:77 120 120\n\
                     5: POSIX  ADVISORY  READ 15 fe:00:78 124 124\n\
                     6: FLOCK  ADVISORY  READ 16 fe:00:77 0 EOF\n\
                     7: POSIX  ADVISORY  READ 0 fe:00:77 125 125\n";
        assert_eq!(parse(table, 77), [12, 13]);
    }
}
