//! One repository under several names: whatever becomes of its remote, nobody loses a path.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env, add_worktree, scratch_git};

use crate::env;
use crate::support::hooked::{Hooked, denied};
use crate::support::line::{handle, register, run, session, text};

const X: &str = "git@github.com:acme/web.git";

const Y: &str = "https://gitlab.com/fork/web.git";

/// Runs tenure in a directory, with `--json`.
#[track_caller]
fn at(agent: &Agent, dir: &Path, code: i32, line: &str) -> Value {
    let mut args: Vec<&str> = line.split_whitespace().collect();
    args.push("--json");
    let said = agent.tenure_in(dir, &args);
    assert_eq!(said.code, code, "{line}\n{said}");
    said.json()
}

#[track_caller]
fn git(agent: &Agent, dir: &Path, line: &str) {
    let cmd = Cmd::new("git").args(line.split_whitespace()).dir(dir);
    agent.run(cmd).ok();
}

fn repository(env: &Env, name: &str, remote: Option<&str>) -> PathBuf {
    let dir = env.dir().join(name);
    scratch_git(&dir, remote);
    dir
}

fn pair(env: &Env) -> (Agent, Agent) {
    (session(env, "ann"), session(env, "bob"))
}

/// A claim from this directory is told that ann holds the path.
#[track_caller]
fn keeps(ann: &Agent, bob: &Agent, dir: &Path) {
    for asked in ["path:src/**", "path:src/a.rs", "path:**/*.rs"] {
        let error = at(bob, dir, 3, &format!("claim {asked}"))["error"].clone();
        assert_eq!(
            error["holder"]["handle"],
            handle(ann).as_str(),
            "{asked} in {}",
            dir.display()
        );
        at(bob, dir, 3, &format!("guard {asked}"));
    }
    at(ann, dir, 0, "guard path:src/a.rs");
}

#[test]
fn f_c20_a_remote_that_is_added_robs_nobody() {
    let env = env();
    let (ann, bob) = pair(&env);
    let repo = repository(&env, "repo", None);
    at(&ann, &repo, 0, "claim path:src/**");
    git(&ann, &repo, &format!("remote add origin {X}"));
    keeps(&ann, &bob, &repo);
    // Another clone of what is the remote now.
    let clone = repository(&env, "clone", Some(X));
    keeps(&ann, &bob, &clone);
    let outside = run(&bob, 3, "claim path:acme/web:src/a.rs");
    assert_eq!(outside["error"]["holder"]["handle"], handle(&ann).as_str());
}

#[test]
fn f_c20_a_remote_that_changes_or_goes_robs_nobody() {
    let env = env();
    let (ann, bob) = pair(&env);
    let repo = repository(&env, "repo", Some(X));
    let (of_x, of_y) = (
        repository(&env, "x", Some(X)),
        repository(&env, "y", Some(Y)),
    );
    at(&ann, &repo, 0, "claim path:src/**");
    git(&ann, &repo, &format!("remote set-url origin {Y}"));
    for dir in [&repo, &of_x, &of_y] {
        keeps(&ann, &bob, dir);
    }
    git(&ann, &repo, "remote remove origin");
    for dir in [&repo, &of_x] {
        keeps(&ann, &bob, dir);
    }
    at(&ann, &repo, 0, "release path:src/**");
    // The two others were never one repository.
    at(&ann, &of_x, 0, "claim path:src/**");
    at(&bob, &of_y, 0, "claim path:src/**");
}

#[test]
fn a_fork_whose_remote_becomes_the_upstream_glues_nothing_together() {
    let env = env();
    let (ann, bob) = pair(&env);
    let repo = repository(&env, "repo", Some(Y));
    at(&ann, &repo, 0, "claim path:docs/**");
    git(&ann, &repo, &format!("remote set-url origin {X}"));
    at(&ann, &repo, 0, "claim path:lib/**");
    let (of_x, of_y) = (
        repository(&env, "x", Some(X)),
        repository(&env, "y", Some(Y)),
    );
    at(&ann, &of_x, 0, "claim path:src/**");
    at(&bob, &of_y, 0, "claim path:src/**");
    at(&bob, &of_y, 0, "claim path:lib/**");
}

