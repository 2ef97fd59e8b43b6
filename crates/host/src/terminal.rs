//! The terminal that a process was started in.
//!
//! When something was last typed in it is the time at which its device was last read, as `w` shows it. The kernel keeps
//! that in steps of eight seconds. Nothing is opened or written.

use std::path::Path;
use std::time::{Duration, SystemTime};

/// What the kernel puts behind the name of a terminal that was closed.
const GONE: &str = " (deleted)";

/// Whether the terminal that a process reads or writes is gone: its window was closed, or its connection broke.
/// A process that has none, or cannot be looked at, lost none.
pub fn is_gone(pid: u32) -> bool {
    (0..3).any(|fd| {
        let link = fs_err::read_link(format!("/proc/{pid}/fd/{fd}"));
        link.is_ok_and(|link| is_closed_terminal(&link))
    })
}

/// How long after the last key an agent that was asked to leave may take to say so.
const LEAVES: Duration = Duration::from_secs(10);
/// The kernel notes a key only if this much time went by since the one that it noted last.
const STEP: u64 = 8;

/// Whether a process has a terminal in which nobody typed lately. Where that cannot be seen, somebody may have.
pub fn is_quiet(pid: u32) -> bool {
    let device = fs_err::read_link(format!("/proc/{pid}/fd/0"));
    let Some(device) = device.ok().filter(|link| link.starts_with("/dev/pts/")) else {
        return false;
    };
    let read_at = fs_err::metadata(device).and_then(|device| device.accessed());
    read_at.is_ok_and(|at| is_long_ago(at, SystemTime::now()))
}

fn is_long_ago(read_at: SystemTime, now: SystemTime) -> bool {
    let Ok(at) = read_at.duration_since(SystemTime::UNIX_EPOCH) else {
        return false;
    };
    let last_key = Duration::from_secs(at.as_secs() / STEP * STEP + STEP);
    now > SystemTime::UNIX_EPOCH + last_key + LEAVES
}

fn is_closed_terminal(link: &Path) -> bool {
    let name = link.to_str().unwrap_or_default();
    name.starts_with("/dev/pts/") && name.ends_with(GONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_terminal_is_gone() {
        let gone = |name: &str| is_closed_terminal(Path::new(name));
        assert!(gone("/dev/pts/3 (deleted)"));
        for other in ["/dev/pts/3", "/tmp/x (deleted)", "/dev/null", "pipe:[7]"] {
            assert!(!gone(other), "{other}");
        }
        assert!(!is_gone(std::process::id()));
    }

    #[test]
    fn a_key_counts_until_the_end_of_its_step() {
        let at = |second: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        // Another key at 807 would not have been noted.
        assert!(!is_long_ago(at(800), at(807) + LEAVES));
        assert!(!is_long_ago(at(806), at(808) + LEAVES));
        assert!(is_long_ago(at(806), at(809) + LEAVES));
        // A clock that was set back.
        assert!(!is_long_ago(at(806), at(100)));
    }
}
