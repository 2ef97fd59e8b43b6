//! Whether the terminal that a process was started in is there any more.
//!
//! A terminal that is closed takes its device away: descriptors of it still name it, as deleted. Most programs end
//! then; some go on without anybody who could see or answer them. The device's number may be another terminal's by
//! now, which is why nothing is opened here.

use tenure_core::process::{Process, Sighting};

use crate::process;

/// Whether input, output or errors of this process go to a terminal that was closed.
pub fn is_gone(recorded: &Process) -> bool {
    let is_closed = (0..=2).any(|fd| {
        let link = fs_err::read_link(format!("/proc/{}/fd/{fd}", recorded.pid));
        link.is_ok_and(|target| names_closed_terminal(&target.to_string_lossy()))
    });
    // Only then were these its descriptors.
    is_closed
        && matches!(process::look(recorded.pid), Sighting::Present { start, .. } if start.same_start(recorded.start))
}

fn names_closed_terminal(target: &str) -> bool {
    target.starts_with("/dev/pts/") && target.ends_with(" (deleted)")
}

#[cfg(test)]
mod tests {
    use super::names_closed_terminal;

    #[test]
    fn a_closed_terminal_is_named_as_deleted() {
        assert!(names_closed_terminal("/dev/pts/7 (deleted)"));
        for other in ["/dev/pts/7", "/dev/null", "/tmp/x (deleted)", "pipe:[7]"] {
            assert!(!names_closed_terminal(other), "{other}");
        }
    }
}