#[test]
fn f_c20_every_verb_finds_a_path_under_both_names() {
    let env = env();
    let (ann, bob) = pair(&env);
    let repo = repository(&env, "repo", None);
    let won = at(&ann, &repo, 0, "claim path:src/**");
    let old = text(&won["claim"]["key"]);
    git(&ann, &repo, &format!("remote add origin {X}"));
    for typed in ["path:src/**", "path:acme/web:src/**", &old] {
        let why = at(&bob, &repo, 0, &format!("why {typed}"));
        assert_eq!(why["claim"]["key"], old.as_str(), "{typed}");
        assert_eq!(why["claim"]["holder"]["handle"], handle(&ann).as_str());
        let guard = at(&ann, &repo, 0, &format!("guard {typed} --epoch 1"));
        assert_eq!(guard["claim"]["key"], old.as_str(), "{typed}");
        let again = at(&ann, &repo, 0, &format!("claim {typed}"));
        assert_eq!(again["claim"]["key"], old.as_str(), "{typed}");
        assert_eq!(again["claim"]["already_held"], true, "{typed}");
        let log = at(&ann, &repo, 0, &format!("log {typed}"));
        assert_eq!(log["events"][0]["key"], old.as_str(), "{typed}: {log}");
    }
    for prefix in ["path:acme/web:", "path:acme/web:src", "path:"] {
        let listed = at(&bob, &repo, 0, &format!("claims {prefix}"));
        assert_eq!(
            listed["claims"][0]["key"],
            old.as_str(),
            "{prefix}: {listed}"
        );
    }
    let none = at(&bob, &repo, 0, "claims path:acme/web:docs");
    assert_eq!(none["claims"], json!([]));
    let to = handle(&bob);
    at(&ann, &repo, 0, &format!("handoff path:src/** --to {to}"));
    at(&bob, &repo, 0, "guard path:src/a.rs");
    at(&ann, &repo, 0, "takeover path:src/** --reason test");
    at(&bob, &repo, 5, "guard path:src/a.rs");
    at(&bob, &repo, 5, "release path:src/**");
    at(&ann, &repo, 0, "release path:src/**");
    let now = at(&bob, &repo, 0, "claim path:src/**");
    assert_eq!(now["claim"]["key"], "path:acme/web:src/**");
}

#[test]
fn f_c20_worktrees_share_a_path_and_a_submodule_does_not() {
    let env = env();
    let (ann, bob) = pair(&env);
    let repo = repository(&env, "repo", None);
    let linked = env.dir().join("linked");
    add_worktree(&repo, &linked, "feature");
    let library = repository(&env, "library", None);
    let add = format!(
        "-c protocol.file.allow=always submodule --quiet add {} lib",
        library.display()
    );
    git(&ann, &repo, &add);
    at(&ann, &linked, 0, "claim path:src/**");
    git(&ann, &repo, &format!("remote add origin {X}"));
    keeps(&ann, &bob, &repo);
    at(&bob, &repo.join("lib"), 0, "claim path:/src/**");
    at(&ann, &repo.join("lib"), 3, "claim path:/src/a.rs");
}

#[test]
fn f_c20_a_repository_that_is_moved_keeps_its_paths() {
    let env = env();
    let (ann, bob) = pair(&env);
    for remote in [Some(X), None] {
        let repo = repository(&env, "repo", remote);
        let moved = env.dir().join("moved");
        at(&ann, &repo, 0, "claim path:src/**");
        std::fs::rename(&repo, &moved).unwrap();
        keeps(&ann, &bob, &moved);
        at(&ann, &moved, 0, "release path:src/**");
        std::fs::remove_dir_all(&moved).unwrap();
    }
}

