//! What this process was started with.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// A variable of the environment.
pub fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The file that this process runs.
pub fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}
