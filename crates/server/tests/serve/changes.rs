//! How a session's worktree stands, for who looks at the session.

use std::path::Path;

use serde_json::{Value, json};

use crate::{Server, env, text, token};

fn git(dir: &Path, args: &[&str]) {
    let mut command = std::process::Command::new("git");
    let done = command.current_dir(dir).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "git {args:?}: {said}");
}

#[test]
fn a_worktree_is_compared_with_the_branch_that_others_build_on() {
    let env = env();
    let repo = env.dir().join("web");
    tenure_testkit::scratch_git(&repo, Some("https://github.com/acme/web.git"));
    std::fs::write(repo.join("a"), "one\ntwo\n").unwrap();
    git(&repo, &["add", "a"]);
    git(&repo, &["commit", "--quiet", "-m", "a"]);
    let dir = env.dir().join("work");
    tenure_testkit::add_worktree(&repo, &dir, "work");
    std::fs::write(dir.join("a"), "one\n").unwrap();
    git(&dir, &["commit", "--quiet", "-am", "shorter"]);
    std::fs::write(dir.join("b"), "new\n").unwrap();
    git(
        &repo,
        &["commit", "--quiet", "--allow-empty", "-m", "meanwhile"],
    );
    let ann = env.agent("ann");
    let pid = ann.pid().to_string();
    let words = [
        "register", "--agent", "ann", "--pid", &pid, "--json", "--dir",
    ];
    let said = ann.tenure(&[&words[..], &[dir.to_str().unwrap()]].concat());
    let handle = text(&said.ok().json()["session"]["handle"]);
    let server = Server::start(&env);
    let token = token(&env, "t", "read");
    let path = format!("/api/v1/sessions/{handle}/changes");
    let changes = || server.list(&path, &token)["changes"].clone();
    assert_eq!(
        changes(),
        json!({"uncommitted": 1, "conflicts": 0, "base": "main", "ahead": 1, "behind": 1,
            "files": 1, "added": 0, "removed": 1, "pushed": false})
    );
    // Nothing that the repository's author chose is run.
    let ran = env.dir().join("ran");
    let filter = format!("touch {}", ran.display());
    git(&repo, &["config", "filter.evil.clean", &filter]);
    std::fs::write(dir.join(".gitattributes"), "* filter=evil\n").unwrap();
    assert_eq!(changes(), Value::Null);
    assert!(!ran.exists());
}
