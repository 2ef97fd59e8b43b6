//! The locks that open descriptors hold, process by process (see [`crate::lock_table`] for why).
//!
//! The kernel lists every process and descriptor that exists throughout the reading, so a lock that is held
//! throughout is found, whatever else comes and goes. Processes that this user may not inspect are skipped.
//! Links are read, never followed, so a file on a dead network file system delays nothing.

use std::collections::HashSet;
use std::path::Path;

/// The lines, in the form of /proc/locks, of locks held through a file with one of these names.
pub(crate) fn locks_of_files_named(names: &HashSet<&str>) -> String {
    let mut lines = String::new();
    for process in list(Path::new("/proc")) {
        if !process.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let process = Path::new("/proc").join(process);
        let descriptors = process.join("fd");
        for descriptor in list(&descriptors) {
            let is_named = fs_err::read_link(descriptors.join(&descriptor))
                .is_ok_and(|path| has_name(&path, names));
            if is_named {
                let info = fs_err::read_to_string(process.join("fdinfo").join(&descriptor));
                lines.push_str(&locks_in(&info.unwrap_or_default()));
            }
        }
    }
    lines
}

fn has_name(path: &Path, names: &HashSet<&str>) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| names.contains(name))
}

/// The names in a directory; none if it is gone or not readable.
fn list(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
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
