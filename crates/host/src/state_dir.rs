//! The state directory: where it is, and whether it can be trusted.
//!
//! Invariants: it is a real directory (not a link) of our own user, not writable by others, on a file system
//! that only this kernel uses. These are checked on the opened directory, not on its path. An existing
//! directory is never changed, only accepted or refused.
//!
//! *Crash*: a directory that was created and not used is accepted by the next process. *Tests*: with
//! TENURE_TEST=1 the real directory is refused, however it is spelled.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use tenure_core::id::HostId;

use crate::file::{flags, make_dir, make_dirs, sync_dir};
use crate::host_id::{self, HostIdError};
use crate::shared_fs::SharedFs;
use crate::{path_error, system};

/// Why there is no usable state directory.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    #[error("no state directory: neither TENURE_HOME nor HOME is set")]
    NoHome,
    #[error("TENURE_HOME={} is not an absolute path", .path.display())]
    Relative { path: PathBuf },
    #[error("TENURE_TEST is set, but the state directory would be the real one{}", shown(.path))]
    TestWithoutHome {
        /// The real one, if known.
        path: Option<PathBuf>,
    },
    #[error("the state directory {} is a symbolic link to {}", .path.display(), .target.display())]
    Link { path: PathBuf, target: PathBuf },
    #[error("the state directory {} is not a directory", .path.display())]
    NotADirectory { path: PathBuf },
    #[error("the state directory {} belongs to uid {owner}, not to uid {user}", .path.display())]
    OtherOwner {
        path: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error("the state directory {} is writable by others (mode {mode:04o})", .path.display())]
    WritableByOthers { path: PathBuf, mode: u32 },
    #[error("the state directory {} is on a shared file system ({kind})", .path.display())]
    SharedFileSystem { path: PathBuf, kind: SharedFs },
    #[error(transparent)]
    HostId(#[from] HostIdError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn shown(path: &Option<PathBuf>) -> String {
    path.as_ref()
        .map(|path| format!(", {}", path.display()))
        .unwrap_or_default()
}

impl StateDirError {
    pub fn hint(&self) -> String {
        match self {
            Self::NoHome => "set TENURE_HOME to a directory of your own".to_owned(),
            Self::Relative { .. } => {
                "set TENURE_HOME to an absolute path, because every command must use the same one"
                    .to_owned()
            }
            Self::TestWithoutHome { .. } => "set TENURE_HOME to a temporary directory".to_owned(),
            Self::Link { target, .. } => {
                format!("set TENURE_HOME={} if that is intended", target.display())
            }
            Self::NotADirectory { .. } => "set TENURE_HOME to a directory".to_owned(),
            Self::OtherOwner { .. } => "set TENURE_HOME to a directory of your own".to_owned(),
            Self::WritableByOthers { path, .. } => {
                format!(
                    "check what is in it, then run `chmod 700 {}`",
                    path.display()
                )
            }
            Self::SharedFileSystem { .. } => {
                "set TENURE_HOME to a directory on a local disk".to_owned()
            }
            Self::HostId(HostIdError::Removed { .. }) => "run the same command again".to_owned(),
            Self::HostId(HostIdError::Unusable { path, .. }) => {
                format!(
                    "restore {} from a backup, or remove it if no session is alive",
                    path.display()
                )
            }
            Self::HostId(HostIdError::Io(_)) | Self::Io(_) => {
                "check the permissions of the path, or set TENURE_HOME to another path".to_owned()
            }
        }
    }
}

#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
    host: HostId,
}

impl StateDir {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn host(&self) -> &HostId {
        &self.host
    }

