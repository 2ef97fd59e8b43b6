//! Appending complete lines to a file that others read, all or nothing.
//!
//! Our own appends take the path's lock. The program that owns the file appends to it without that
//! lock, at any moment. So the file is never truncated, whatever goes wrong: the other program's
//! lines could arrive just before the truncation and would be lost. Instead, space is reserved
//! first (`space`), and the lines are written to the end of the file in one write.
//!
//! The lines are first written to a journal next to the lock file. The next append completes one
//! that a kill or a full disk interrupted, if nothing follows it yet, and discards one that had not
//! started. An interrupted write is reported with the offset and length of what was written
//! ([`AppendError::Torn`]). It is completed if possible, and otherwise ended with a newline, so
//! that the next line is not joined to it. *Not covered*: the other program's next line is joined
//! to ours if it is written between a short write and its completion, or after a kill in the middle
//! of our write.
//!
//! Refused: a target that is not our own regular file with a single name (links could lead to
//! another user's file), and one whose last line is incomplete, because our first line would become
//! part of it.
//!
//! ```
//! use std::time::Duration;
//! use tenure_host::append::{Durability, append_lines};
//! use tenure_host::kernel_lock::{LockDir, Patience};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let path = scratch.path().join("log.jsonl");
//! let locks = LockDir::open(&scratch.path().join("locks"))?;
//! let patience = Patience::AtMost(Duration::from_secs(10));
//! append_lines(&locks, &path, b"{\"n\":1}\n", patience, Durability::Disk)?;
//! # assert_eq!(fs_err::read(&path)?, b"{\"n\":1}\n");
//! # Ok(())
//! # }
//! ```

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::digest::sha256;
use crate::file;
use crate::kernel_lock::{LockDir, LockError, LockName, Patience, Sharing};
use crate::path_error::at;
use crate::pause;
use crate::space;

/// Whether to wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has the data: it survives our death, but not a power failure.
    Kernel,
    Disk,
}

