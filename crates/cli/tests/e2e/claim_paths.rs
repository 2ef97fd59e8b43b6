//! Paths as items: two patterns that can match one file conflict, however they are spelled.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, add_worktree, scratch_git};

use crate::support::line::{crew, refused, run, take, text};
use crate::support::waiter::{ends, waits};

/// A glob of one repository as a key.
fn key(glob: &str) -> String {
    format!("path:acme/web:{glob}")
}

#[track_caller]
fn holds(agent: &Agent, glob: &str) -> u64 {
    take(agent, &key(glob))
}

#[test]
fn a_waiter_gets_a_path_when_the_one_in_its_way_is_given_back() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    holds(&ann, "src/**");
    let asked = key("src/a.rs");
    let waiter = waits(&env, &bob, &asked, &format!("claim {asked} --wait 5m"));
    run(&ann, 0, &format!("release {}", key("src/**")));
    ends(waiter).ok();
    let waiter = waits(
        &env,
        &ann,
        &key("src/*"),
        &format!("claim {} --wait 5m", key("src/*")),
    );
    bob.kill9();
    ends(waiter).ok();
}

/// What a claim of a typed key comes to, in a directory.
#[track_caller]
fn claimed(agent: &Agent, dir: &Path, typed: &str, code: i32) -> Value {
    let said = agent.tenure_in(dir, &["claim", typed, "--json"]);
    said.fails(code).json()
}

#[test]
fn f_c20_a_short_path_is_completed_from_the_repository() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let repo = env.dir().join("repo");
    let linked = env.dir().join("linked");
    scratch_git(&repo, Some("git@github.com:acme/web.git"));
    add_worktree(&repo, &linked, "feature");
    std::fs::create_dir(repo.join("sub")).unwrap();
    let won = claimed(&ann, &repo, "path:src/**", 0);
    assert_eq!(won["claim"]["key"], key("src/**").as_str());
    for (dir, typed) in [
        (&repo, "path:src/a.rs"),
        (&linked, "path:src/a.rs"),
        (&repo.join("sub"), "path:../src/a.rs"),
    ] {
        let error = claimed(&bob, dir, typed, 3)["error"].clone();
        assert_eq!(error["kind"], "overlaps");
        assert_eq!(error["key"], key("src/**").as_str());
        assert!(
            text(&error["message"]).contains(&key("src/a.rs")),
            "{error}"
        );
    }
    refused(&bob, 3, "overlaps", &format!("claim {}", key("src/a.rs")));
    bob.tenure(&["claim", "path:src/a.rs"]).fails(2);
}

#[test]
fn f_c20_a_short_path_needs_no_remote() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let [repo, other, linked] = ["repo", "other", "linked"].map(|name| env.dir().join(name));
    scratch_git(&repo, None);
    scratch_git(&other, None);
    add_worktree(&repo, &linked, "feature");
    claimed(&ann, &repo, "path:src/**", 0);
    let error = claimed(&bob, &linked, "path:src/a.rs", 3)["error"].clone();
    assert_eq!(error["kind"], "overlaps");
    claimed(&bob, &other, "path:src/a.rs", 0);
}

#[test]
fn malformed_globs_are_refused() {
    let (_env, [ann]) = crew(["ann"]);
    for glob in [
        "",
        "../src",
        "src/../../a",
        "*/../a",
        "a[",
        "a{b",
        "a**",
        "a\\",
        "[]",
        "..",
    ] {
        for verb in ["claim", "guard", "why", "release"] {
            let said = ann.tenure(&[verb, &key(glob)]);
            assert_eq!(said.code, 2, "{verb} {glob:?}\n{said}");
        }
    }
    ann.tenure(&["claim", "path::src/**"]).fails(2);
    let held = run(&ann, 0, "claims");
    assert_eq!(held["claims"], json!([]));
}

#[test]
fn taker_and_loser_are_told_what_was_taken_along() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    holds(&ann, "src/**");
    holds(&ann, "src/a.rs");
    let said = bob.tenure(&["takeover", &key("src/**"), "--reason", "stuck"]);
    let said = said.ok().stdout;
    assert!(said.contains("also taken from it: path:acme/web:src/a.rs (epoch 1)"));
    let told = run(&ann, 0, "whoami")["notices"].clone();
    let lost: Vec<&Value> = told.as_array().expect("a list").iter().collect();
    let keys: Vec<_> = lost.iter().map(|notice| notice["key"].clone()).collect();
    assert_eq!(keys, [key("src/**"), key("src/a.rs")].map(Value::from));
    assert!(text(&lost[1]["message"]).contains("stuck"), "{told}");
    assert_eq!(run(&ann, 0, "whoami")["notices"], json!([]), "once");
}
