//! The environment and program of this process, and the environment of others.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::system;

pub fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

pub fn all() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}

/// The executable of this process.
pub fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// The program that has this one's name now, to start more processes: the kernel marks one that was replaced.
pub fn installed() -> io::Result<PathBuf> {
    program().map(unmarked)
}

fn unmarked(program: PathBuf) -> PathBuf {
    let name = program.as_os_str().as_bytes();
    match name.strip_suffix(b" (deleted)") {
        Some(replaced) => PathBuf::from(OsStr::from_bytes(replaced)),
        None => program,
    }
}

/// The longest environment of another process that is read.
const MAX_LENGTH: u64 = 4 << 20;

/// The environment that another process was started with.
#[derive(Debug)]
pub struct Environment(Vec<u8>);

impl Environment {
    /// None if the process is gone, belongs to another user, or its environment reads as empty.
    pub fn of(pid: u32) -> Option<Self> {
        let bytes = system::environment(pid, MAX_LENGTH).ok()?;
        (!bytes.is_empty()).then_some(Self(bytes))
    }

    /// None also for an empty variable.
    pub fn var(&self, name: &str) -> Option<OsString> {
        let mut entries = self.0.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| {
            let rest = entry.strip_prefix(name.as_bytes())?;
            rest.strip_prefix(b"=")
        })?;
        (!value.is_empty()).then(|| OsStr::from_bytes(value).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let all = Environment(b"HOMES=/x\0HOME=/home/ann\0EMPTY=\0".to_vec());
        assert_eq!(all.var("HOME"), Some(OsString::from("/home/ann")));
        assert_eq!(all.var("EMPTY"), None);
        assert_eq!(all.var("OME"), None);
    }

    #[test]
    fn a_program_that_was_replaced_is_started_by_its_name() {
        let name = |path: &str| unmarked(PathBuf::from(path));
        assert_eq!(name("/bin/tenure (deleted)"), PathBuf::from("/bin/tenure"));
        assert_eq!(name("/bin/tenure"), PathBuf::from("/bin/tenure"));
    }
}
