//! A command that fails leaves nothing behind, and what cannot be looked at is not taken for missing.

use std::os::unix::fs::symlink;

use crate::env;

/// Commands that change a session that is already known. Without a store there is none.
const FAILING: &[&str] = &[
    "dismiss x",
    "dismiss --all --reason because",
    "end x --reason because",
    "goto x",
    "rename x Title",
    "tell x hello",
    "meta set a b",
    "claim wp:1",
    "release wp:1",
    "renew",
    "handoff wp:1 --to x",
    "takeover wp:1 --reason because",
    "mission join m --role developer",
    "mission leave m",
    "mission focus wp:1",
    "mission drive active",
    "register --agent ann --pid 4194303",
    "adopt 4194303",
    "runs show r-1",
    "runs tail r-1",
    "runs stop r-1",
    "runs resume r-1",
    "queue show j-1",
    "queue explain j-1",
    "queue cancel j-1",
    "queue retry j-1",
];

#[test]
fn a_command_that_fails_without_a_store_makes_none() {
    let env = env();
    for line in FAILING {
        let words: Vec<&str> = line.split(' ').collect();
        let said = env.tenure(&words);
        assert_ne!(said.code, 0, "{line}\n{said}");
        assert_ne!(said.code, 2, "{line} is not a command\n{said}");
        assert!(!said.stderr.contains("created"), "{line}\n{said}");
        assert!(!env.state().exists(), "{line} made the state directory");
    }
    let append = ["transcript", "append", "x"];
    let said = env.agent("ann").tenure_stdin(&append, "{}\n").fails(4);
    assert!(!env.state().exists(), "{said}");
}

#[test]
fn a_command_that_claims_for_a_command_makes_the_store() {
    let env = env();
    env.tenure(&["claim", "wp:1", "--", "true"]).ok();
    assert!(env.state().is_dir());
}

#[test]
fn locks_that_cannot_be_looked_at_are_not_missing_ones() {
    let env = env();
    std::fs::create_dir(env.state()).expect("a scratch directory is ours");
    let locks = env.state().join("locks");
    symlink(&locks, &locks).expect("a scratch directory is ours");
    let said = env.tenure(&["locks"]).fails(8);
    assert!(said.stderr.contains("locks"), "{said}");
}
