//! The directory of a file that tenure writes outside the state directory, opened so that no symbolic link
//! redirects the write.
//!
//! A path has two parts. The *fixed* part is what the user chose (a home directory, a configuration directory,
//! a path in a setting). Links in it are followed if they belong to the user or to root, because people link
//! /home or ~/.config from elsewhere. The part *below* it is created by programs, or named after a repository
//! or a conversation; no component of it may be a link, no matter who owns it.
//!
//! The part below is opened one directory at a time without following links, and the file is then accessed
//! through the opened directory. So a link that is planted after the check has no effect.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::file;
use crate::path_error::{at, no_file, refused};
use crate::system;

/// An opened directory, and a file's name in it.
#[derive(Debug)]
pub struct ParentDir {
    /// Kept open, because the path goes through it.
    _dir: OwnedFd,
    path: PathBuf,
}

impl ParentDir {
    /// Opens the directory of `path`, and creates its missing parts for the owner alone. `fixed` is the part of
    /// the path in which links are followed.
    pub fn open(path: &Path, fixed: &Path) -> io::Result<Self> {
        let odd = || no_file("write", path);
        let name = path.file_name().ok_or_else(odd)?;
        let parent = path.parent().ok_or_else(odd)?;
        let below = parent.strip_prefix(fixed).map_err(|_| odd())?;
        check_owners(fixed)?;
        file::make_dirs(fixed)?;
        let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut dir = rustix::fs::open(fixed, open, Mode::empty())
            .map_err(|error| at("open", fixed, error))?;
        let mut whole = fixed.to_owned();
        for part in below.components() {
            let Component::Normal(part) = part else {
                return Err(odd());
            };
            whole.push(part);
            let step = || rustix::fs::openat(&dir, part, open | OFlags::NOFOLLOW, Mode::empty());
            let next = match step() {
                Err(Errno::NOENT) => make_dir(&dir, part, &whole).and_then(|()| {
                    // Another process may have created it first, possibly as a link.
                    step().map_err(|error| not_a_directory(&whole, error))
                }),
                found => found.map_err(|error| not_a_directory(&whole, error)),
            };
            dir = next?;
        }
        let path = system::path_through(dir.as_fd())?.join(name);
        Ok(Self { _dir: dir, path })
    }

    /// The file, through the opened directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error of a call on [`Self::path`], with the path that the user knows.
    pub fn named(&self, error: &io::Error, path: &Path) -> io::Error {
        let dir = |path: &Path| path.parent().unwrap_or(path).display().to_string();
        let text = error.to_string().replace(&dir(&self.path), &dir(path));
        io::Error::new(error.kind(), text)
    }
}

fn make_dir(dir: &OwnedFd, part: &std::ffi::OsStr, whole: &Path) -> io::Result<()> {
    match rustix::fs::mkdirat(dir, part, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(at("make", whole, error)),
    }
}

fn not_a_directory(whole: &Path, error: Errno) -> io::Error {
    let is_link = fs_err::symlink_metadata(whole).is_ok_and(|found| found.is_symlink());
    if is_link {
        let link = "it is a symbolic link; if that is intended, use the path of its target";
        refused("write below", whole, link)
    } else {
        at("open", whole, error)
    }
}

/// A link that belongs to another user in the fixed part could have been planted for us to follow.
fn check_owners(fixed: &Path) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    for dir in fixed.ancestors() {
        let Ok(found) = fs_err::symlink_metadata(dir) else {
            continue;
        };
        if found.is_symlink() && ![0, user].contains(&found.uid()) {
            let link = "it is a symbolic link that belongs to another user";
            let link = io::Error::new(ErrorKind::PermissionDenied, link);
            return Err(at("write below", dir, link));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn f_k12_links_are_followed_in_the_fixed_part_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (real, home) = (dir.path().join("real"), dir.path().join("home"));
        fs_err::create_dir(&real).unwrap();
        symlink(&real, &home).unwrap();
        let file = home.join("pact/acme/session.json");
        let parent = ParentDir::open(&file, &home).unwrap();
        fs_err::write(parent.path(), "x").unwrap();
        assert_eq!(
            fs_err::read_to_string(real.join("pact/acme/session.json")).unwrap(),
            "x"
        );
        let made = fs_err::metadata(real.join("pact")).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o700);
        fs_err::create_dir(real.join("theirs")).unwrap();
        symlink(real.join("theirs"), real.join("pact/planted")).unwrap();
        for below in ["planted/session.json", "planted/deep/session.json"] {
            let error = ParentDir::open(&home.join("pact").join(below), &home).unwrap_err();
            assert!(error.to_string().contains("symbolic link"), "{error}");
        }
        assert_eq!(fs_err::read_dir(real.join("theirs")).unwrap().count(), 0);
        assert!(ParentDir::open(&home.join("../x/y"), &home).is_err());
        assert!(ParentDir::open(Path::new("/elsewhere/y"), &home).is_err());
    }

    #[test]
    fn f_k12_a_link_that_is_planted_after_the_check_has_no_effect() {
        let dir = tempfile::tempdir().unwrap();
        let (home, theirs) = (dir.path().join("home"), dir.path().join("theirs"));
        fs_err::create_dir(&theirs).unwrap();
        let file = home.join("pact/session.json");
        let parent = ParentDir::open(&file, &home).unwrap();
        fs_err::rename(home.join("pact"), home.join("moved")).unwrap();
        symlink(&theirs, home.join("pact")).unwrap();
        crate::file::write_atomic(parent.path(), b"x").unwrap();
        assert_eq!(fs_err::read_dir(&theirs).unwrap().count(), 0);
        assert!(home.join("moved/session.json").is_file());
        let error = crate::file::write_atomic(&parent.path().join("no"), b"x").unwrap_err();
        let named = parent.named(&error, &file).to_string();
        assert!(
            named.contains("home/pact") && !named.contains("/proc"),
            "{named}"
        );
    }
}
