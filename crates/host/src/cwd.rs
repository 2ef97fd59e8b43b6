//! The working directory of this process, even if it was deleted.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::system;

/// What the kernel appends to the name of a deleted directory.
const GONE: &[u8] = b" (deleted)";

/// The current directory, if it still exists.
pub fn current() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// The name of the working directory, which may no longer exist; the root if unknown.
pub fn name() -> PathBuf {
    current().unwrap_or_else(|| {
        let link = system::own_working_dir();
        link.map_or_else(|_| PathBuf::from("/"), |link| name_of(&link))
    })
}

fn name_of(link: &Path) -> PathBuf {
    let bytes = link.as_os_str().as_bytes();
    let name = bytes.strip_suffix(GONE).unwrap_or(bytes);
    if name.starts_with(b"/") {
        PathBuf::from(OsStr::from_bytes(name))
    } else {
        PathBuf::from("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_directory_keeps_its_name() {
        assert_eq!(name_of(Path::new("/a/b (deleted)")), Path::new("/a/b"));
        assert_eq!(name_of(Path::new("/a/b")), Path::new("/a/b"));
        assert_eq!(name_of(Path::new("(unreachable)/a")), Path::new("/"));
    }
}
