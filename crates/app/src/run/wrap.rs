//! The command that an agent runs under.
//!
//! It must know what the agent may access: `{dir}` in a word is the directory that the agent works
//! in, `{repository}` the git directory that all worktrees of the repository share.

use std::ffi::OsString;
use std::path::Path;

use tenure_host::git;

/// The words of the command, for an agent in this directory.
pub(super) fn words(wrap: &[String], dir: &Path) -> Vec<OsString> {
    let repository = || git::worktree(dir).map(|found| found.common_dir);
    let word = |word: &String| {
        let mut word = word.replace("{dir}", &dir.to_string_lossy());
        if word.contains("{repository}") {
            let repository = repository().unwrap_or_else(|| dir.to_owned());
            word = word.replace("{repository}", &repository.to_string_lossy());
        }
        OsString::from(word)
    };
    wrap.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrap_is_told_where_the_agent_works() {
        let place = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(place.path()).unwrap();
        let (repo, tree) = (root.join("web"), root.join("issue-6"));
        tenure_testkit::scratch_git(&repo, None);
        tenure_testkit::add_worktree(&repo, &tree, "issue-6");
        let wrap = [
            "podman",
            "-v={dir}:{dir}",
            "-v={repository}:{repository}:ro",
        ];
        let wrap = wrap.map(str::to_owned);
        let (tree, git) = (tree.display(), repo.join(".git"));
        let git = git.display();
        let mounts = [format!("-v={tree}:{tree}"), format!("-v={git}:{git}:ro")];
        assert_eq!(
            words(&wrap, &root.join("issue-6")),
            ["podman", &mounts[0], &mounts[1]]
        );
    }
}