    /// Where the state directory should be, according to the environment.
    pub fn locate(env: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, StateDirError> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let absolute = |name: &str| {
            set(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let by_xdg = absolute("XDG_STATE_HOME").map(|dir| dir.join("tenure"));
        let by_home = absolute("HOME").map(|dir| dir.join(".local/state/tenure"));
        let testing = env("TENURE_TEST").is_some_and(|value| value == "1");
        let Some(chosen) = set("TENURE_HOME") else {
            let real = by_xdg.or(by_home);
            if testing {
                return Err(StateDirError::TestWithoutHome { path: real });
            }
            return real.ok_or(StateDirError::NoHome);
        };
        let chosen = PathBuf::from(chosen);
        if chosen.is_relative() {
            return Err(StateDirError::Relative { path: chosen });
        }
        let chosen = absolute_path(&chosen)?;
        if testing {
            let meant = resolved(&chosen);
            let mut real = [by_xdg, by_home].into_iter().flatten();
            if let Some(path) = real.find(|path| resolved(path) == meant) {
                return Err(StateDirError::TestWithoutHome { path: Some(path) });
            }
        }
        Ok(chosen)
    }

    /// Opens the state directory; creates it if it is missing.
    pub fn open(path: &Path) -> Result<StateDir, StateDirError> {
        Self::open_with(path, host_id::read_or_create)
    }

    /// The same for a directory that takes the place of `other` on this machine: it is the same host.
    pub fn open_instead(path: &Path, other: &Path) -> Result<StateDir, StateDirError> {
        Self::open_with(path, |dir| host_id::read_or_adopt(dir, other))
    }

    /// Makes this machine another host than it was, because it is a copy of one.
    pub fn become_another_host(self) -> Result<StateDir, StateDirError> {
        let host = host_id::replace(&self.path)?;
        Ok(StateDir { host, ..self })
    }

    fn open_with(
        path: &Path,
        host: impl FnOnce(&Path) -> Result<HostId, HostIdError>,
    ) -> Result<StateDir, StateDirError> {
        let path = absolute_path(path)?;
        let dir = match open_dir(&path) {
            Ok(dir) => dir,
            Err(_) => {
                if !is_there(&path)? {
                    make(&path)?;
                    is_there(&path)?;
                }
                open_dir(&path)?
            }
        };
        check_owner(&path, &dir.metadata()?)?;
        refuse_shared(&path, &dir)?;
        let host = host(&path)?;
        Ok(StateDir { path, host })
    }

    /// The same for a caller that only reads: creates nothing, and refuses what [`StateDir::open`] refuses.
    ///
    /// If no host id is stored yet, it gets one that no record can have.
    pub fn peek(path: &Path) -> Result<StateDir, StateDirError> {
        let path = absolute_path(path)?;
        if is_there(&path)? {
            let dir = open_dir(&path)?;
            check_owner(&path, &dir.metadata()?)?;
            refuse_shared(&path, &dir)?;
        } else {
            refuse_shared_above(&path)?;
        }
        let host = host_id::peek(&path)?;
        Ok(StateDir { path, host })
    }
}

/// Opens a directory itself, not through a link.
fn open_dir(path: &Path) -> io::Result<fs_err::File> {
    let itself = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs_err::OpenOptions::new()
        .read(true)
        .custom_flags(flags(itself))
        .open(path)
}

/// Without `.` and a trailing slash, which would make the kernel follow a link.
fn absolute_path(path: &Path) -> io::Result<PathBuf> {
    let whole = std::path::absolute(path).map_err(|e| path_error::at("resolve", path, e))?;
    Ok(whole.components().collect())
}

/// The path with every link in its existing part followed.
fn resolved(path: &Path) -> PathBuf {
    let mut known = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            known.pop();
            continue;
        }
        known.push(part);
        if let Ok(real) = fs_err::canonicalize(&known) {
            known = real;
        }
    }
    known
}

/// Whether there is a directory; anything else in its place is refused.
fn is_there(path: &Path) -> Result<bool, StateDirError> {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            let what = format!(
                "cannot read the state directory {}: {error}",
                path.display()
            );
            return Err(io::Error::new(error.kind(), what).into());
        }
    };
    if found.is_symlink() {
        let target = fs_err::read_link(path)?;
        let target = path.parent().unwrap_or(path).join(target);
        return Err(StateDirError::Link {
            path: path.to_owned(),
            target,
        });
    }
    if !found.is_dir() {
        return Err(StateDirError::NotADirectory {
            path: path.to_owned(),
        });
    }
    Ok(true)
}

