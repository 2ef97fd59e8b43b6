//! The terminal in which a process was started.
//!
//! Closing a terminal removes its device; descriptors still name it, as deleted. Most programs then
//! exit; some continue although no one can see or answer them. The device's number may belong to
//! another terminal by now, so nothing is opened here.
//!
//! The last time someone typed in a terminal is the access time of its device, as `w` shows it. The
//! kernel updates it in steps of eight seconds.

use std::io::IsTerminal;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tenure_core::process::{Ancestor, Process};

use crate::{process_terminal, system};

/// What the kernel appends to the name of a closed terminal.
const GONE: &str = " (deleted)";

/// Whether the terminal that a process reads or writes is gone: its window was closed, or its connection broke.
/// False for a process without a terminal, or one that cannot be inspected.
pub fn is_gone(process: &Process) -> bool {
    let is_closed = |fd: u32| {
        let named = system::descriptor(process.pid, fd);
        named.is_some_and(|name| is_closed_terminal(&name))
    };
    // These were its descriptors only if it still runs.
    (0..3).any(is_closed) && process_terminal::present(process).is_some()
}

/// `/dev/tty`, which is the controlling terminal of the process that opens it.
const ALIAS: u64 = 5 << 8;

/// How long after the last key an agent may take to report its exit.
const LEAVES: Duration = Duration::from_secs(10);
/// The kernel records a key only if this many seconds passed since the last recorded one.
const STEP: u64 = 8;

/// Whether a process has a terminal in which no one typed recently. If that is not visible, someone may have.
pub fn is_quiet(pid: u32) -> bool {
    let device = system::descriptor(pid, 0);
    let Some(device) = device.filter(|link| link.starts_with("/dev/pts/")) else {
        return false;
    };
    let read_at = fs_err::metadata(device).and_then(|device| device.accessed());
    read_at.is_ok_and(|at| is_long_ago(at, SystemTime::now()))
}

/// The controlling terminal of this process, if a person called it there: stdin and stderr are that terminal, it is in the
/// foreground, and the process that leads the terminal is one of its ancestors. Else why that is not certain.
///
/// What a program left behind in the background of a person's terminal fails this. A program that makes a terminal of its
/// own and types into it does not: no process can tell that.
pub fn of_person(chain: &[Ancestor]) -> Result<String, &'static str> {
    let stat = match system::view_self() {
        Ok(seen) => seen.stat,
        Err(_) => return Err("its own process cannot be inspected"),
    };
    if !stat.has_terminal {
        return Err("it has no controlling terminal");
    }
    let is_it = |number: u64| number == stat.terminal || number == ALIAS;
    let is_terminal = |of: BorrowedFd<'_>| device(of).is_some_and(is_it);
    if !is_terminal(rustix::stdio::stdin()) || !is_terminal(rustix::stdio::stderr()) {
        return Err("its input and its messages are not the terminal that controls it");
    }
    if stat.group != stat.foreground {
        return Err("it is in the background of its terminal");
    }
    if !chain.iter().any(|one| one.process.pid == stat.session) {
        return Err("what leads its terminal did not start it");
    }
    process_terminal::device_name(stat.terminal).ok_or("its terminal has no name")
}

/// The device of an open file in the form of the stat file, if it is a terminal.
fn device(file: BorrowedFd<'_>) -> Option<u64> {
    let number = rustix::fs::fstat(file).ok()?.st_rdev;
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let minor = (u64::from(minor) & 0xff) | ((u64::from(minor) & 0xfff00) << 12);
    file.is_terminal()
        .then_some((u64::from(major) << 8) | minor)
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
    }

    #[test]
    fn a_key_counts_until_the_end_of_its_step() {
        let at = |second: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        // Another key at 807 would not have been recorded.
        assert!(!is_long_ago(at(800), at(807) + LEAVES));
        assert!(!is_long_ago(at(806), at(808) + LEAVES));
        assert!(is_long_ago(at(806), at(809) + LEAVES));
        // A clock that was set back.
        assert!(!is_long_ago(at(806), at(100)));
    }
}
