//! The locks that open descriptors hold, process by process (see [`crate::lock_table`] for why).
//!
//! The kernel lists every process and descriptor that exists throughout the reading, so a lock that is held
//! throughout is found, whatever else comes and goes. Processes that this user may not inspect are skipped.
//! Links are read, never followed, so a file on a dead network file system delays nothing.

use std::collections::HashSet;
use std::path::Path;

use super::proc::names as list;

/// The lines, in the form of /proc/locks, of locks held through a file with one of these names.
pub(super) fn locks_of_files_named(names: &HashSet<&str>) -> String {
    let held = holders_of_files_named(names).into_iter();
    held.map(|(_, lines)| lines).collect()
}

/// The same with the process that has each, which is not the one that took it if that passed its descriptor on.
pub(super) fn holders_of_files_named(names: &HashSet<&str>) -> Vec<(u32, String)> {
    let mut held = Vec::new();
    for process in list(Path::new("/proc")) {
        let Ok(pid) = process.parse::<u32>() else {
            continue;
        };
        let process = Path::new("/proc").join(process);
        let descriptors = process.join("fd");
        for descriptor in list(&descriptors) {
            let is_named = fs_err::read_link(descriptors.join(&descriptor))
                .is_ok_and(|path| has_name(&path, names));
            if is_named {
                let info = fs_err::read_to_string(process.join("fdinfo").join(&descriptor));
                held.push((pid, locks_in(&info.unwrap_or_default())));
            }
        }
    }
    held
}

fn has_name(path: &Path, names: &HashSet<&str>) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| names.contains(name))
}

/// Lines such as `lock:\t1: FLOCK  ADVISORY  WRITE 4242 fe:00:1234567 0 EOF`, without their first word.
fn locks_in(info: &str) -> String {
    let locks = info.lines().filter_map(|line| line.strip_prefix("lock:"));
    locks.map(|line| format!("{}\n", line.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_locks_of_a_descriptor_are_taken() {
        let info = "pos:\t0\nflags:\t02100002\nino:\t77\nlock:\t1: FLOCK  ADVISORY  WRITE 4242 fe:00:77 0 EOF\n";
        assert_eq!(
            locks_in(info),
            "1: FLOCK  ADVISORY  WRITE 4242 fe:00:77 0 EOF\n"
        );
    }
}
