//! Worktrees of items, as `status` shows them.

use serde_json::json;
use tenure_testkit::{Cmd, Env, add_worktree, scratch_git};

use crate::env;

/// The worktree of an item, as a run leaves it. Returns its directory.
fn worktree(env: &Env, kept: &[&str]) -> std::path::PathBuf {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://github.com/acme/web"));
    let folder = env.state().join("worktrees/acme-web-01234567");
    std::fs::create_dir_all(&folder).expect("a scratch directory is writable");
    let dir = folder.join("issue-6");
    add_worktree(&repo, &dir, "tenure/issue-6");
    let record = json!({
        "item": "issue:acme/web#6", "repository": repo.join(".git"), "branch": "tenure/issue-6",
        "dir": dir, "kept": kept,
    });
    std::fs::write(folder.join("issue-6.json"), record.to_string()).expect("it is ours");
    dir
}

#[test]
fn status_names_worktrees_and_why_they_were_not_removed() {
    let env = env();
    let person = env.agent("some-editor");
    let dir = worktree(&env, &["uncommitted changes: a"]);
    let status = person.tenure(&["status", "--json"]).ok().json();
    assert_eq!(status["worktrees"][0]["item"], "issue:acme/web#6");
    assert_eq!(status["worktrees"][0]["dir"], json!(dir));
    let warning = format!(
        "the worktree of issue:acme/web#6 in {} was not removed: uncommitted changes: a",
        dir.display()
    );
    assert_eq!(status["status"]["warnings"], json!([warning]));
    let shown = person.tenure(&["status"]).ok();
    assert!(shown.stdout.contains(&warning), "{shown}");
    std::fs::remove_dir_all(&dir).expect("it is ours");
    let status = person.tenure(&["status", "--json"]).ok().json();
    assert_eq!(
        (&status["worktrees"], &status["status"]["warnings"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn a_look_puts_back_what_a_killed_removal_left_aside() {
    let env = env();
    let person = env.agent("some-editor");
    let dir = worktree(&env, &[]);
    let aside = dir.with_file_name(".leaving-issue-6");
    let words = [
        "worktree",
        "move",
        dir.to_str().expect("text"),
        aside.to_str().expect("text"),
    ];
    let moved = Cmd::new("git").args(words).dir(&env.dir().join("web"));
    person.run(moved).ok();
    assert!(!dir.exists());
    person.tenure(&["status"]).ok();
    assert!(dir.join(".git").exists() && !aside.exists());
}
