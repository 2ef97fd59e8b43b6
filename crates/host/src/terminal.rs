//! The terminal that a process was started in.

use std::path::Path;

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
}
