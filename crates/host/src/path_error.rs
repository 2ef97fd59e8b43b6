//! Adds the path to an I/O error. Leaf module: every module here may use it.

use std::io;
use std::path::Path;

/// `error`, of the same kind, with what was done to which path.
pub(crate) fn at(action: &str, path: &Path, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(
        error.kind(),
        format!("cannot {action} {}: {error}", path.display()),
    )
}

/// The file at a path is not usable, for a reason that the kernel does not know.
pub(crate) fn refused(action: &str, path: &Path, why: &str) -> io::Error {
    at(
        action,
        path,
        io::Error::new(io::ErrorKind::InvalidInput, why),
    )
}

pub(crate) fn no_file(action: &str, path: &Path) -> io::Error {
    refused(action, path, "it does not name a file")
}
