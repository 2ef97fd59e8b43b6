//! A linked worktree in which a session works is locked for git, and only as long.

use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_testkit::{Agent, Cmd, Env, Output, add_worktree};

use super::env;
use super::registering::{ask, register};
use super::trampling::{Hooked, repository};

/// A repository, and a worktree of it with its lock's file.
fn worktree(env: &Env) -> (PathBuf, PathBuf, PathBuf) {
    let repo = repository(env, "web");
    let tree = env.dir().join("tree");
    add_worktree(&repo, &tree, "two");
    let lock = repo.join(".git/worktrees/tree/locked");
    (repo, tree, lock)
}

fn text(lock: &Path) -> Option<String> {
    std::fs::read_to_string(lock).ok()
}

fn reason(session: &Hooked) -> Option<String> {
    Some(format!("tenure: {} works here\n", session.handle()))
}

fn remove(agent: &Agent, repo: &Path, tree: &Path) -> Output {
    let tree = tree.to_str().expect("paths of tests are text");
    let cmd = Cmd::new("git").args(["worktree", "remove", tree]).dir(repo);
    agent.run(cmd)
}

#[test]
fn a_worktree_is_locked_while_a_session_works_there() {
    let env = env();
    let (repo, tree, lock) = worktree(&env);
    let person = env.agent("some-editor");
    let a = Hooked::start(&env, "claude", "a1", &tree);
    assert_eq!(text(&lock), reason(&a));
    let refused = remove(&person, &repo, &tree);
    assert_eq!(refused.code, 128, "{refused}");
    assert!(refused.stderr.contains(&a.handle()), "{refused:?}");
    env.tenure(&["who", tree.to_str().unwrap(), "--exit-code"])
        .fails(3);
    a.event(&[], "SessionEnd", json!({"reason": "other"}));
    assert_eq!(text(&lock), None);
    env.tenure(&["who", tree.to_str().unwrap(), "--exit-code"])
        .ok();
    remove(&person, &repo, &tree).ok();
}

#[test]
fn it_is_shared_and_goes_with_the_last() {
    let env = env();
    let (_, tree, lock) = worktree(&env);
    let below = tree.join("src");
    std::fs::create_dir(&below).unwrap();
    let a = Hooked::start(&env, "claude", "a1", &tree);
    let b = Hooked::start(&env, "claude", "b1", &below);
    let c = Hooked::start(&env, "claude", "c1", &tree);
    assert_eq!(text(&lock), reason(&c));
    a.event(&[], "SessionEnd", json!({"reason": "other"}));
    assert_eq!(text(&lock), reason(&c));
    c.event(&[], "SessionEnd", json!({"reason": "other"}));
    assert_eq!(text(&lock), reason(&b));
    ask(&b.agent, &["end"]);
    assert_eq!(text(&lock), None);
}

#[test]
fn uninstalling_everything_takes_the_locks_of_the_living_away() {
    let env = env();
    let (_, tree, lock) = worktree(&env);
    let a = Hooked::start(&env, "claude", "a1", &tree);
    assert_eq!(text(&lock), reason(&a));
    let said = env.tenure(&["uninstall", "--all", "--json"]).ok().json();
    assert_eq!(said["unlocked"], json!([tree]));
    assert_eq!(text(&lock), None);
}

#[test]
fn whoever_records_a_death_takes_the_lock_away() {
    let env = env();
    let (_, tree, lock) = worktree(&env);
    let a = env.agent("claude");
    register(&a, &["--native-id", "a1", "--dir", tree.to_str().unwrap()]);
    ask(&a, &["claim", "wp:1"]);
    assert!(text(&lock).is_some());
    a.kill9();
    let b = env.agent("claude");
    register(&b, &[]);
    ask(&b, &["claim", "wp:1"]);
    assert_eq!(text(&lock), None);
    // And a resume locks it again.
    let back = env.agent("claude");
    register(
        &back,
        &["--native-id", "a1", "--dir", tree.to_str().unwrap()],
    );
    assert!(text(&lock).is_some());
}

#[test]
fn a_session_that_goes_elsewhere_takes_its_lock_along() {
    let env = env();
    let (repo, tree, lock) = worktree(&env);
    let a = Hooked::start(&env, "claude", "a1", &tree);
    assert!(text(&lock).is_some());
    register(&a.agent, &["--dir", repo.to_str().unwrap()]);
    assert_eq!(text(&lock), None);
    register(&a.agent, &["--dir", tree.to_str().unwrap()]);
    assert_eq!(text(&lock), reason(&a));
}

#[test]
fn another_s_lock_and_the_main_worktree_are_left_alone() {
    let env = env();
    let (repo, tree, lock) = worktree(&env);
    for theirs in ["on a usb stick\n", ""] {
        std::fs::write(&lock, theirs).unwrap();
        let a = Hooked::start(&env, "claude", "a1", &tree);
        assert_eq!(text(&lock).as_deref(), Some(theirs));
        a.event(&[], "SessionEnd", json!({"reason": "other"}));
        assert_eq!(text(&lock).as_deref(), Some(theirs));
    }
    let b = Hooked::start(&env, "claude", "b1", &repo);
    assert!(!repo.join(".git/locked").exists());
    drop(b);
}

#[test]
fn asking_who_is_there_unlocks_what_the_dead_left() {
    let env = env();
    let (repo, tree, lock) = worktree(&env);
    let a = Hooked::start(&env, "claude", "a1", &tree);
    a.agent.kill9();
    assert!(text(&lock).is_some());
    env.tenure(&["who", tree.to_str().unwrap(), "--exit-code"])
        .ok();
    assert_eq!(text(&lock), None);
    remove(&env.agent("some-editor"), &repo, &tree).ok();
}

#[test]
fn f_k12_a_link_in_the_place_of_the_lock_is_not_written_through() {
    let env = env();
    let (_, tree, lock) = worktree(&env);
    let theirs = env.dir().join("theirs");
    let old = "tenure: claude-zzzz works here\n";
    std::fs::write(&theirs, old).unwrap();
    std::os::unix::fs::symlink(&theirs, &lock).unwrap();
    let _a = Hooked::start(&env, "claude", "a1", &tree);
    assert_eq!(text(&theirs).as_deref(), Some(old));
}