/// Creates the directory and its parents, unless it would be refused afterwards.
fn make(path: &Path) -> Result<(), StateDirError> {
    refuse_shared_above(path)?;
    if let Some(parent) = path.parent() {
        make_dirs(parent)?;
    }
    if !make_dir(path)? {
        return Ok(());
    }
    sync_dir(path)?;
    Ok(())
}

/// Refuses a directory that does not exist yet and would be on a shared file system.
fn refuse_shared_above(path: &Path) -> Result<(), StateDirError> {
    match path.ancestors().skip(1).find(|dir| dir.exists()) {
        Some(above) => refuse_shared(path, &open_path(above)?),
        None => Ok(()),
    }
}

/// Opens a directory only to find its file system, even if it may not be read.
fn open_path(dir: &Path) -> io::Result<std::os::fd::OwnedFd> {
    let how = system::TO_BE_NAMED | OFlags::CLOEXEC;
    rustix::fs::open(dir, how, rustix::fs::Mode::empty())
        .map_err(|e| path_error::at("open", dir, e))
}

fn check_owner(path: &Path, found: &std::fs::Metadata) -> Result<(), StateDirError> {
    let path = path.to_owned();
    let (owner, user) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != user {
        return Err(StateDirError::OtherOwner { path, owner, user });
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(StateDirError::WritableByOthers { path, mode });
    }
    Ok(())
}

