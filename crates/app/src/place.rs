//! Where the caller is: the current directory, its worktree, and keys completed from it.

use std::io;
use std::path::{Path, PathBuf};

use tenure_core::id::HostId;
use tenure_core::key::{self, Key, PathKind, TypedKey};
use tenure_core::session::Workdir;
use tenure_host::cwd;
use tenure_host::git::{self, Worktree};
use tenure_service::answer::{Class, Hint, Problem};

/// The current directory; an error if it does not exist.
pub fn current_dir() -> Result<PathBuf, Problem> {
    cwd::current().ok_or_else(|| {
        let name = cwd::name();
        let message = format!("the current directory {} no longer exists", name.display());
        let hint = Hint::step("change to a directory that exists");
        Problem::new(Class::NotFound, "not_found", message, hint)
    })
}

/// The place of the current directory. A deleted one keeps its name.
pub fn place_here() -> Workdir {
    place(&cwd::name()).unwrap_or_else(|_| Workdir {
        dir: cwd::name().to_string_lossy().into_owned(),
        ..Workdir::default()
    })
}

/// A directory with its repository and branch.
pub fn place(dir: &Path) -> Result<Workdir, Problem> {
    let hint = || Hint::step("pass a directory that exists");
    let whole = fs_err::canonicalize(dir).map_err(|error| {
        let message = match error.kind() {
            io::ErrorKind::NotFound => format!("the directory {} does not exist", dir.display()),
            other => format!("cannot open the directory {}: {other}", dir.display()),
        };
        Problem::new(Class::NotFound, "not_found", message, hint())
    })?;
    if !whole.is_dir() {
        let message = format!("{} is not a directory", whole.display());
        return Err(Problem::new(Class::Usage, "usage", message, hint()));
    }
    let worktree = git::worktree(&whole);
    Ok(Workdir {
        dir: whole.to_string_lossy().into_owned(),
        repo: worktree.as_ref().map(Worktree::repo),
        branch: worktree.and_then(|found| found.branch),
    })
}

/// Why the repository of a directory is named by that directory, although it may have a remote.
pub fn unread_remote(dir: &str) -> Option<String> {
    git::worktree(Path::new(dir))?.unread_remote
}

/// The worktree of the current directory.
pub fn worktree_here() -> Option<Worktree> {
    git::worktree(&cwd::current()?)
}

/// Parses several keys and completes short forms from the repository of this directory; one
/// malformed key fails all of them. `host` is this machine if several use the store.
pub fn complete_keys(typed: &[String], host: Option<&HostId>) -> Result<Vec<TypedKey>, Problem> {
    let found = worktree_here();
    let repository = |found: &Worktree| match host {
        Some(host) => found.repository().on(host),
        None => found.repository(),
    };
    let worktree = found.as_ref().map(|found| key::Worktree {
        repository: repository(found),
        root: found.root.to_string_lossy().into_owned(),
        dir: below_root(found),
    });
    let here = key::PathContext {
        worktree: worktree.as_ref(),
        host,
        exists: cwd::current().is_some(),
        look: &|path| look(found.as_ref(), path),
        resolve: &|path| git::below_root(&found.as_ref()?.root, path),
    };
    let keys = typed.iter().map(|text| Key::complete(text, &here));
    Ok(keys.collect::<Result<_, _>>()?)
}

/// The current directory, relative to the root of its worktree.
fn below_root(worktree: &Worktree) -> String {
    let whole = cwd::current().and_then(|dir| fs_err::canonicalize(dir).ok());
    let below = whole.and_then(|dir| Some(dir.strip_prefix(&worktree.root).ok()?.to_owned()));
    below.unwrap_or_default().to_string_lossy().into_owned()
}

/// What exists at a path. A root whose name is not UTF-8 is found by its bytes.
fn look(worktree: Option<&Worktree>, path: &str) -> PathKind {
    let root = worktree.map(|found| (found.root.to_string_lossy(), &found.root));
    let inside = root.and_then(|(text, root)| {
        let below = path.strip_prefix(text.as_ref())?.strip_prefix('/')?;
        Some(root.join(below))
    });
    match fs_err::metadata(inside.unwrap_or_else(|| PathBuf::from(path))) {
        Ok(found) if found.is_dir() => PathKind::Directory,
        Ok(_) => PathKind::Other,
        Err(_) => PathKind::Nothing,
    }
}
