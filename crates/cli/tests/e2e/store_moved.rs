//! State that was moved: nothing in it depends on the path at which it was made.

use tenure_testkit::{Cmd, scratch_git};

use crate::env;
use crate::support::line::{crew, handle, register, run, session};

/// The session and its claims are known by process and key, so another path to the store changes nothing.
#[test]
fn f_d10_a_state_directory_that_was_moved_keeps_sessions_claims_and_locks() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let (me, other) = (handle(&ann), handle(&bob));
    run(&ann, 0, "claim wp:1");
    let flag = env.dir().join("flag");
    std::fs::write(&flag, "").expect("the environment is writable");
    let line = format!("while [ -e '{}' ]; do sleep 0.02; done", flag.display());
    let locked = ann.start(Cmd::new("tenure").args(["lock", "a", "--", "sh", "-c", &line]));
    tenure_testkit::poll(crate::support::line::SOON, "it is locked", || {
        let locks = run(&bob, 0, "locks --held")["locks"].clone();
        (locks.as_array().map(Vec::len) == Some(1)).then_some(())
    });
    let moved = env.dir().join("elsewhere/state");
    std::fs::create_dir(env.dir().join("elsewhere")).expect("the environment is writable");
    std::fs::rename(env.state(), &moved).expect("a directory can be renamed");
    let there = [("TENURE_HOME", Some(moved.to_str().expect("text")))];
    let ask = |agent: &tenure_testkit::Agent, code: i32, line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.push("--json");
        agent.tenure_env(&there, &words).fails(code).json()
    };
    assert_eq!(ask(&ann, 0, "whoami")["session"]["handle"], me.as_str());
    assert_eq!(ask(&bob, 0, "whoami")["session"]["handle"], other.as_str());
    assert_eq!(ask(&ann, 0, "guard wp:1")["claim"]["epoch"], 1);
    let refused = ask(&bob, 3, "claim wp:1");
    assert_eq!(refused["error"]["holder"]["handle"], me.as_str());
    // The lock is the file itself, wherever it lies now.
    let held = ask(&bob, 0, "locks --held")["locks"].clone();
    assert_eq!(held[0]["name"], "a", "{held}");
    let tried = bob.tenure_env(&there, &["lock", "a", "--json", "--", "true"]);
    assert_eq!(tried.code, 125, "{tried}");
    assert!(!env.state().exists(), "the old place was made again");
    std::fs::remove_file(&flag).expect("the flag is there");
    let _ended = locked.wait().ok();
}

/// A path key is stored relative to its repository, so a clone at another path means the same files.
#[test]
fn f_d10_a_reserved_path_means_the_same_file_after_its_repository_moved() {
    let env = env();
    let (old, new) = (env.dir().join("home-a/web"), env.dir().join("home-b/web"));
    scratch_git(&old, Some(&env.own_remote("web")));
    let (ann, bob) = (env.agent("ann"), session(&env, "bob"));
    register(&ann, "ann", &format!("--dir {}", old.display()));
    let claim = |agent: &tenure_testkit::Agent, dir, code| {
        let words = ["claim", "path:src/**", "--json"];
        agent.tenure_in(dir, &words).fails(code).json()
    };
    let key = claim(&ann, &old, 0)["claim"]["key"].clone();
    let stored = key.as_str().expect("a key");
    assert!(!stored.contains("home-a"), "{stored}");
    std::fs::create_dir(env.dir().join("home-b")).expect("the environment is writable");
    std::fs::rename(&old, &new).expect("a directory can be renamed");
    let guard = ["guard", "path:src/db.rs", "--json"];
    let answer = ann.tenure_in(&new, &guard).ok().json();
    assert_eq!(answer["claim"]["key"], key);
    let refused = claim(&bob, &new, 3);
    assert_eq!(refused["error"]["holder"]["handle"], handle(&ann).as_str());
}
