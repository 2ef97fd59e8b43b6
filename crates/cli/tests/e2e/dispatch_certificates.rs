//! What git is given for a forge: the certificates for the dispatcher's own git.

use serde_json::Value;
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::cloned::{rule, set_up};
use crate::support::dispatch::fill_in;
use crate::support::git_host::{GitHost, git};
use crate::support::line::SOON;
use crate::support::run::all;
use crate::support::webhook::{Dispatcher, issue};

/// The newest run, once it ended this way.
#[track_caller]
fn ended(env: &Env, outcome: &str) -> Value {
    poll(SOON, "the run is over", || {
        let run = all(env).into_iter().next()?;
        (run["outcome"] == outcome).then_some(run)
    })
}

/// A program `git` that notes its arguments and variables, and then is git.
fn noting_git(env: &Env) {
    use std::os::unix::fs::PermissionsExt;
    let program = env.dir().join("bin/git");
    let real = std::env::var("PATH").expect("there is one");
    let notes = env.dir().join("git-calls");
    let text = format!(
        "#!/bin/sh\necho \"$@ ca=$GIT_SSL_CAINFO\" >>{}\nPATH={real} exec git \"$@\"\n",
        notes.display()
    );
    std::fs::write(&program, text).expect("the environment is ours");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it was just made");
}

#[test]
fn git_believes_the_certificates_of_the_forge_when_it_fetches() {
    let mut env = env();
    // Git would use it instead of the setting.
    env.set("GIT_SSL_CAINFO", "/etc/ssl/others.pem");
    let mine = Scripted::new(
        &env,
        "mine",
        "git config --list >$dir/config; env >$dir/env; cat >/dev/null; init; done_",
    );
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(&env, &host, "", "", &rule(""));
    let ca = env.home().join(".config/tenure/ca.pem");
    let certificate = include_str!("../../../dispatch/tests/forges/tls/ca.pem");
    std::fs::write(&ca, certificate).expect("the home is ours");
    fill_in(&env, "own_account", "ca_file = \"ca.pem\"\nown_account");
    noting_git(&env);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    ended(&env, "done");
    let calls = std::fs::read_to_string(env.dir().join("git-calls")).expect("git ran");
    let setting = format!("-c http.{}.sslCAInfo={}", host.url, ca.display());
    for verb in [" ls-remote ", " fetch "] {
        let mut own = calls.lines().filter(|call| call.contains(verb)).peekable();
        assert!(own.peek().is_some(), "{verb} in {calls}");
        for call in own {
            assert!(call.contains(&setting), "{call}");
            assert!(call.ends_with("ca="), "{call}");
        }
    }
    let address = format!("{}/acme/web.git", host.url);
    let (_, pair) = setting.split_once(' ').expect("two words");
    let found = git(
        env.dir(),
        &[
            "-c",
            pair,
            "config",
            "--get-urlmatch",
            "http.sslCAInfo",
            &address,
        ],
    );
    assert_eq!(found.trim(), ca.to_str().expect("text"), "git reads it so");
    let config = mine.wrote("config").expect("it looked");
    assert!(!config.to_lowercase().contains("sslcainfo"), "{config}");
    assert!(!mine.wrote("env").expect("it looked").contains("ca.pem"));
}