/// Why nothing, or not everything, was appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error("the input is not complete lines ({0})")]
    NotLines(&'static str),
    #[error("{} {why}", path.display())]
    Target { path: PathBuf, why: &'static str },
    #[error("{} ends with an incomplete line", path.display())]
    Incomplete { path: PathBuf },
    /// The write was interrupted, and part of it is in the file.
    #[error("wrote only {written} of {length} bytes to {} at offset {offset} ({why})", path.display())]
    Torn {
        path: PathBuf,
        offset: u64,
        /// In bytes.
        written: u64,
        /// In bytes, when complete.
        length: u64,
        /// Whether the next append completes it if nothing follows until then.
        resumable: bool,
        why: io::Error,
    },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why an interrupted write was not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another program appended in the middle of it")]
pub struct Followed;

/// The journal entry of an append.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    path: PathBuf,
    offset: u64,
    length: u64,
    sha256: String,
}

/// Appends complete lines; returns their offset.
pub fn append_lines(
    locks: &LockDir,
    path: &Path,
    lines: &[u8],
    patience: Patience,
    durability: Durability,
) -> Result<u64, AppendError> {
    check_whole(lines)?;
    let name = LockName::of_path(path)?;
    let held = locks.lock(&name, Sharing::Exclusive, patience)?;
    let journal = journal_of(locks, &name);
    recover(&journal)?;
    let mut target = open_target(path)?;
    let offset = whole_length(path, &mut target)?;
    let length = lines.len() as u64;
    space::reserve(&target, offset, length).map_err(|error| at("append to", path, error))?;
    write_journal(&journal, path, offset, lines, durability)?;
    let offset = match write_at_end(&mut target, lines) {
        Ok(offset) => offset,
        Err(CutWrite::Nothing(error)) => {
            fs_err::remove_file(&journal)?;
            return Err(at("append to", path, error).into());
        }
        Err(CutWrite::Short(short)) => {
            if !short.resumable {
                fs_err::remove_file(&journal)?;
            }
            return Err(AppendError::Torn {
                path: path.to_owned(),
                offset: short.offset,
                written: short.written,
                length,
                resumable: short.resumable,
                why: short.why,
            });
        }
    };
    if durability == Durability::Disk {
        target.sync_all()?;
        file::sync_dir(path)?;
    }
    let there = fs_err::symlink_metadata(path).ok();
    let ours = target.metadata()?;
    fs_err::remove_file(&journal)?;
    if there.is_none_or(|found| (found.dev(), found.ino()) != (ours.dev(), ours.ino())) {
        let why = "was removed or replaced during the append";
        return Err(refused(path, why));
    }
    held.unlock();
    Ok(offset)
}

/// Why a write to the end of a file did not add all of it.
#[derive(Debug)]
enum CutWrite {
    Nothing(io::Error),
    Short(Short),
}

#[derive(Debug)]
struct Short {
    offset: u64,
    written: u64,
    /// Whether the partial write is still the last thing in the file, with no newline added.
    resumable: bool,
    why: io::Error,
}

/// Writes to the end of a file that others append to; returns the offset of the bytes.
fn write_at_end(target: &mut File, bytes: &[u8]) -> Result<u64, CutWrite> {
    let first = write_once(target, bytes).map_err(CutWrite::Nothing)?;
    if first == 0 {
        return Err(CutWrite::Nothing(io::ErrorKind::WriteZero.into()));
    }
    // The kernel reports where an append ended, whatever others appended before it.
    let mut end = target.stream_position().map_err(CutWrite::Nothing)?;
    let offset = end - first as u64;
    let mut written = first;
    let short = |written: usize, resumable: bool, why: io::Error| {
        CutWrite::Short(Short {
            offset,
            written: written as u64,
            resumable,
            why,
        })
    };
    while written < bytes.len() {
        match continue_at(target, end, &bytes[written..]) {
            Ok(more) => {
                written += more;
                end += more as u64;
            }
            Err(Interrupted::Followed) => {
                return Err(short(written, false, io::Error::other(Followed)));
            }
            Err(Interrupted::Failed(why)) => {
                let is_whole = bytes[written - 1] == b'\n';
                let ended = !is_whole && continue_at(target, end, b"\n").is_ok();
                return Err(short(written, !ended, why));
            }
        }
    }
    Ok(offset)
}

/// Why a write was not continued.
enum Interrupted {
    /// Another program's bytes follow ours.
    Followed,
    Failed(io::Error),
}

/// Appends where our last write ended, if nothing follows it.
fn continue_at(target: &mut File, end: u64, rest: &[u8]) -> Result<usize, Interrupted> {
    if target.metadata().map_err(Interrupted::Failed)?.len() != end {
        return Err(Interrupted::Followed);
    }
    if space::is_at_size_limit(end) {
        return Err(Interrupted::Failed(Errno::FBIG.into()));
    }
    let more = write_once(target, rest).map_err(Interrupted::Failed)?;
    if more == 0 {
        return Err(Interrupted::Failed(io::ErrorKind::WriteZero.into()));
    }
    if target.stream_position().map_err(Interrupted::Failed)? == end + more as u64 {
        Ok(more)
    } else {
        Err(Interrupted::Followed)
    }
}

fn write_once(target: &mut File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match target.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn refused(path: &Path, why: &'static str) -> AppendError {
    AppendError::Target {
        path: path.to_owned(),
        why,
    }
}

/// Checks that the input is complete lines.
pub fn check_whole(lines: &[u8]) -> Result<(), AppendError> {
    match lines {
        [] => Err(AppendError::NotLines("it is empty")),
        [.., last] if *last != b'\n' => Err(AppendError::NotLines("the last line has no newline")),
        lines if lines.contains(&0) => Err(AppendError::NotLines("it contains a NUL byte")),
        _ => Ok(()),
    }
}

/// Opens the target without following a link and without waiting for the other end of a pipe.
pub(crate) fn open_target(path: &Path) -> Result<File, AppendError> {
    if let Ok(found) = fs_err::symlink_metadata(path) {
        let kind = found.file_type();
        if kind.is_symlink() {
            return Err(refused(path, "is a symbolic link"));
        }
        if !kind.is_file() {
            return Err(refused(path, "is not a regular file"));
        }
    }
    let target = fs_err::OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(file::flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
        .open(path)?;
    file::give_back(&target)?;
    let found = target.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_file() {
        Err(refused(path, "is not a regular file"))
    } else if found.nlink() > 1 {
        Err(refused(
            path,
            "has another hard link, which may belong to another user",
        ))
    } else if found.uid() != own {
        Err(refused(path, "belongs to another user"))
    } else {
        Ok(target.into_file())
    }
}

/// How often an incomplete last line is read again: another program may be writing it, and a write that crosses
/// a page becomes visible in two parts.
const LOOKS: u32 = 20;

/// The length of the target, whose last line must be complete.
fn whole_length(path: &Path, target: &mut File) -> Result<u64, AppendError> {
    for _ in 0..LOOKS {
        let length = target.metadata()?.len();
        if length == 0 {
            return Ok(length);
        }
        target.seek(SeekFrom::Start(length - 1))?;
        let mut last = [0];
        target.read_exact(&mut last)?;
        if last == [b'\n'] {
            return Ok(length);
        }
        pause::sleep(Duration::from_millis(5));
    }
    Err(AppendError::Incomplete {
        path: path.to_owned(),
    })
}

fn write_journal(
    journal: &Path,
    path: &Path,
    offset: u64,
    lines: &[u8],
    durability: Durability,
) -> io::Result<()> {
    let intent = Intent {
        path: file::from_anywhere(path)?,
        offset,
        length: lines.len() as u64,
        sha256: sha256(lines),
    };
    let mut bytes = serde_json::to_vec(&intent)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(lines);
    match durability {
        Durability::Disk => file::write_atomic(journal, &bytes),
        Durability::Kernel => file::write_private(journal, &bytes),
    }
}

fn journal_of(locks: &LockDir, name: &LockName) -> PathBuf {
    locks.path().join(format!("{}~journal", name.file()))
}

/// Completes an interrupted append to a file whose lock is held.
pub(crate) fn recover_at(locks: &LockDir, name: &LockName) -> Result<(), AppendError> {
    recover(&journal_of(locks, name))
}

/// Completes an interrupted append. Discards one that had not started, or whose journal is
/// incomplete.
fn recover(journal: &Path) -> Result<(), AppendError> {
    let bytes = match fs_err::read(journal) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if let Some((intent, lines)) = read_journal(&bytes)
        && let Ok(mut target) = open_target(&intent.path)
    {
        finish(&mut target, &intent, lines)
            .map_err(|error| at("append to", &intent.path, error))?;
    }
    Ok(fs_err::remove_file(journal)?)
}

fn read_journal(bytes: &[u8]) -> Option<(Intent, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let intent: Intent = serde_json::from_slice(&bytes[..end]).ok()?;
    let lines = &bytes[end + 1..];
    (lines.len() as u64 == intent.length && sha256(lines) == intent.sha256)
        .then_some((intent, lines))
}

fn finish(target: &mut File, intent: &Intent, lines: &[u8]) -> io::Result<()> {
    let length = target.metadata()?.len();
    if length <= intent.offset {
        return Ok(());
    }
    let mut there = Vec::new();
    target.seek(SeekFrom::Start(intent.offset))?;
    target.read_to_end(&mut there)?;
    let Some(rest) = missing(&there, lines) else {
        return Ok(());
    };
    space::reserve(target, length, rest.len() as u64)?;
    write_at_end(target, rest)
        .map(drop)
        .map_err(|cut| match cut {
            CutWrite::Nothing(why) | CutWrite::Short(Short { why, .. }) => why,
        })
}

/// The part of our lines that is missing, if the file ends with their beginning. Another program's
/// lines may come before ours. If it wrote after ours, nothing is added.
fn missing<'a>(there: &[u8], lines: &'a [u8]) -> Option<&'a [u8]> {
    let breaks = there.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1));
    starts
        .filter(|start| *start < there.len())
        .find_map(|start| lines.strip_prefix(&there[start..]))
        .filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestDir {
        dir: tempfile::TempDir,
        locks: LockDir,
    }

    impl TestDir {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let locks = LockDir::open(&dir.path().join("locks")).unwrap();
            Self { dir, locks }
        }

        fn file(&self) -> PathBuf {
            self.dir.path().join("t.jsonl")
        }

        fn append(&self, lines: &[u8]) -> Result<u64, AppendError> {
            append_lines(
                &self.locks,
                &self.file(),
                lines,
                Patience::None,
                Durability::Kernel,
            )
        }

        /// The state that a process leaves if it is killed after writing the journal.
        fn intend(&self, path: &Path, lines: &[u8]) {
            write_journal(&self.journal(), path, 2, lines, Durability::Kernel).unwrap();
        }

        fn journal(&self) -> PathBuf {
            let name = LockName::of_path(&self.file()).unwrap();
            self.locks.path().join(format!("{}~journal", name.file()))
        }
    }

    #[test]
    fn lines_are_appended_whole() {
        let place = TestDir::new();
        assert_eq!(place.append(b"a\n").unwrap(), 0);
        assert_eq!(place.append(b"b\nc\n").unwrap(), 2);
        assert_eq!(fs_err::read(place.file()).unwrap(), b"a\nb\nc\n");
        assert!(!place.journal().exists());
        for bad in [&b""[..], b"x", b"x\ny", b"x\0\n"] {
            assert!(matches!(place.append(bad), Err(AppendError::NotLines(_))));
        }
        assert_eq!(fs_err::read(place.file()).unwrap(), b"a\nb\nc\n");
    }

    #[test]
    fn an_append_that_a_kill_cut_short_is_finished_by_the_next() {
        let place = TestDir::new();
        place.append(b"a\n").unwrap();
        place.intend(&place.file(), b"long line\n");
        fs_err::write(place.file(), b"a\nlong").unwrap();
        place.append(b"z\n").unwrap();
        assert_eq!(fs_err::read(place.file()).unwrap(), b"a\nlong line\nz\n");
    }

    #[test]
    fn an_append_that_was_cut_short_is_finished_from_any_directory() {
        let place = TestDir::new();
        place.append(b"a\n").unwrap();
        let depth = std::env::current_dir().unwrap().components().count();
        let mut relative: PathBuf = std::iter::repeat_n("..", depth).collect();
        relative.push(place.file().strip_prefix("/").unwrap());
        place.intend(&relative, b"long line\n");
        let journal = fs_err::read(place.journal()).unwrap();
        let (intent, _) = read_journal(&journal).unwrap();
        assert_eq!(intent.path, fs_err::canonicalize(place.file()).unwrap());
        fs_err::write(place.file(), b"a\nlong").unwrap();
        place.append(b"z\n").unwrap();
        assert_eq!(fs_err::read(place.file()).unwrap(), b"a\nlong line\nz\n");
    }

    #[test]
    fn only_what_is_the_end_of_the_file_is_finished() {
        let lines = b"one\ntwo\n";
        let rest = |there: &[u8]| missing(there, lines).map(<[u8]>::to_vec);
        assert_eq!(rest(b"on"), Some(b"e\ntwo\n".to_vec()));
        assert_eq!(rest(b"one\n"), Some(b"two\n".to_vec()));
        assert_eq!(rest(b"theirs\none\nt"), Some(b"wo\n".to_vec()));
        assert_eq!(rest(b"ontheirs\n"), None);
        assert_eq!(rest(b"theirs\n"), None);
        assert_eq!(rest(b"one\ntwo\n"), None);
        assert_eq!(rest(b"theirs\none\ntwo\ntheirs\n"), None);
        assert_eq!(rest(b""), None);
    }

    #[test]
    fn an_append_that_had_not_begun_is_forgotten() {
        let place = TestDir::new();
        place.append(b"a\n").unwrap();
        place.intend(&place.file(), b"never\n");
        place.append(b"z\n").unwrap();
        assert_eq!(fs_err::read(place.file()).unwrap(), b"a\nz\n");
        fs_err::write(place.journal(), b"torn").unwrap();
        place.append(b"y\n").unwrap();
        assert_eq!(fs_err::read(place.file()).unwrap(), b"a\nz\ny\n");
    }

    #[test]
    fn f_d07_a_torn_tail_is_reported_not_repaired() {
        let place = TestDir::new();
        fs_err::write(place.file(), b"a\nto").unwrap();
        assert!(matches!(
            place.append(b"z\n"),
            Err(AppendError::Incomplete { .. })
        ));
        assert_eq!(fs_err::read(place.file()).unwrap(), b"a\nto");
    }

    #[test]
    fn links_pipes_and_directories_are_refused() {
        let refused =
            |place: &TestDir| matches!(place.append(b"z\n"), Err(AppendError::Target { .. }));
        let place = TestDir::new();
        let other = place.dir.path().join("other.jsonl");
        fs_err::write(&other, b"theirs\n").unwrap();
        std::os::unix::fs::symlink(&other, place.file()).unwrap();
        assert!(place.append(b"z\n").is_err());
        fs_err::remove_file(place.file()).unwrap();
        fs_err::hard_link(&other, place.file()).unwrap();
        assert!(refused(&place));
        fs_err::remove_file(place.file()).unwrap();
        fs_err::create_dir(place.file()).unwrap();
        assert!(refused(&place));
        fs_err::remove_dir(place.file()).unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            place.file(),
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .unwrap();
        assert!(refused(&place));
        assert_eq!(fs_err::read(&other).unwrap(), b"theirs\n");
    }
}
