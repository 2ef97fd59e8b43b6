//! Reading the files of /proc. Leaf module: every module of this system may use it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Most files read here are far shorter.
pub(super) const FILE_LIMIT: usize = 4096;

pub(super) fn proc_path(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// What a descriptor of this process refers to.
pub(super) fn own_link(descriptor: i32) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{descriptor}"))
}

pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_file(path, FILE_LIMIT)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// Reads a kernel file. The kernel returns a small file in one read: if less came than there was room for, that
/// was all. Reading them in growing pieces would dominate the cost of a hook.
#[expect(
    clippy::disallowed_methods,
    reason = "fs_err hides the error's number, and ESRCH is an answer"
)]
pub(super) fn read_file(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; FILE_LIMIT];
    let mut filled = 0;
    loop {
        match file.read(&mut bytes[filled..]) {
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if filled < bytes.len() || filled >= limit {
            bytes.truncate(filled.min(limit));
            return Ok(bytes);
        }
        bytes.resize((bytes.len() * 4).min(limit), 0);
    }
}

/// Reads a kernel file to its end, or this far. The kernel returns a table in pieces, so only the end says that it was all.
#[expect(
    clippy::disallowed_methods,
    reason = "fs_err hides the error's number, and ESRCH is an answer"
)]
pub(super) fn read_whole(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(FILE_LIMIT);
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The numbers in one line of a status file. The kernel escapes newlines in the Name line, so no process can
/// forge another line.
pub(super) fn numbers<'a>(
    status: &'a [u8],
    name: &[u8],
) -> Option<std::str::SplitAsciiWhitespace<'a>> {
    let line = status
        .split(|b| *b == b'\n')
        .find_map(|line| line.strip_prefix(name))?;
    Some(std::str::from_utf8(line).ok()?.split_ascii_whitespace())
}

/// The names in a directory; none if it is gone or not readable.
pub(super) fn names(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}
