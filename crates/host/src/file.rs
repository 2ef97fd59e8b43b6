//! Files that are complete or absent.
//!
//! The new content is written to a temporary file next to the target, flushed to disk, and renamed
//! over it; then the directory is flushed. A crash at any point leaves the old file or the new one,
//! and perhaps a `.NAME.*.tmp` that is never read. Files are private to the owner (0600). Symbolic
//! links are never followed or replaced, because a link means that another file was intended.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::path_error::{at, no_file, refused};
use crate::random;

/// Replaces the content of `path` atomically; survives a crash.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    refuse_link(path)?;
    let temporary = write_beside(path, bytes)?;
    if let Err(error) = fs_err::rename(&temporary, path) {
        return Err(discard(&temporary, error));
    }
    sync_dir(path)
}

/// Writes a temporary file next to `path`, and flushes it.
pub fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| no_file("write", path))?;
    let mut own = OsString::from(".");
    own.push(name);
    own.push(format!(
        ".{}.tmp",
        random::hex16().map_err(|e| at("write", path, e))?
    ));
    let temporary = path.with_file_name(own);
    let mut file = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::CLOEXEC))
        .open(&temporary)?;
    let written = file.write_all(bytes).and_then(|()| {
        // The umask may have removed the owner's own permissions.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(temporary),
        Err(error) => Err(discard(&temporary, error)),
    }
}

/// Creates a private file, which must not exist.
pub fn create_private(path: &Path) -> io::Result<fs_err::File> {
    let file = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::CLOEXEC))
        .open(path)?;
    give_back(&file)?;
    Ok(file)
}

/// Gives a whole file its name, which no file has, for good.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system without this flag.
        Err(Errno::INVAL | Errno::NOSYS) => fs_err::rename(from, to)?,
        other => other.map_err(|error| at("rename to", to, error))?,
    }
    sync_dir(to)
}

/// Writes a small private file, 0600 from its first byte, without waiting for the disk.
///
/// For data whose loss does no harm; a reader may see it incomplete.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs_err::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
        .open(path)?;
    give_back(&file)?;
    file.write_all(bytes)
}

/// Reads a small file that others may replace at any time; none if there is no regular file.
pub fn read_plain(path: &Path) -> io::Result<Option<String>> {
    /// The longest file that is read this way.
    const LIMIT: u64 = 4 * 1024 * 1024;
    let opened = fs_err::OpenOptions::new()
        .read(true)
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC))
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(refused("read", path, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// An absolute path without symbolic links and `..`. A part that does not exist is taken as it is written, and
/// `..` after it as the part before, as agents do.
pub fn resolve(path: &Path) -> Option<PathBuf> {
    if !path.components().any(|part| part == Component::ParentDir) {
        return path.ancestors().find_map(|above| {
            let whole = fs_err::canonicalize(above).ok()?;
            let below = path.strip_prefix(above).ok()?;
            Some(whole.components().chain(below.components()).collect())
        });
    }
    let mut whole = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            whole.pop();
            continue;
        }
        whole.push(part);
        whole = fs_err::canonicalize(&whole).unwrap_or(whole);
    }
    Some(whole)
}

/// Creates a directory and its missing parents, for the owner alone. Each gets its mode when it is created,
/// whatever the umask, because otherwise nothing could be created below it. An existing directory stays as it
/// is.
pub fn make_dirs(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.is_dir()).collect();
    for dir in missing.into_iter().rev().filter(|dir| **dir != *"") {
        make_dir(dir)?;
    }
    Ok(())
}

/// Creates one directory for the owner alone, whatever the umask; returns whether it was missing.
pub fn make_dir(dir: &Path) -> io::Result<bool> {
    match rustix::fs::mkdir(dir, Mode::RWXU) {
        Ok(()) => {
            fs_err::set_permissions(dir, Permissions::from_mode(0o700))?;
            Ok(true)
        }
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(at("make", dir, error)),
    }
}

/// Restores the owner's permissions on a new file that the umask removed.
pub fn give_back(file: &fs_err::File) -> io::Result<()> {
    let found = file.metadata()?;
    let is_usable = found.permissions().mode() & 0o600 == 0o600;
    if found.len() == 0 && !is_usable {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Removes temporary files that killed writers of `path` left. Only for a caller that holds the lock that every
/// writer of `path` takes.
pub fn remove_leftovers(path: &Path) -> io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let begin = format!(".{}.", name.to_string_lossy());
    for entry in fs_err::read_dir(dir)? {
        let entry = entry?;
        let found = entry.file_name();
        let found = found.to_string_lossy();
        let middle = found
            .strip_prefix(&begin)
            .and_then(|rest| rest.strip_suffix(".tmp"));
        if middle.is_some_and(|middle| {
            middle.len() == 16 && middle.bytes().all(|b| b.is_ascii_hexdigit())
        }) {
            fs_err::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file and flushes its directory; a missing file is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs_err::remove_file(path) {
        Ok(()) => sync_dir(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a temporary file after `error`, which is returned.
fn discard(temporary: &Path, error: io::Error) -> io::Error {
    match fs_err::remove_file(temporary) {
        Ok(()) => error,
        Err(second) => io::Error::new(error.kind(), format!("{error}; and {second}")),
    }
}

/// Flushes the directory of `path`, so that its name survives a power failure.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    fs_err::File::open(dir_of(path))?.sync_all()
}

fn dir_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The same file as an absolute path; a link at the end is not followed, and the file need not exist.
pub(crate) fn from_anywhere(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| no_file("find", path))?;
    Ok(fs_err::canonicalize(dir_of(path))?.join(name))
}

/// Flags in the form that the standard library takes.
pub(crate) fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).expect("open flags are defined as an int")
}

fn refuse_link(path: &Path) -> io::Result<()> {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(refused("write", path, "it is a symbolic link")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(dir: &Path) -> Vec<OsString> {
        fs_err::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect()
    }

    #[test]
    fn content_is_replaced_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs_err::read(&path).unwrap(), b"two");
        assert_eq!(
            fs_err::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn a_symbolic_link_is_refused_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs_err::write(&target, "theirs").unwrap();
        symlink(&target, &link).unwrap();
        let error = write_atomic(&link, b"ours").unwrap_err();
        assert!(
            error.to_string().contains(link.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(fs_err::read(&target).unwrap(), b"theirs");
        assert_eq!(names(dir.path()).len(), 2);
    }

    #[test]
    fn leftovers_of_killed_writers_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        drop(write_beside(&path, b"half").unwrap());
        for other in [".b.tmp", ".a.tmp", ".a.short.tmp", "a"] {
            fs_err::write(dir.path().join(other), "theirs").unwrap();
        }
        assert_eq!(names(dir.path()).len(), 5);
        remove_leftovers(&path).unwrap();
        assert_eq!(names(dir.path()).len(), 4);
    }

    #[test]
    fn only_a_plain_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(read_plain(&path).unwrap(), None);
        fs_err::write(&path, "text").unwrap();
        assert_eq!(read_plain(&path).unwrap().as_deref(), Some("text"));
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(read_plain(&link).is_err());
        assert!(read_plain(dir.path()).is_err());
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_failed_write_removes_its_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs_err::create_dir(&path).unwrap();
        let error = write_atomic(&path, b"x").unwrap_err();
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(names(dir.path()), ["a"]);
        let missing = dir.path().join("no/such");
        assert!(
            write_atomic(&missing, b"x")
                .unwrap_err()
                .to_string()
                .contains("no/")
        );
    }
}
