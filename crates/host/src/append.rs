//! Appending whole lines to a file that others read, all or nothing.
//!
//! Only under the path's lock. What will be appended is first written to a journal beside the lock file, with
//! the length that the target has; whoever has the lock next finishes an append that a kill cut short in
//! the middle, and forgets one that had not begun. So a reader under the lock sees all of an append or
//! nothing of it, and an append that was acknowledged is there. The target is only ever made longer, but
//! for what a failed append of our own added.
//!
//! Refused: a target that is not a plain file of ours with one name (links could lead to another's file), and
//! one whose last line is torn, because our first line would become part of it.
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
//! # assert_eq!(std::fs::read(&path)?, b"{\"n\":1}\n");
//! # Ok(())
//! # }
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::Digest;

use crate::file;
use crate::kernel_lock::{LockDir, LockError, LockName, Patience, Sharing};
use crate::path_error::at;

/// Whether to wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has it: it survives our death, not a power cut.
    Kernel,
    /// The disk has it.
    Disk,
}

/// Why nothing was appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The input is not whole lines.
    #[error("the input is not whole lines: {0}")]
    NotLines(&'static str),
    /// The target is not a file that may be appended to.
    #[error("{} {why}", path.display())]
    Target {
        /// The target.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The path's lock was not had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What the journal says of an append.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    path: PathBuf,
    offset: u64,
    length: u64,
    sha256: String,
}

/// Appends whole lines; returns where they begin.
pub fn append_lines(
    locks: &LockDir,
    path: &Path,
    lines: &[u8],
    patience: Patience,
    durability: Durability,
) -> Result<u64, AppendError> {
    check_lines(lines)?;
    let name = LockName::of_path(path)?;
    let held = locks.lock(&name, Sharing::Exclusive, patience)?;
    let journal = locks.path().join(format!("{}~journal", name.file()));
    recover(&journal)?;
    let mut target = open_target(path)?;
    let offset = target.metadata()?.len();
    refuse_torn(path, &mut target, offset)?;
    write_journal(&journal, path, offset, lines, durability)?;
    if let Err(error) = target.write_all(lines) {
        // What we added ourselves, and nothing else, is taken back.
        let undone = target.set_len(offset);
        std::fs::remove_file(&journal)?;
        undone?;
        return Err(at("append to", path, error).into());
    }
    if durability == Durability::Disk {
        target.sync_all()?;
        file::sync_dir(path)?;
    }
    let there = std::fs::symlink_metadata(path).ok();
    let ours = target.metadata()?;
    std::fs::remove_file(&journal)?;
    if there.is_none_or(|found| (found.dev(), found.ino()) != (ours.dev(), ours.ino())) {
        let why = "was removed or replaced while it was appended to";
        return Err(refused(path, why));
    }
    held.unlock();
    Ok(offset)
}

fn refused(path: &Path, why: &'static str) -> AppendError {
    AppendError::Target {
        path: path.to_owned(),
        why,
    }
}

fn check_lines(lines: &[u8]) -> Result<(), AppendError> {
    match lines {
        [] => Err(AppendError::NotLines("it is empty")),
        [.., last] if *last != b'\n' => Err(AppendError::NotLines("the last line has no end")),
        lines if lines.contains(&0) => Err(AppendError::NotLines("it contains a NUL byte")),
        _ => Ok(()),
    }
}

/// Opens the target without following a link and without waiting for the other end of a pipe.
fn open_target(path: &Path) -> Result<File, AppendError> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        let kind = found.file_type();
        if kind.is_symlink() {
            return Err(refused(path, "is a symbolic link"));
        }
        if !kind.is_file() {
            return Err(refused(path, "is not a plain file"));
        }
    }
    let target = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(file::flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
        .open(path)
        .map_err(|error| at("open", path, error))?;
    file::give_back(&target).map_err(|error| at("set the mode of", path, error))?;
    let found = target.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    match () {
        () if !found.is_file() => Err(refused(path, "is not a plain file")),
        () if found.nlink() > 1 => Err(refused(
            path,
            "has a second name (a hard link), which may be another's file",
        )),
        () if found.uid() != own => Err(refused(path, "belongs to another user")),
        () => Ok(target),
    }
}

fn refuse_torn(path: &Path, target: &mut File, length: u64) -> Result<(), AppendError> {
    if length == 0 {
        return Ok(());
    }
    target.seek(SeekFrom::Start(length - 1))?;
    let mut last = [0];
    target.read_exact(&mut last)?;
    if last == [b'\n'] {
        Ok(())
    } else {
        Err(refused(path, "ends in a torn line"))
    }
}

