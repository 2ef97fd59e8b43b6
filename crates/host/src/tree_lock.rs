//! The file `locked` of a linked git worktree, as `git worktree lock --reason` writes it.
//!
//! What cannot be written is left: a worktree without a lock is only less safe. *Crash*: between reading
//! and writing nothing is kept; a lock that was left behind names a session that is over, and the next one
//! that starts there takes it for its own.

use std::io::Write;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use tenure_core::tree_lock::{named, reason};

use crate::file::flags;
use crate::{git, read};

/// Ours are shorter.
const LONGEST: u64 = 4096;

/// The session that our lock names.
pub fn named_in(dir: &Path) -> Option<String> {
    let text = read::text(&file(dir)?, LONGEST).ok()?;
    named(&text).map(str::to_owned)
}

/// Makes our lock name this session, or takes it away.
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
    // Read-only places and others' directories stay without.
    drop(changed);
}

/// The main worktree cannot be removed, and has no such file.
fn file(dir: &Path) -> Option<PathBuf> {
    let worktree = git::worktree(dir)?;
    let is_linked = worktree.git_dir != worktree.common_dir;
    // A submodule has a directory of its own, too, but is no worktree of another repository.
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
