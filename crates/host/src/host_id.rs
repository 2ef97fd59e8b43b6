//! The host's id, stored in the file `host-id` of the state directory.
//!
//! It is created once and kept, because records refer to it; only a machine that is found to be a copy
//! of another one gets a new one. It is written completely under a temporary name, flushed, and then
//! linked to its own name, so if several processes start at once, one wins and all read its value.
//!
//! *Crash*: before the link there is at most a `.host-id.*.tmp` that is never read; after it the id
//! is complete. A file that is damaged, empty or a link is an error that names it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tenure_core::id::HostId;

use crate::file::{sync_dir, write_atomic, write_beside};
use crate::read::filled;
use crate::{boot, path_error, random};

/// Stands for the machine's id if it has none.
const NO_MACHINE: &str = "unknown";

/// Stands for the host if no id is stored yet.
const NO_HOST: &str = "unknown-none";

/// Longer than any id. A longer file was not written by tenure.
const LIMIT: u64 = 256;

#[derive(Debug, thiserror::Error)]
pub enum HostIdError {
    #[error("cannot use the host id {}: {why}", .path.display())]
    Unusable { path: PathBuf, why: &'static str },
    #[error("cannot use the host id {}: it was removed while it was being created", .path.display())]
    Removed { path: PathBuf },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The id stored in a state directory; the first process creates it.
pub(crate) fn read_or_create(dir: &Path) -> Result<HostId, HostIdError> {
    let path = dir.join("host-id");
    let machine = boot::machine_id();
    let kept = match read(&path)? {
        Some(kept) => kept,
        None => create(&path, machine.as_deref())?,
    };
    Ok(compose(&kept, machine.as_deref()))
}

/// The same for a directory that takes the place of another one: without an id of its own it gets the other's, because
/// records refer to that.
pub(crate) fn read_or_adopt(dir: &Path, other: &Path) -> Result<HostId, HostIdError> {
    let path = dir.join("host-id");
    if read(&path)?.is_none()
        && let Some(kept) = read(&other.join("host-id"))?
    {
        store(&path, &format!("{kept}\n"))?;
    }
    read_or_create(dir)
}

/// The id stored in a state directory; if there is none, one that is never stored.
pub(crate) fn peek(dir: &Path) -> Result<HostId, HostIdError> {
    let kept = read(&dir.join("host-id"))?;
    let machine = boot::machine_id();
    Ok(compose(
        kept.as_deref().unwrap_or(NO_HOST),
        machine.as_deref(),
    ))
}

/// Replaces the stored id by a new one. The caller makes sure that only one process does.
pub(crate) fn replace(dir: &Path) -> Result<HostId, HostIdError> {
    let path = dir.join("host-id");
    let machine = boot::machine_id();
    let random = random::hex16().map_err(|e| path_error::at("create", &path, e))?;
    let id = format!("{}-{random}", machine.as_deref().unwrap_or(NO_MACHINE));
    write_atomic(&path, format!("{id}\n").as_bytes())?;
    Ok(HostId::new(id))
}

/// The machine's current id, with the stored random part.
///
/// A copy of the directory on another machine is thus another host. If the machine's id is not visible (a
/// sandbox), the stored one counts, and both sides still agree.
fn compose(kept: &str, machine: Option<&str>) -> HostId {
    match (machine, kept.rsplit_once('-')) {
        (Some(machine), Some((_, random))) => HostId::new(format!("{machine}-{random}")),
        _ => HostId::new(kept),
    }
}

fn create(path: &Path, machine: Option<&str>) -> Result<String, HostIdError> {
    let random = random::hex16().map_err(|e| path_error::at("create", path, e))?;
    store(
        path,
        &format!("{}-{random}\n", machine.unwrap_or(NO_MACHINE)),
    )
}

/// Stores an id, unless another process is faster; returns the stored one.
fn store(path: &Path, id: &str) -> Result<String, HostIdError> {
    let temporary = write_beside(path, id.as_bytes())?;
    let linked = fs_err::hard_link(&temporary, path);
    fs_err::remove_file(&temporary)?;
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    // The loser flushes as well: it must not use an id that a power failure can still remove.
    sync_dir(path)?;
    read(path)?.ok_or_else(|| HostIdError::Removed {
        path: path.to_owned(),
    })
}

fn unusable(path: &Path, why: &'static str) -> HostIdError {
    HostIdError::Unusable {
        path: path.to_owned(),
        why,
    }
}

fn read(path: &Path) -> Result<Option<String>, HostIdError> {
    // Non-blocking: the name may belong to a pipe.
    let safely = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(path, safely, Mode::empty()) {
        Ok(file) => fs_err::File::from_parts(file.into(), path),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(unusable(path, "it is a symbolic link")),
        Err(error) => return Err(path_error::at("open", path, error).into()),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(unusable(path, "it is not a regular file"));
    }
    let bytes = filled(&mut file, found.len(), LIMIT)?;
    match parse(&bytes) {
        Some(id) => Ok(Some(id)),
        None if bytes.is_empty() => Err(unusable(path, "it is empty")),
        None => Err(unusable(path, "its content is not what tenure wrote")),
    }
}

/// The machine's id, a hyphen and 16 hexadecimal digits.
fn parse(bytes: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (machine, random) = id.rsplit_once('-')?;
    let plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let hex = random.len() == 16 && random.bytes().all(|b| b.is_ascii_hexdigit());
    (hex && plain(random) && plain(machine) && !machine.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: &str = "0123456789abcdef";

    #[test]
    fn a_damaged_id_is_an_error_that_names_the_file_and_leaves_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host-id");
        let uppercase = format!("m-{}\n", RANDOM.to_uppercase());
        for bad in [
            "",
            "\n",
            "m-0123\n",
            "m-0123456789abcdef",
            "-0123456789abcdef\n",
            "../x-0123456789abcdef\n",
            &uppercase,
        ] {
            fs_err::write(&path, bad).unwrap();
            let error = read_or_create(dir.path()).unwrap_err();
            assert!(
                error.to_string().contains(path.to_str().unwrap()),
                "{error}"
            );
            assert_eq!(fs_err::read_to_string(&path).unwrap(), bad);
        }
    }

    #[test]
    fn a_link_or_a_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host-id");
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(matches!(
            read_or_create(dir.path()),
            Err(HostIdError::Unusable { .. })
        ));
        assert!(!dir.path().join("elsewhere").exists());
        fs_err::remove_file(&path).unwrap();
        fs_err::create_dir(&path).unwrap();
        assert!(matches!(
            read_or_create(dir.path()),
            Err(HostIdError::Unusable { .. })
        ));
    }

    #[test]
    fn f_l19_a_copied_directory_is_another_host() {
        let kept = format!("aaaa-{RANDOM}");
        assert_eq!(
            compose(&kept, Some("bbbb")).as_str(),
            format!("bbbb-{RANDOM}")
        );
        assert_eq!(compose(&kept, None).as_str(), kept);
    }
}
