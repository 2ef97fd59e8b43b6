//! Which processes have a file open for writing.
//!
//! Processes that this user may not inspect are skipped, so the answer covers the user's own processes. Links are read,
//! and a file is followed only if its name fits, so a dead network file system delays nothing.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::proc::names;

/// The pids of other processes that have this file open for writing.
pub fn writers(path: &Path) -> Vec<u32> {
    let Ok(wanted) = fs_err::symlink_metadata(path) else {
        return Vec::new();
    };
    let is_it = |link: &Path| {
        let named = fs_err::read_link(link).is_ok_and(|to| to.file_name() == path.file_name());
        let same =
            |found: std::fs::Metadata| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino());
        named && fs_err::metadata(link).is_ok_and(same)
    };
    let own = std::process::id();
    let mut pids = Vec::new();
    for process in names(Path::new("/proc")) {
        let Some(pid) = process.parse::<u32>().ok().filter(|pid| *pid != own) else {
            continue;
        };
        let dir = Path::new("/proc").join(&process);
        let writes = |descriptor: &String| {
            let info = fs_err::read_to_string(dir.join("fdinfo").join(descriptor));
            is_it(&dir.join("fd").join(descriptor)) && info.is_ok_and(|info| is_writable(&info))
        };
        if names(&dir.join("fd")).iter().any(writes) {
            pids.push(pid);
        }
    }
    pids.sort_unstable();
    pids
}

/// Whether `flags:\t02102001` of a descriptor allow writing.
fn is_writable(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    let writes = OFlags::WRONLY | OFlags::RDWR;
    flags.is_some_and(|flags| OFlags::from_bits_retain(flags).intersects(writes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_a_descriptor_tell_readers_from_writers() {
        assert!(!is_writable("pos:\t0\nflags:\t02100000\n"));
        assert!(is_writable("pos:\t0\nflags:\t02102001\n"));
        assert!(is_writable("pos:\t0\nflags:\t0100002\n"));
        assert!(!is_writable(""));
    }
}
