//! A linked worktree in which a session works is locked for git, and only as long.

use std::path::{Path, PathBuf};

use serde_json::json;
use tenure_testkit::{Agent, Cmd, Env, Output, add_worktree};

use crate::env;
use crate::support::answer::{ask, register};
use crate::support::hooked::{Hooked, repository};

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

/// Only the store knows which worktrees sessions locked; everything else is removed without it.
#[test]
fn uninstalling_everything_without_the_store_says_what_stays_locked() {
    let mut env = env();
    let (_, tree, lock) = worktree(&env);
    env.tenure(&["install", "claude"]).ok();
    let _a = Hooked::start(&env, "claude", "a1", &tree);
    env.set("TENURE_STORE", "postgres://ann@127.0.0.1:1/work");
    let said = env.tenure(&["uninstall", "--all"]).fails(8);
    assert!(said.stdout.contains("claude: uninstalled"), "{said}");
    let last: Vec<&str> = said.stdout.lines().rev().take(2).collect();
    assert!(
        last[1].starts_with("not unlocked: worktrees in which sessions work"),
        "{said}"
    );
    assert!(last[0].contains("`git worktree unlock DIR`"), "{said}");
    assert!(!said.stdout.contains("not removed"), "{said}");
    assert!(!env.home().join(".claude/settings.json").exists());
    assert!(!env.state().join("installed.json").exists());
    assert!(text(&lock).is_some());
}

#[test]
fn recording_a_death_removes_the_lock() {
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

/// What is left when an `end` is killed after its commit: the session is over, and its lock is there.
fn left_behind(lock: &Path, a: &Hooked, end: impl FnOnce()) -> String {
    let locked = text(lock).expect("it is locked");
    assert_eq!(Some(&locked), reason(a).as_ref());
    end();
    assert_eq!(text(lock), None);
    std::fs::write(lock, &locked).expect("it is ours");
    locked
}

#[test]
fn a_lock_that_an_end_left_when_it_was_killed_goes_with_the_next_look() {
    let env = env();
    let (repo, tree, lock) = worktree(&env);
    let person = env.agent("some-editor");
    let tree_text = tree.to_str().expect("paths of tests are text");
    let looks: [&dyn Fn(); 5] = [
        &|| drop(person.tenure(&["who", tree_text]).ok()),
        &|| drop(person.tenure_in(&repo, &["ps"]).ok()),
        &|| drop(person.tenure_in(&tree, &["ps"]).ok()),
        &|| drop(person.tenure_in(&repo, &["status"])),
        &|| {
            let other = Hooked::start(&env, "claude", "other", &tree);
            assert_eq!(text(&lock), reason(&other));
            other.event(&[], "SessionEnd", json!({"reason": "other"}));
        },
    ];
    for (n, look) in looks.iter().enumerate() {
        let a = Hooked::start(&env, "claude", &format!("a{n}"), &tree);
        left_behind(&lock, &a, || {
            a.event(&[], "SessionEnd", json!({"reason": "other"}));
        });
        look();
        assert_eq!(text(&lock), None, "after look {n}");
    }
    remove(&person, &repo, &tree).ok();
}

#[test]
fn a_lock_left_behind_goes_to_a_session_that_is_still_there() {
    let env = env();
    let (repo, tree, lock) = worktree(&env);
    let b = Hooked::start(&env, "claude", "b1", &tree);
    let a = Hooked::start(&env, "claude", "a1", &tree);
    let locked = text(&lock).expect("it is locked");
    a.event(&[], "SessionEnd", json!({"reason": "other"}));
    std::fs::write(&lock, &locked).expect("it is ours");
    env.agent("some-editor").tenure_in(&repo, &["ps"]).ok();
    assert_eq!(text(&lock), reason(&b));
    // The end of a session that the lock does not name puts it right as well.
    std::fs::write(&lock, &locked).expect("it is ours");
    ask(&b.agent, &["end"]);
    assert_eq!(text(&lock), None);
}

#[test]
fn a_lock_of_another_store_and_of_a_worktree_that_is_gone() {
    let env = env();
    let (repo, tree, lock) = worktree(&env);
    let person = env.agent("some-editor");
    let theirs = "tenure: claude-zzzz works here\n";
    std::fs::write(&lock, theirs).expect("it is ours");
    person.tenure_in(&repo, &["ps"]).ok();
    assert_eq!(text(&lock).as_deref(), Some(theirs), "nobody here knows it");
    std::fs::remove_file(&lock).expect("it is ours");
    let a = Hooked::start(&env, "claude", "a1", &tree);
    std::fs::remove_dir_all(&tree).expect("it is ours");
    person.tenure_in(&repo, &["ps"]).ok();
    assert!(
        text(&lock).is_some(),
        "the session that worked there still lives"
    );
    a.agent.kill9();
    person.tenure_in(&repo, &["ps"]).ok();
    person.tenure_in(&repo, &["ps"]).ok();
    assert_eq!(text(&lock), None, "git may prune it now");
}

#[test]
fn an_end_that_is_killed_at_any_point_leaves_nothing_that_the_next_look_does_not_mend() {
    let env = env();
    let (repo, tree, lock) = worktree(&env);
    let person = env.agent("some-editor");
    for microseconds in (0..30_000).step_by(2_500) {
        let a = Hooked::start(&env, "claude", &format!("a{microseconds}"), &tree);
        let handle = a.handle();
        let end = a.agent.start(Cmd::new("tenure").arg("end"));
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_micros(microseconds) {
            std::hint::spin_loop();
        }
        end.kill9();
        let shown = person
            .tenure_in(&repo, &["show", &handle, "--json"])
            .ok()
            .json();
        let is_open = shown["session"]["ended_at"].is_null();
        assert_eq!(text(&lock).is_some(), is_open, "{shown}");
        let _ended = person.tenure(&["end", "--session", &handle, "--reason", "the test goes on"]);
        a.agent.kill9();
    }
}