fn hash(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn write_journal(
    journal: &Path,
    path: &Path,
    offset: u64,
    lines: &[u8],
    durability: Durability,
) -> io::Result<()> {
    let intent = Intent {
        path: from_anywhere(path)?,
        offset,
        length: lines.len() as u64,
        sha256: hash(lines),
    };
    let mut bytes = serde_json::to_vec(&intent)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(lines);
    match durability {
        Durability::Disk => file::write_atomic(journal, &bytes),
        Durability::Kernel => file::write_private(journal, &bytes),
    }
}

/// The same file for a process in another directory; a link at the end is not followed.
fn from_anywhere(path: &Path) -> io::Result<PathBuf> {
    let odd = || io::Error::new(io::ErrorKind::InvalidInput, "it does not name a file");
    let name = path.file_name().ok_or_else(odd)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Ok(std::fs::canonicalize(parent)?.join(name))
}

/// Finishes an append that was cut short; forgets one that had not begun, or whose journal is torn.
fn recover(journal: &Path) -> Result<(), AppendError> {
    let bytes = match std::fs::read(journal) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(at("read", journal, error).into()),
    };
    if let Some((intent, lines)) = read_journal(&bytes)
        && let Ok(mut target) = open_target(&intent.path)
    {
        finish(&mut target, &intent, lines)?;
    }
    std::fs::remove_file(journal).map_err(|error| at("remove", journal, error))?;
    Ok(())
}

fn read_journal(bytes: &[u8]) -> Option<(Intent, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let intent: Intent = serde_json::from_slice(&bytes[..end]).ok()?;
    let lines = &bytes[end + 1..];
    (lines.len() as u64 == intent.length && hash(lines) == intent.sha256).then_some((intent, lines))
}

fn finish(target: &mut File, intent: &Intent, lines: &[u8]) -> io::Result<()> {
    let length = target.metadata()?.len();
    if length <= intent.offset || length >= intent.offset + intent.length {
        return Ok(());
    }
    let mut there = Vec::new();
    target.seek(SeekFrom::Start(intent.offset))?;
    target.read_to_end(&mut there)?;
    match lines.strip_prefix(there.as_slice()) {
        Some(rest) => target.write_all(rest),
        // Somebody who ignores the lock wrote there; it is theirs.
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        dir: tempfile::TempDir,
        locks: LockDir,
    }

    impl Place {
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

        fn journal(&self) -> PathBuf {
            let name = LockName::of_path(&self.file()).unwrap();
            self.locks.path().join(format!("{}~journal", name.file()))
        }
    }

    #[test]
    fn lines_are_appended_whole() {
        let place = Place::new();
        assert_eq!(place.append(b"a\n").unwrap(), 0);
        assert_eq!(place.append(b"b\nc\n").unwrap(), 2);
        assert_eq!(std::fs::read(place.file()).unwrap(), b"a\nb\nc\n");
        assert!(!place.journal().exists());
        for bad in [&b""[..], b"x", b"x\ny", b"x\0\n"] {
            assert!(matches!(place.append(bad), Err(AppendError::NotLines(_))));
        }
        assert_eq!(std::fs::read(place.file()).unwrap(), b"a\nb\nc\n");
    }

    #[test]
    fn an_append_that_a_kill_cut_short_is_finished_by_the_next() {
        let place = Place::new();
        place.append(b"a\n").unwrap();
        write_journal(
            &place.journal(),
            &place.file(),
            2,
            b"long line\n",
            Durability::Kernel,
        )
        .unwrap();
        std::fs::write(place.file(), b"a\nlong").unwrap();
        place.append(b"z\n").unwrap();
        assert_eq!(std::fs::read(place.file()).unwrap(), b"a\nlong line\nz\n");
    }

    #[test]
    fn an_append_that_had_not_begun_is_forgotten() {
        let place = Place::new();
        place.append(b"a\n").unwrap();
        write_journal(
            &place.journal(),
            &place.file(),
            2,
            b"never\n",
            Durability::Kernel,
        )
        .unwrap();
        place.append(b"z\n").unwrap();
        assert_eq!(std::fs::read(place.file()).unwrap(), b"a\nz\n");
        std::fs::write(place.journal(), b"torn").unwrap();
        place.append(b"y\n").unwrap();
        assert_eq!(std::fs::read(place.file()).unwrap(), b"a\nz\ny\n");
    }

    #[test]
    fn f_d07_a_torn_tail_is_reported_not_repaired() {
        let place = Place::new();
        std::fs::write(place.file(), b"a\nto").unwrap();
        assert!(matches!(
            place.append(b"z\n"),
            Err(AppendError::Target { .. })
        ));
        assert_eq!(std::fs::read(place.file()).unwrap(), b"a\nto");
    }

    #[test]
    fn links_pipes_and_directories_are_refused() {
        let place = Place::new();
        let other = place.dir.path().join("other.jsonl");
        std::fs::write(&other, b"theirs\n").unwrap();
        std::os::unix::fs::symlink(&other, place.file()).unwrap();
        assert!(place.append(b"z\n").is_err());
        std::fs::remove_file(place.file()).unwrap();
        std::fs::hard_link(&other, place.file()).unwrap();
        assert!(matches!(
            place.append(b"z\n"),
            Err(AppendError::Target { .. })
        ));
        std::fs::remove_file(place.file()).unwrap();
        std::fs::create_dir(place.file()).unwrap();
        assert!(matches!(
            place.append(b"z\n"),
            Err(AppendError::Target { .. })
        ));
        std::fs::remove_dir(place.file()).unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            place.file(),
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .unwrap();
        assert!(matches!(
            place.append(b"z\n"),
            Err(AppendError::Target { .. })
        ));
        assert_eq!(std::fs::read(&other).unwrap(), b"theirs\n");
    }
}
