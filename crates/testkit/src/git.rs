//! Git repositories for tests, independent of the user's git configuration.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Creates a repository in `dir` with one empty commit on `main`, and `remote` as its origin.
pub fn scratch_git(dir: &Path, remote: Option<&str>) {
    std::fs::create_dir_all(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    git(dir, &["init", "--quiet", "--initial-branch=main"]);
    git(dir, &["config", "user.name", "Test"]);
    git(dir, &["config", "user.email", "test@example.invalid"]);
    git(dir, &["commit", "--quiet", "--allow-empty", "-m", "start"]);
    if let Some(remote) = remote {
        git(dir, &["remote", "add", "origin", remote]);
    }
}

/// Adds a worktree of `repo` at `dir`, on a new branch.
pub fn add_worktree(repo: &Path, dir: &Path, branch: &str) {
    let dir = dir.to_str().expect("paths of tests are text");
    git(repo, &["worktree", "add", "--quiet", "-b", branch, dir]);
}

fn git(dir: &Path, args: &[&str]) {
    let output = run(dir, args);
    assert!(
        output.status.success(),
        "git {}: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What git prints; none if it fails.
pub(crate) fn git_maybe(dir: &Path, args: &[&str]) -> Option<String> {
    let output = run(dir, args);
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .stdin(Stdio::null())
        .output()
        .expect("git can be run")
}