#[test]
fn f_c20_the_hook_finds_a_reserved_path_under_both_names() {
    let env = env();
    let repo = repository(&env, "repo", None);
    std::fs::create_dir(repo.join("src")).unwrap();
    let ann = Hooked::start(&env, "claude", "one", &repo);
    let bob = Hooked::start(&env, "claude", "two", &repo);
    at(&ann.agent, &repo, 0, "claim path:src/**");
    git(&ann.agent, &repo, &format!("remote add origin {X}"));
    let block = ["--mode", "block"];
    let said = bob.write(&block, &repo.join("src/a.rs"));
    assert!(denied(&said).is_some(), "{said}");
    let said = ann.write(&block, &repo.join("src/b.rs"));
    assert_eq!(denied(&said), None, "{said}");
}

#[test]
fn f_c20_a_path_that_is_granted_again_is_known_under_both_names() {
    let env = env();
    let (ann, bob) = (env.agent("ann"), session(&env, "bob"));
    register(&ann, "ann", "--native-id n1");
    let repo = repository(&env, "repo", Some(X));
    at(&ann, &repo, 0, "claim path:src/**");
    run(&ann, 0, "end");
    let back = register(&ann, "ann", "--native-id n1");
    assert_eq!(back["session"]["registered"], "resumed", "{back}");
    git(&ann, &repo, &format!("remote set-url origin {Y}"));
    keeps(&ann, &bob, &repo);
}

/// A path of the dead is free under every name.
#[test]
fn f_c20_a_dead_holder_blocks_nobody_under_any_name() {
    let env = env();
    let (ann, bob) = pair(&env);
    let repo = repository(&env, "repo", None);
    at(&ann, &repo, 0, "claim path:src/**");
    git(&ann, &repo, &format!("remote add origin {X}"));
    ann.kill9();
    let won = at(&bob, &repo, 0, "claim path:src/**");
    assert_eq!(won["claim"]["key"], "path:acme/web:src/**");
    let held = at(&bob, &repo, 0, "claims path:");
    assert_eq!(held["claims"].as_array().map(Vec::len), Some(1), "{held}");
}

/// Who works in a repository is found when it has another name now.
#[test]
fn neighbours_are_found_after_the_remote_changed() {
    let env = env();
    let (ann, bob) = (env.agent("ann"), env.agent("bob"));
    let (repo, linked) = (repository(&env, "repo", None), env.dir().join("linked"));
    add_worktree(&repo, &linked, "feature");
    let (here, aside) = (repo.display(), linked.display());
    register(&ann, "ann", &format!("--dir {here}"));
    let eve = env.agent("eve");
    register(&eve, "eve", &format!("--dir {aside}"));
    git(&ann, &repo, &format!("remote add origin {X}"));
    register(&bob, "bob", &format!("--dir {here}"));
    let others = |agent: &Agent, dir: &Path| {
        let found = at(agent, dir, 0, "who")["sessions"].clone();
        found.as_array().expect("a list").len()
    };
    assert_eq!(others(&bob, &repo), 2);
    assert_eq!(others(&ann, &linked), 2);
    let status = at(&bob, &repo, 0, "status");
    assert_eq!(status["status"]["others"].as_array().map(Vec::len), Some(2));
    at(&ann, &repo, 0, &format!("verify --project {here}"));
    git(&ann, &repo, &format!("remote set-url origin {Y}"));
    // Those in the same worktree, whatever it is called.
    assert_eq!(others(&bob, &repo), 2);
    let checkout = json!({"tool_name": "Bash", "tool_input": {"command": "git stash"}});
    let hooked = Hooked::start(&env, "claude", "one", &repo);
    let said = hooked.event(&["--mode", "block"], "PreToolUse", checkout);
    assert!(denied(&said).is_some(), "{said}");
}
