//! Where people find a process: its terminal, and its place in a terminal multiplexer.
//!
//! This only helps people find a window; nothing is decided by it. A process of another user, one
//! that has exited, and one whose pid was reused have none.

use tenure_core::process::Process;

use crate::survivors::environment;
use crate::system;
use crate::system::view::{ProcessStat, View};

/// How many ancestors are searched.
const MAX_ANCESTORS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessTerminal {
    /// Its controlling terminal below /dev, such as `pts/3`.
    pub terminal: Option<String>,
    /// The socket of the tmux server and the pane in which it was started.
    pub tmux: Option<(String, String)>,
}

/// The terminal of a process of our own user; none if the process is gone.
pub fn of(process: &Process) -> Option<ProcessTerminal> {
    let seen = present(process)?;
    let uid = system::effective_uid(process.pid).ok()?;
    if uid != rustix::process::geteuid().as_raw() {
        return None;
    }
    let variables = environment(process.pid).unwrap_or_default();
    let terminal = device_name(seen.stat.terminal).or_else(|| input(process.pid));
    // Checked last: only now is it certain that everything read belonged to this process.
    present(process)?;
    Some(ProcessTerminal {
        terminal,
        tmux: tmux(&variables),
    })
}

/// Whether a process is another, or runs below it.
pub fn is_below(pid: u32, above: u32) -> bool {
    let mut at = pid;
    for _ in 0..MAX_ANCESTORS {
        if at == above {
            return true;
        }
        match system::view(at) {
            View::Present(seen) if seen.stat.parent > 0 => at = seen.stat.parent,
            _ => return false,
        }
    }
    false
}

/// What the kernel reports about exactly this process.
pub(crate) fn present(process: &Process) -> Option<ProcessStat> {
    let View::Present(seen) = system::view(process.pid) else {
        return None;
    };
    let shifted = seen.start.shifted || process.start.shifted;
    let apart = seen.start.ticks.abs_diff(process.start.ticks);
    (apart <= u64::from(shifted)).then_some(seen)
}

/// A device number in the form of the stat file.
pub(crate) fn device_name(number: u64) -> Option<String> {
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xfff00);
    match major {
        4 if minor < 64 => Some(format!("tty{minor}")),
        136..=143 => Some(format!("pts/{}", (major - 136) * 256 + minor)),
        _ => None,
    }
}

/// The terminal that it reads from.
fn input(pid: u32) -> Option<String> {
    let link = system::descriptor(pid, 0)?;
    let name = link.to_str()?.strip_prefix("/dev/")?;
    let is_terminal = name.starts_with("pts/") || name.starts_with("tty");
    (is_terminal && !name.ends_with(" (deleted)")).then(|| name.to_owned())
}

/// `TMUX` is the socket, the server's pid and a number, separated by commas.
fn tmux(variables: &[u8]) -> Option<(String, String)> {
    let value = |name: &str| {
        let mut all = variables.split(|byte| *byte == 0);
        let found = all.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        found.and_then(|value| std::str::from_utf8(value).ok())
    };
    let mut parts = value("TMUX")?.rsplitn(3, ',');
    let socket = parts.nth(2).filter(|socket| socket.starts_with('/'))?;
    let pane = value("TMUX_PANE").filter(|pane| pane.starts_with('%'))?;
    Some((socket.to_owned(), pane.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_the_names_that_people_see() {
        let name = |major: u64, minor: u64| {
            let number = ((minor & 0xfff00) << 12) | (major << 8) | (minor & 0xff);
            device_name(number)
        };
        assert_eq!(name(136, 3).as_deref(), Some("pts/3"));
        assert_eq!(name(137, 3).as_deref(), Some("pts/259"));
        assert_eq!(name(136, 300).as_deref(), Some("pts/300"));
        assert_eq!(name(4, 1).as_deref(), Some("tty1"));
        assert_eq!(name(0, 0), None);
    }

    #[test]
    fn a_socket_may_have_commas_in_its_path() {
        let found = |text: &str| tmux(text.replace('|', "\0").as_bytes());
        assert_eq!(
            found("A=1|TMUX=/tmp/a,b/s,12,0|TMUX_PANE=%3|"),
            Some(("/tmp/a,b/s".to_owned(), "%3".to_owned()))
        );
        for none in [
            "",
            "TMUX=/tmp/s,1,0",
            "TMUX=|TMUX_PANE=%1",
            "TMUX=s,1,0|TMUX_PANE=%1",
            "TMUX=/s,1|TMUX_PANE=%1",
            "TMUX=/s,1,0|TMUX_PANE=-t",
            "XTMUX=/s,1,0|TMUX_PANE=%1",
        ] {
            assert_eq!(found(none), None, "{none}");
        }
    }

    #[test]
    fn a_process_is_below_who_started_it() {
        let own = std::process::id();
        assert!(is_below(own, own));
        assert!(is_below(
            own,
            rustix::process::getppid().unwrap().as_raw_nonzero().get() as u32
        ));
        assert!(!is_below(own, u32::MAX));
    }
}
