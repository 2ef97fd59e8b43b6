//! `guard --lost`, and the hooks of a repository that ask it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, Output, add_worktree, scratch_git};

use crate::env;
use crate::support::answer::{ask, refused, register};
use crate::support::hooked::repository;

const KEY: &str = "issue:acme/web#42";

/// Two sessions, of which the first lost a claim to the second.
fn robbed(env: &Env) -> (Agent, Agent) {
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    for agent in [&a, &b] {
        register(agent, &[]);
    }
    ask(&a, &["claim", KEY]);
    take(&b);
    (a, b)
}

fn take(agent: &Agent) {
    ask(agent, &["takeover", KEY, "--reason", "mine now"]);
}

fn handle(agent: &Agent) -> String {
    ask(agent, &["whoami"])["session"]["handle"]
        .as_str()
        .expect("it is a session")
        .to_owned()
}

#[test]
fn who_lost_a_claim_is_refused_until_it_takes_one_again() {
    let env = env();
    env.tenure(&["guard", "--lost"]).ok();
    let (a, b) = robbed(&env);
    ask(&b, &["guard", "--lost"]);
    for _ in 0..2 {
        let error = refused(&a, 5, &["guard", "--lost"]);
        assert_eq!(error["kind"], "lost", "{error}");
        let said = error["message"].as_str().expect("a message");
        assert!(said.contains(KEY) && said.contains(&handle(&b)), "{said}");
        assert!(
            error["hints"].to_string().contains(r#""verb":"claim""#),
            "{error}"
        );
    }
    ask(&a, &["claim", "wp:other"]);
    ask(&a, &["guard", "--lost"]);
    // The same again: it had that claim before it lost the next.
    ask(&b, &["release", KEY]);
    ask(&a, &["claim", KEY]);
    ask(&a, &["guard", "--lost"]);
    take(&b);
    refused(&a, 5, &["guard", "--lost"]);
    ask(&b, &["release", KEY]);
    ask(&a, &["guard", "--lost"]);
}

#[test]
fn what_was_given_back_is_not_lost() {
    let env = env();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    for agent in [&a, &b] {
        register(agent, &[]);
    }
    ask(&a, &["claim", KEY]);
    ask(&a, &["release", KEY]);
    ask(&b, &["claim", KEY]);
    ask(&a, &["guard", "--lost"]);
}

fn git(agent: &Agent, dir: &Path, args: &[&str]) -> Output {
    agent.run(Cmd::new("git").args(args.iter().copied()).dir(dir))
}

fn commit(agent: &Agent, dir: &Path) -> Output {
    git(agent, dir, &["commit", "--allow-empty", "-m", "work"])
}

fn install(env: &Env, repo: &Path) -> Value {
    let dir = repo.to_str().expect("paths of tests are text");
    env.tenure(&["install", "git", "--project", dir, "--json"])
        .ok()
        .json()["agents"][0]
        .clone()
}

fn uninstall(env: &Env, repo: &Path) {
    let dir = repo.to_str().expect("paths of tests are text");
    env.tenure(&["uninstall", "git", "--project", dir]).ok();
}

fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("it is in a directory"))
        .expect("a scratch directory is ours");
    std::fs::write(path, text).expect("a scratch directory is ours");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .expect("a scratch directory is ours");
}

