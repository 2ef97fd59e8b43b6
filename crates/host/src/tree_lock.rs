//! The file `locked` of a linked git worktree, as `git worktree lock --reason` writes it.
//!
//! If it cannot be written, or is a symbolic link, it is left alone: a worktree without a lock is only less
//! safe. *Crash*: nothing is kept between reading and writing; a stale lock names an ended session, and the
//! service repairs it at the next call.

use std::io::Write;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use tenure_core::tree_lock::{TreeLock, named, reason};

use crate::file::flags;
use crate::{git, read};

/// Longer than any lock that we write.
const MAX_LENGTH: u64 = 4096;

/// The session that our lock names.
pub fn named_in(dir: &Path) -> Option<String> {
    named_by(&file(dir)?)
}

/// Our locks on all linked worktrees of the repository of `dir`; a worktree may no longer exist.
pub fn all(dir: &Path) -> Vec<TreeLock> {
    let Some(worktree) = git::worktree(dir) else {
        return Vec::new();
    };
    let Ok(entries) = fs_err::read_dir(worktree.common_dir.join("worktrees")) else {
        return Vec::new();
    };
    let own = entries.flatten().map(|entry| entry.path());
    own.filter_map(|own| in_admin_dir(&own)).collect()
}

/// Our lock on the linked worktree that belongs to this git directory.
fn in_admin_dir(own: &Path) -> Option<TreeLock> {
    let file = own.join("locked");
    let handle = named_by(&file)?;
    let points_to = read::text(&own.join("gitdir"), MAX_LENGTH).ok()?;
    let dot_git = own.join(points_to.trim_end_matches(['\n', '\r']));
    let root = dot_git.parent()?;
    let whole = fs_err::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    Some(TreeLock {
        file: file.to_string_lossy().into_owned(),
        root: whole.to_string_lossy().into_owned(),
        handle,
    })
}

/// Makes a lock name another session, or removes it, if it still names the same one.
pub fn change(lock: &TreeLock, handle: Option<&str>) {
    let file = Path::new(&lock.file);
    if named_by(file).as_ref() != Some(&lock.handle) {
        return;
    }
    let changed = match handle {
        Some(handle) => write(file, handle, false),
        None => fs_err::remove_file(file),
    };
    // Read-only directories and those of other users stay as they are.
    drop(changed);
}

fn named_by(file: &Path) -> Option<String> {
    let text = read::text(file, MAX_LENGTH).ok()?;
    named(&text).map(str::to_owned)
}

/// Makes our lock name this session, or removes it.
pub fn set(dir: &Path, handle: Option<&str>) {
    let Some(file) = file(dir) else {
        return;
    };
    let changed = match (fs_err::symlink_metadata(&file).is_ok(), handle) {
        (false, Some(handle)) => write(&file, handle, true),
        (true, Some(handle)) if named_in(dir).is_some() => write(&file, handle, false),
        (true, None) if named_in(dir).is_some() => fs_err::remove_file(&file),
        _ => Ok(()),
    };
    // Read-only directories and those of other users stay without a lock.
    drop(changed);
}

/// None for the main worktree, which cannot be removed and has no such file.
fn file(dir: &Path) -> Option<PathBuf> {
    let worktree = git::worktree(dir)?;
    let is_linked = worktree.git_dir != worktree.common_dir;
    // A submodule has its own git directory too, but is not a worktree of another repository.
    let is_worktree = worktree.git_dir.join("commondir").is_file();
    (is_linked && is_worktree).then(|| worktree.git_dir.join("locked"))
}

fn write(file: &Path, handle: &str, new: bool) -> std::io::Result<()> {
    let mut open = fs_err::OpenOptions::new()
        .write(true)
        .create_new(new)
        .truncate(!new)
        .custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK))
        .open(file)?;
    open.write_all(format!("{}\n", reason(handle)).as_bytes())
}
