//! The descriptors of this process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::system::OwnDescriptor;

use super::proc::own_link;

const CLOSE_ON_EXEC: u32 = 0o2_000_000;

/// The open descriptors. The listing uses one itself, which is closed afterwards.
pub fn own_descriptors() -> io::Result<impl Iterator<Item = RawFd>> {
    let entries = fs_err::read_dir("/proc/self/fd")?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// Device and inode of a file.
pub fn file_id(found: &rustix::fs::Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

/// Device and inode of an open file.
pub fn file_of(descriptor: RawFd) -> Option<(u64, u64)> {
    let found = fs_err::metadata(own_link(descriptor)).ok()?;
    Some((found.dev(), found.ino()))
}

/// What the kernel reports about a descriptor; none if it is not open.
pub fn own_descriptor(descriptor: RawFd) -> Option<OwnDescriptor> {
    let text = fs_err::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
    Some(parse(&text))
}

fn parse(fdinfo: &str) -> OwnDescriptor {
    OwnDescriptor {
        holds_lock: fdinfo
            .lines()
            .any(|line| line.starts_with("lock:") && line.contains("FLOCK")),
        closes_on_exec: flags_of(fdinfo).map(|flags| flags & CLOSE_ON_EXEC != 0),
    }
}

fn flags_of(fdinfo: &str) -> Option<u32> {
    let flags = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(flags.trim(), 8).ok()
}

/// A path that reaches an open file or directory itself, whatever has its name now. Another system has to ask for it.
pub fn path_through(file: BorrowedFd<'_>) -> io::Result<PathBuf> {
    Ok(own_link(file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_shows_its_lock_and_whether_it_is_passed_on() {
        let lock = "lock:\t1: FLOCK  ADVISORY  WRITE 4242 fe:00:77 0 EOF\n";
        let held = parse(&format!("pos:\t0\nflags:\t0100002\nino:\t77\n{lock}"));
        assert!(held.holds_lock);
        assert_eq!(held.closes_on_exec, Some(false));
        let free = parse("pos:\t0\nflags:\t02100002\n");
        assert!(!free.holds_lock);
        assert_eq!(free.closes_on_exec, Some(true));
        assert_eq!(parse("").closes_on_exec, None);
    }
}
