//! What git is given for a forge: the certificates for the dispatcher's own git, and the credential for a run that goes on.

use serde_json::Value;
use tenure_testkit::{Env, Scripted, poll};

use crate::env;
use crate::support::cloned::{rule, set_up};
use crate::support::dispatch::fill_in;
use crate::support::git_host::{GitHost, git, git_maybe};
use crate::support::line::{SOON, text};
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

/// Pushes a commit of its own, once it may.
const PUSHES: &str = "cat >/dev/null; init; ready $dir/on; hold $dir/flag; \
     git -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m mine; \
     git push --quiet origin HEAD:refs/heads/$(basename $PWD) 2>$dir/no; echo $? >>$dir/codes; done_";

/// A run of a rule with `push` that was stopped before it pushed.
pub fn stopped(env: &Env) -> (Scripted, GitHost, String) {
    let mine = Scripted::new(env, "mine", PUSHES);
    mine.keep("flag");
    let host = GitHost::start(&env.dir().join("host"));
    host.commit("refs/heads/main", "a", "1");
    set_up(
        env,
        &host,
        "",
        "",
        &rule("name = \"fix\"\npush = \"push.token\""),
    );
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    poll(SOON, "its conversation is known", || {
        all(env)[0]["native_id"].as_str().map(drop)
    });
    let run = text(&all(env)[0]["id"]);
    env.tenure(&["runs", "stop", &run]).ok();
    ended(env, "stopped");
    std::fs::remove_file(mine.file("flag")).expect("it was kept");
    (mine, host, run)
}

#[test]
fn a_run_that_goes_on_pushes_with_what_its_rule_names() {
    let env = env();
    let (mine, host, run) = stopped(&env);
    assert_eq!(mine.wrote("codes"), None, "it has pushed nothing");
    env.agent("ann").tenure(&["runs", "resume", &run]).ok();
    let why = mine.wrote("no");
    assert_eq!(mine.wrote("codes").as_deref(), Some("0\n"), "{why:?}");
    let branch = ["rev-parse", "--verify", "refs/heads/issue-1"];
    assert!(git_maybe(&host.repo, &branch).is_some());
    let dir = text(&all(&env)[0]["dir"]);
    let settings = git(std::path::Path::new(&dir), &["config", "--list"]);
    assert!(!settings.contains("__credential"), "{settings}");
}

#[test]
fn a_run_whose_rule_lost_its_push_does_not_go_on() {
    let env = env();
    let (mine, _host, run) = stopped(&env);
    let ann = env.agent("ann");
    let refused = |why: &str| {
        let answer = ann.tenure(&["runs", "resume", &run, "--json"]);
        assert_eq!(answer.code, 125, "{answer}");
        let error = answer.json()["error"].clone();
        assert_eq!(error["kind"], "not_resumable", "{error:#}");
        assert!(text(&error["message"]).contains(why), "{error:#}");
    };
    fill_in(&env, "push = \"push.token\"", "");
    refused("rule fix has no push any more");
    fill_in(
        &env,
        "name = \"fix\"",
        "name = \"other\"\npush = \"push.token\"",
    );
    refused("has no rule fix any more");
    fill_in(&env, "name = \"other\"", "name = \"fix\"");
    let token = env.home().join(".config/tenure/push.token");
    std::fs::remove_file(&token).expect("it was made");
    refused("1 fault");
    assert_eq!(mine.wrote("codes"), None, "no agent was started");
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
fn git_believes_the_certificates_of_the_forge_when_it_clones_and_fetches() {
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
    let certificate = include_str!("../../../forges/tests/events/tls/ca.pem");
    std::fs::write(&ca, certificate).expect("the home is ours");
    fill_in(&env, "own_account", "ca_file = \"ca.pem\"\nown_account");
    noting_git(&env);
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(1, "opened"));
    ended(&env, "done");
    let calls = std::fs::read_to_string(env.dir().join("git-calls")).expect("git ran");
    let setting = format!("-c http.{}.sslCAInfo={}", host.url, ca.display());
    for verb in [" clone ", " fetch "] {
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