/// Everything in a directory: names, content or target, mode.
fn files(dir: &Path) -> Vec<(PathBuf, String, u32)> {
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .map(|entry| {
            let path = entry.expect("a scratch directory is ours").path();
            let meta = std::fs::symlink_metadata(&path).expect("a scratch directory is ours");
            let content = if meta.is_symlink() {
                std::fs::read_link(&path)
                    .expect("a scratch directory is ours")
                    .display()
                    .to_string()
            } else {
                std::fs::read_to_string(&path).expect("a scratch directory is ours")
            };
            (path, content, meta.permissions().mode())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_commit_and_a_push_are_refused_once_the_claim_was_lost() {
    let env = env();
    let repo = repository(&env, "web");
    let bare = env.dir().join("bare.git");
    scratch_git(&env.dir().join("seed"), None);
    let (a, b) = robbed(&env);
    git(&a, env.dir(), &["init", "--quiet", "--bare", "bare.git"]).ok();
    let bare = bare.to_str().unwrap();
    assert_eq!(install(&env, &repo)["state"], "installed");
    assert_eq!(install(&env, &repo)["changed"], false, "twice is once");

    for refusing in [commit(&a, &repo), git(&a, &repo, &["push", bare, "main"])] {
        assert_eq!(refusing.code, 1, "{refusing:?}");
        for part in [KEY, &handle(&b), "tenure claim"] {
            assert!(refusing.stderr.contains(part), "{part}: {refusing:?}");
        }
    }
    commit(&b, &repo).ok();
    ask(&a, &["claim", "wp:other"]);
    commit(&a, &repo).ok();
    git(&a, &repo, &["push", "--quiet", bare, "main"]).ok();
    let person = env.agent("some-editor");
    commit(&person, &repo).ok();
    uninstall(&env, &repo);
    assert!(!repo.join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_linked_worktree_shares_the_hooks_and_a_store_that_fails_stops_nobody() {
    let env = env();
    let repo = repository(&env, "web");
    let other = env.dir().join("web-2");
    add_worktree(&repo, &other, "two");
    install(&env, &other);
    let (a, _b) = robbed(&env);
    assert_eq!(commit(&a, &other).code, 1);
    std::fs::write(env.state().join("tenure.db"), "not a database").unwrap();
    commit(&a, &other).ok();
}

#[test]
fn hooks_that_were_there_are_kept_and_run_and_come_back() {
    let env = env();
    let repo = repository(&env, "web");
    let hooks = repo.join(".git/hooks");
    let trace = env.dir().join("trace");
    script(
        &hooks.join("pre-commit"),
        &format!("#!/bin/sh\nset -e\necho mine >>'{}'\n", trace.display()),
    );
    let elsewhere = env.dir().join("shared-hook");
    script(
        &elsewhere,
        &format!("#!/bin/sh\ncat >>'{}'; exit 3\n", trace.display()),
    );
    symlink(&elsewhere, hooks.join("pre-push")).unwrap();
    let before = files(&hooks);
    install(&env, &repo);
    install(&env, &repo);
    let person = env.agent("some-editor");
    commit(&person, &repo).ok();
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), "mine\n");
    git(
        &person,
        env.dir(),
        &["init", "--quiet", "--bare", "bare.git"],
    )
    .ok();
    let pushed = git(&person, &repo, &["push", "../bare.git", "main"]);
    assert_eq!(pushed.code, 1, "its own hook refuses: {pushed}");
    assert!(pushed.stderr.contains("failed to push"), "{pushed}");
    let read = std::fs::read_to_string(&trace).unwrap();
    assert!(read.contains("refs/heads/main"), "{read}");

    uninstall(&env, &repo);
    assert_eq!(files(&hooks), before);
}

#[test]
fn without_the_binary_only_the_kept_hook_decides() {
    let env = env();
    let repo = repository(&env, "web");
    let copy = env.dir().join("gone/tenure");
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::copy(env.tenure_path(), &copy).unwrap();
    let (a, _b) = robbed(&env);
    let cmd = Cmd::new(copy.to_str().unwrap())
        .args(["install", "git"])
        .dir(&repo);
    a.run(cmd).ok();
    assert_eq!(commit(&a, &repo).code, 1);
    std::fs::remove_file(&copy).unwrap();
    let passes = commit(&a, &repo).ok();
    assert!(!passes.stderr.contains("tenure"), "{passes:?}");
    // Another tenure brings it up to date.
    assert_eq!(install(&env, &repo)["files"][0]["change"], "changed");
    assert_eq!(commit(&a, &repo).code, 1);
}

#[test]
fn core_hooks_path_counts_and_uninstall_all_finds_every_repository() {
    let env = env();
    let (one, two) = (repository(&env, "one"), repository(&env, "two"));
    let person = env.agent("some-editor");
    git(&person, &two, &["config", "core.hooksPath", "my-hooks"]).ok();
    let before = (
        files(&one.join(".git/hooks")),
        files(&two.join(".git/hooks")),
    );
    install(&env, &one);
    let said = install(&env, &two);
    assert_eq!(said["file"], two.join("my-hooks").to_str().unwrap());
    assert!(two.join("my-hooks/pre-push").is_file());
    let (a, _b) = robbed(&env);
    assert_eq!(commit(&a, &two).code, 1);
    env.tenure(&["install", "git", "--check"]).fails(4);
    env.tenure(&["uninstall", "--all"]).ok();
    assert_eq!(files(&one.join(".git/hooks")), before.0);
    assert_eq!(files(&two.join("my-hooks")), []);
    assert_eq!(files(&two.join(".git/hooks")), before.1);
    assert!(!env.state().join("git-hooks").exists());
}

#[test]
fn nothing_is_changed_where_it_is_only_asked_for_or_would_lose_a_hook() {
    let env = env();
    let repo = repository(&env, "web");
    let hooks = repo.join(".git/hooks");
    script(&hooks.join("pre-commit"), "#!/bin/sh\n");
    script(
        &hooks.join("pre-commit.before-tenure"),
        "#!/bin/sh\nexit 1\n",
    );
    let before = files(&hooks);
    let dir = repo.to_str().unwrap();
    let target = ["git", "--project", dir];
    env.tenure(&[&["install"], &target[..]].concat()).fails(6);
    std::fs::remove_file(hooks.join("pre-commit.before-tenure")).unwrap();
    env.tenure(&[&["install", "--dry-run"], &target[..]].concat())
        .ok();
    env.tenure(&[&["install", "--check"], &target[..]].concat())
        .fails(1);
    std::fs::write(
        hooks.join("pre-commit.before-tenure"),
        "#!/bin/sh\nexit 1\n",
    )
    .unwrap();
    script(
        &hooks.join("pre-commit.before-tenure"),
        "#!/bin/sh\nexit 1\n",
    );
    assert_eq!(files(&hooks), before);
}
