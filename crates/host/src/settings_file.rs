//! Settings of other programs, written by their users and edited by tenure.
//!
//! A file is read once, with its owner and mode. It is replaced atomically, survives a crash and keeps its
//! mode. A symbolic link is followed to its target, because people link their settings from elsewhere. A change
//! made in between is never overwritten. A file that is not the user's own regular file is left alone.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tenure_core::ignore::Ignore;

use crate::file::{sync_dir, write_atomic, write_beside};
use crate::read;

/// The largest settings file.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{} is not a regular file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("{} belongs to uid {owner}, not to uid {user}", .path.display())]
    OtherOwner {
        path: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error("{} is a symbolic link to a missing file", .path.display())]
    DanglingLink { path: PathBuf },
    /// It is not UTF-8, or far too large.
    #[error("{} is {what}", .path.display())]
    NotText { path: PathBuf, what: &'static str },
    #[error("another program changed {} at the same time", .path.display())]
    Changed { path: PathBuf },
    #[error(transparent)]
    Io(#[from] io::Error),
}

pub struct SettingsFile {
    path: PathBuf,
    /// With links resolved; the same as `path` for a missing file.
    real: PathBuf,
    text: Option<String>,
    mode: u32,
}

impl fmt::Debug for SettingsFile {
    /// Hides the content, because settings may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl SettingsFile {
    /// Reads a file that may be missing.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let absent = |path: &Path| Self {
            path: path.to_owned(),
            real: path.to_owned(),
            text: None,
            mode: 0o600,
        };
        let found = match fs_err::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(absent(path)),
            Err(error) => return Err(error.into()),
        };
        let real = match fs_err::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == ErrorKind::NotFound && found.is_symlink() => {
                let path = path.to_owned();
                return Err(SettingsError::DanglingLink { path });
            }
            Err(error) => return Err(error.into()),
        };
        let (text, mode) = read_own(path, &real)?;
        Ok(Self {
            path: path.to_owned(),
            real,
            text: Some(text),
            mode,
        })
    }

    /// Its path, as the user names it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its content; none if it is missing.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Writes this content; creates the file and its directories if they are missing.
    pub fn write(&self, text: &str) -> Result<(), SettingsError> {
        if let Some(dir) = self.real.parent()
            && self.text.is_none()
        {
            make_dirs(dir)?;
        }
        let temporary = write_beside(&self.real, text.as_bytes())?;
        let replaced = self.replace_with(&temporary);
        if replaced.is_err() {
            fs_err::remove_file(&temporary).ignore("the first error is the one to report");
        }
        replaced
    }

    fn replace_with(&self, temporary: &Path) -> Result<(), SettingsError> {
        fs_err::set_permissions(temporary, std::fs::Permissions::from_mode(self.mode))?;
        self.check_unchanged()?;
        fs_err::rename(temporary, &self.real)?;
        Ok(sync_dir(&self.real)?)
    }

    /// Removes it; a link to it stays.
    pub fn remove(&self) -> Result<(), SettingsError> {
        self.check_unchanged()?;
        fs_err::remove_file(&self.real)?;
        Ok(sync_dir(&self.real)?)
    }

    /// Copies its content to another name, once: an existing copy is left alone.
    pub fn back_up(&self, copy: &Path) -> Result<(), SettingsError> {
        let Some(text) = &self.text else {
            return Ok(());
        };
        if fs_err::symlink_metadata(copy).is_ok() {
            return Ok(());
        }
        Ok(write_atomic(copy, text.as_bytes())?)
    }

    fn check_unchanged(&self) -> Result<(), SettingsError> {
        let now = Self::read(&self.path)?;
        if now.text == self.text && now.real == self.real {
            return Ok(());
        }
        Err(SettingsError::Changed {
            path: self.path.clone(),
        })
    }
}

/// The content and mode of our own regular file; checked on the opened file.
fn read_own(path: &Path, real: &Path) -> Result<(String, u32), SettingsError> {
    let named = || path.to_owned();
    let file = match read::open(real) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            return Err(SettingsError::NotAFile { path: named() });
        }
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        return Err(SettingsError::OtherOwner {
            path: named(),
            owner: found.uid(),
            user,
        });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    let what = if bytes.len() as u64 > MAX_BYTES {
        Err("larger than 16 MiB")
    } else {
        String::from_utf8(bytes).map_err(|_| "not UTF-8 text")
    };
    let text = what.map_err(|what| SettingsError::NotText {
        path: named(),
        what,
    })?;
    Ok((text, found.mode() & 0o7777))
}

fn make_dirs(dir: &Path) -> io::Result<()> {
    crate::file::make_dirs(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs_err::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_link_and_the_mode_of_its_file_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("dotfiles.json"), dir.path().join("link"));
        fs_err::write(&real, "old").unwrap();
        fs_err::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("dotfiles.json", &link).unwrap();
        SettingsFile::read(&link).unwrap().write("new").unwrap();
        assert!(fs_err::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs_err::read_to_string(&real).unwrap(), "new");
        assert_eq!(mode(&real), 0o640);
    }

    #[test]
    fn a_new_file_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/settings.json");
        SettingsFile::read(&path).unwrap().write("{}").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        SettingsFile::read(&path).unwrap().remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_another_program_wrote_meanwhile_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let absent = SettingsFile::read(&path).unwrap();
        fs_err::write(&path, "one").unwrap();
        assert!(matches!(
            absent.write("x"),
            Err(SettingsError::Changed { .. })
        ));
        let read = SettingsFile::read(&path).unwrap();
        fs_err::write(&path, "two").unwrap();
        assert!(matches!(
            read.write("x"),
            Err(SettingsError::Changed { .. })
        ));
        assert!(matches!(read.remove(), Err(SettingsError::Changed { .. })));
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_backup_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let (path, copy) = (dir.path().join("a"), dir.path().join("a.copy"));
        for text in ["one", "two"] {
            fs_err::write(&path, text).unwrap();
            SettingsFile::read(&path).unwrap().back_up(&copy).unwrap();
        }
        assert_eq!(fs_err::read_to_string(&copy).unwrap(), "one");
        assert_eq!(mode(&copy), 0o600);
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_no_file_of_ours_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |path: &Path| SettingsFile::read(path).unwrap_err().to_string();
        assert!(refused(dir.path()).ends_with("is not a regular file"));
        let link = dir.path().join("link");
        symlink("nowhere", &link).unwrap();
        assert!(refused(&link).contains("to a missing file"));
        let binary = dir.path().join("binary");
        fs_err::write(&binary, [0xff, 0xfe]).unwrap();
        assert!(refused(&binary).ends_with("is not UTF-8 text"));
    }
}
