//! Which processes work in a directory: their current directory is that one, or one below it.
//!
//! Processes of other users cannot be inspected and are skipped. A process of this user that cannot
//! be read is reported, because it may be inside.

use std::path::Path;

use tenure_core::process::RunState;

use crate::system::view::View;
use crate::unseen::Unseen;
use crate::{boot, process, system};

/// The processes in a directory, and why the list may be incomplete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inside {
    pub found: Vec<Occupant>,
    pub doubt: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupant {
    pub pid: u32,
    /// The name of its program.
    pub program: String,
}

/// Goes through this user's processes once. `dir` must have no symbolic links.
pub fn find(dir: &Path) -> Inside {
    let mut inside = Inside::default();
    if !boot::proc_is_own() {
        inside.doubt = Some(Unseen::ForeignProc.to_string());
        return inside;
    }
    let pids = match system::pids() {
        Ok(pids) => pids,
        Err(error) => {
            inside.doubt = Some(Unseen::Unlisted(error).to_string());
            return inside;
        }
    };
    let user = rustix::process::geteuid().as_raw();
    for pid in pids.flatten() {
        if system::owner(pid).ok() != Some(user) {
            continue;
        }
        match system::working_dir(pid) {
            Ok(cwd) if cwd.starts_with(dir) => inside.found.push(Occupant {
                pid,
                program: process::looks(pid).comm,
            }),
            Ok(_) => {}
            // A process that is about to exit no longer has a directory.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // Process 1 may have privileges beyond ours; an agent running as process 1 would not.
            Err(_) if pid == 1 || is_over(pid) => {}
            Err(error) => {
                let why = error.to_string();
                let doubt = Unseen::Unreadable { pid, why };
                inside.doubt.get_or_insert(doubt.to_string());
            }
        }
    }
    inside
}

/// Whether a process has exited. A zombie is in no directory.
fn is_over(pid: u32) -> bool {
    match system::view(pid) {
        View::Present(seen) => seen.stat.state == RunState::Zombie,
        View::Absent | View::Thread { .. } => true,
        View::Unreadable(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_found_in_the_directory_and_below_it() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = fs_err::canonicalize(scratch.path()).unwrap().join("tree");
        let beside = dir.with_file_name("tree2");
        fs_err::create_dir_all(dir.join("below")).unwrap();
        fs_err::create_dir_all(&beside).unwrap();
        assert_eq!(find(&dir).found, []);
        for place in [dir.clone(), dir.join("below"), beside] {
            let mut child = Command::new("cat")
                .current_dir(&place)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let pids: Vec<u32> = find(&dir).found.iter().map(|one| one.pid).collect();
            let expected = if place.starts_with(&dir) {
                vec![child.id()]
            } else {
                Vec::new()
            };
            assert_eq!(pids, expected, "{}", place.display());
            drop(child.stdin.take());
            child.wait().unwrap();
            assert_eq!(find(&dir).found, [], "it ended");
        }
    }
}
