//! How the worktree of a session stands, asked of git while a person looks.

use std::path::Path;

use tenure_host::{git, git_changes};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_service::view::{ChangesView, SessionView};

/// Asks git. None for a session of another machine, one outside of a worktree, or a repository whose settings name
/// programs.
pub fn of(session: &SessionView) -> Result<Option<ChangesView>, Problem> {
    if session.host.is_some() {
        return Ok(None);
    }
    let Some(worktree) = git::worktree(Path::new(&session.dir)) else {
        return Ok(None);
    };
    let found = git_changes::read(&worktree).map_err(|error| {
        let message = format!("cannot compare the worktree of {}: {error}", session.handle);
        let hint = Hint::step(format!("run `git status` in {}", session.dir));
        Problem::new(Class::Refused, "git_failed", message, hint)
    })?;
    Ok(found.map(|found| ChangesView {
        uncommitted: found.uncommitted,
        conflicts: found.conflicts,
        base: found.base,
        ahead: found.ahead,
        behind: found.behind,
        files: found.files,
        added: found.added,
        removed: found.removed,
        pushed: found.pushed,
    }))
}