fn refuse_shared(path: &Path, dir: &impl AsFd) -> Result<(), StateDirError> {
    let magic = system::filesystem_magic(dir.as_fd())
        .map_err(|e| path_error::at("read the state directory", path, e))?;
    match magic.and_then(SharedFs::of) {
        Some(kind) => Err(StateDirError::SharedFileSystem {
            path: path.to_owned(),
            kind,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn locate(vars: &[(&str, &str)]) -> Result<PathBuf, StateDirError> {
        let vars: Vec<(String, OsString)> = vars
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect();
        StateDir::locate(&|name| {
            vars.iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        })
    }

    fn mode_of(path: &Path) -> u32 {
        fs_err::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn the_place_is_chosen_in_order() {
        let (home, xdg) = (("HOME", "/h"), ("XDG_STATE_HOME", "/x"));
        assert_eq!(
            locate(&[home, xdg, ("TENURE_HOME", "/t/")]).unwrap(),
            Path::new("/t")
        );
        assert_eq!(locate(&[home, xdg]).unwrap(), Path::new("/x/tenure"));
        assert_eq!(
            locate(&[home]).unwrap(),
            Path::new("/h/.local/state/tenure")
        );
        assert_eq!(
            locate(&[home, ("XDG_STATE_HOME", "x")]).unwrap(),
            Path::new("/h/.local/state/tenure")
        );
        assert_eq!(
            locate(&[home, ("TENURE_HOME", "")]).unwrap(),
            Path::new("/h/.local/state/tenure")
        );
        assert!(matches!(
            locate(&[("HOME", "")]),
            Err(StateDirError::NoHome)
        ));
        for relative in ["a/b", ".", "../x"] {
            assert!(matches!(
                locate(&[home, ("TENURE_HOME", relative)]),
                Err(StateDirError::Relative { .. })
            ));
        }
    }

    #[test]
    fn a_test_never_gets_the_real_directory() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        let (test, home_var) = (("TENURE_TEST", "1"), ("HOME", home));
        let state = dir.path().join(".local/state");
        fs_err::create_dir_all(&state).unwrap();
        let link = dir.path().join("link");
        symlink(&state, &link).unwrap();
        let real = format!("{home}/.local/state/tenure");
        let dotted = format!("{home}/.local/../.local/state/./tenure/");
        let linked = format!("{home}/link/tenure");
        for chosen in [&real, &dotted, &linked] {
            let answer = locate(&[
                test,
                home_var,
                ("XDG_STATE_HOME", "/x"),
                ("TENURE_HOME", chosen),
            ]);
            assert!(
                matches!(
                    answer,
                    Err(StateDirError::TestWithoutHome { path: Some(_) })
                ),
                "{chosen}"
            );
        }
        assert!(matches!(
            locate(&[test, home_var]),
            Err(StateDirError::TestWithoutHome { .. })
        ));
        assert!(matches!(
            locate(&[test]),
            Err(StateDirError::TestWithoutHome { path: None })
        ));
        assert!(locate(&[test, home_var, ("TENURE_HOME", "/elsewhere")]).is_ok());
    }

    #[test]
    fn a_missing_directory_is_made_for_the_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/tenure");
        let first = StateDir::open(&path).unwrap();
        assert_eq!(mode_of(&path), 0o700);
        assert_eq!(mode_of(&path.join("host-id")), 0o600);
        assert_eq!(StateDir::open(&path).unwrap().host(), first.host());
        assert_eq!(first.path(), path);
    }

    #[test]
    fn a_reader_makes_no_directory_and_gets_the_host_id_that_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/tenure");
        let peeked = StateDir::peek(&path).unwrap();
        assert!(!dir.path().join("a").exists());
        let opened = StateDir::open(&path).unwrap();
        assert_ne!(peeked.host(), opened.host());
        assert_eq!(StateDir::peek(&path).unwrap().host(), opened.host());
        fs_err::remove_file(path.join("host-id")).unwrap();
        StateDir::peek(&path).unwrap();
        assert!(!path.join("host-id").exists());
    }

    #[test]
    fn a_reader_refuses_what_a_writer_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs_err::write(&file, "").unwrap();
        symlink("nowhere", &link).unwrap();
        assert!(matches!(
            StateDir::peek(&file),
            Err(StateDirError::NotADirectory { .. })
        ));
        assert!(matches!(
            StateDir::peek(&link),
            Err(StateDirError::Link { .. })
        ));
        let open = dir.path().join("open");
        fs_err::create_dir(&open).unwrap();
        fs_err::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(
            StateDir::peek(&open),
            Err(StateDirError::WritableByOthers { .. })
        ));
    }

    #[test]
    fn a_link_is_refused_by_its_target_even_with_a_slash() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs_err::create_dir(&real).unwrap();
        symlink("real", &link).unwrap();
        for path in [link.clone(), link.join("")] {
            let error = StateDir::open(&path).unwrap_err();
            assert!(
                matches!(&error, StateDirError::Link { target, .. } if *target == real),
                "{error}"
            );
            assert!(error.hint().contains(real.to_str().unwrap()));
        }
        let dangling = dir.path().join("dangling");
        symlink("nowhere", &dangling).unwrap();
        assert!(matches!(
            StateDir::open(&dangling),
            Err(StateDirError::Link { .. })
        ));
    }

    #[test]
    fn what_is_not_ours_alone_is_refused_and_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs_err::write(&file, "").unwrap();
        assert!(matches!(
            StateDir::open(&file),
            Err(StateDirError::NotADirectory { .. })
        ));
        for mode in [0o720, 0o702, 0o777] {
            let open = dir.path().join(format!("{mode:o}"));
            fs_err::create_dir(&open).unwrap();
            fs_err::set_permissions(&open, std::fs::Permissions::from_mode(mode)).unwrap();
            let error = StateDir::open(&open).unwrap_err();
            assert!(
                matches!(error, StateDirError::WritableByOthers { mode: found, .. } if found == mode),
                "{error}"
            );
            assert_eq!(mode_of(&open), mode);
            assert!(fs_err::read_dir(&open).unwrap().next().is_none());
        }
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let user = rustix::process::geteuid().as_raw();
        let Some(theirs) = ["/", "/proc/self/fdinfo", "/dev/shm"]
            .iter()
            .find(|path| fs_err::metadata(path).is_ok_and(|found| found.uid() != user))
        else {
            // Root owns all of these, so it gives one away instead.
            let dir = tempfile::tempdir().unwrap();
            std::os::unix::fs::chown(dir.path(), Some(12_345), None).unwrap();
            let error = StateDir::open(dir.path()).unwrap_err();
            assert!(
                matches!(error, StateDirError::OtherOwner { owner: 12_345, .. }),
                "{error}"
            );
            return;
        };
        assert!(matches!(
            StateDir::open(Path::new(theirs)),
            Err(StateDirError::OtherOwner { .. })
        ));
    }
}
