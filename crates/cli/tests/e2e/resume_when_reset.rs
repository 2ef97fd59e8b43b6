//! `resume --when-reset`: what a usage limit stopped goes on when the limit ends, and not before.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tenure_host::clock;
use tenure_testkit::{Agent, Cmd, Env, poll};

use crate::env;
use crate::support::line::{SOON, handle};
use crate::support::transcript::{claude, file_of};

const ID: &str = "b2d6a746-0000-4000-8000-000000000013";

/// Ends the session's turn with a usage limit until then, as Claude Code records it.
fn limits(env: &Env, id: &str, until: Option<i64>) {
    let mut record = json!({"type": "assistant", "sessionId": id, "timestamp": clock::wall().to_string(),
        "isApiErrorMessage": true, "error": "rate_limit", "apiErrorStatus": 429, "message": {"content": [
            {"type": "text", "text": "You've hit your 5-hour limit · resets 12:48am (UTC)"}]}});
    if let Some(until) = until {
        record["quotaLimits"] = json!({"status": "rejected", "resetsAt": until});
    }
    let file = file_of(env, id);
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{before}{record}\n")).unwrap();
}

/// In so many seconds, as a whole second.
fn in_seconds(seconds: i64) -> i64 {
    clock::wall().0 / 1_000 + seconds
}

/// Replaces the agent's program by one that says when it was started, in seconds, and with what.
fn recorder(env: &Env) {
    let program = env.dir().join("bin/claude");
    let script = format!(
        "#!/bin/sh\necho \"$(date +%s) $*\" >>'{}'\nexit 7\n",
        env.dir().join("started").display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
}

fn started(env: &Env) -> Vec<String> {
    let text = std::fs::read_to_string(env.dir().join("started")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn dead(env: &Env, until: Option<i64>) -> String {
    let agent: Agent = claude(env, ID);
    let name = handle(&agent);
    limits(env, ID, until);
    agent.kill9();
    recorder(env);
    name
}

#[test]
fn a_dead_session_is_resumed_when_its_limit_ends() {
    let env = env();
    let until = in_seconds(3);
    let name = dead(&env, Some(until));
    let resumed = env.tenure(&["resume", &name, "--when-reset"]);
    assert_eq!(resumed.code, 7, "{resumed}");
    assert!(resumed.stderr.starts_with("waiting until "), "{resumed}");
    let calls = started(&env);
    let (at, line) = calls[0].split_once(' ').unwrap();
    assert_eq!(line, format!("--resume {ID}"));
    assert!(at.parse::<i64>().unwrap() >= until, "{calls:?}");
}

#[test]
fn without_a_name_what_is_limited_is_waited_for() {
    let env = env();
    let until = in_seconds(2);
    dead(&env, Some(until));
    let resumed = env.tenure(&["resume", "--when-reset"]);
    assert_eq!(resumed.code, 7, "{resumed}");
    let at = started(&env)[0].split_once(' ').unwrap().0.to_owned();
    assert!(at.parse::<i64>().unwrap() >= until, "{at}");
}

#[test]
fn a_session_that_was_started_during_the_wait_is_not_started_again() {
    let env = env();
    let agent = claude(&env, ID);
    let name = handle(&agent);
    limits(&env, ID, Some(in_seconds(5)));
    agent.kill9();
    let person = env.agent("person");
    let program = env.tenure_path().display().to_string();
    let resume = Cmd::new(program).args(["resume", "--when-reset", "--json"]);
    let waits = person.start(resume);
    poll(SOON, "it waits for the reset", || {
        waits.stderr().contains("waiting until ").then_some(())
    });
    let by_hand = env.agent_with("claude", &["--resume", ID]);
    recorder(&env);
    let resumed = waits.wait().ok();
    let said = format!("{name} is starting already (pid {})\n", by_hand.pid());
    assert!(resumed.stderr.ends_with(&said), "{resumed}");
    assert_eq!(resumed.json()["resume"], json!([]));
    assert_eq!(started(&env), Vec::<String>::new());
}

#[test]
fn a_limit_that_is_over_is_not_waited_for() {
    let env = env();
    let name = dead(&env, Some(in_seconds(-5)));
    let resumed = env.tenure(&["resume", &name, "--when-reset"]);
    assert_eq!(resumed.code, 7, "{resumed}");
    assert!(!resumed.stderr.contains("waiting"), "{resumed}");
    assert_eq!(started(&env).len(), 1);
    // Nobody else is limited.
    let none = env.tenure(&["resume", "--when-reset"]).ok();
    assert_eq!(none.stdout, "no session is limited\n");
}

#[test]
fn an_agent_that_continues_by_itself_is_shown_and_nothing_waits() {
    let env = env();
    let agent = claude(&env, ID);
    let name = handle(&agent);
    limits(&env, ID, Some(in_seconds(3_600)));
    recorder(&env);
    for words in [
        &["resume", &name, "--when-reset"][..],
        &["resume", "--when-reset"],
    ] {
        let said = env.tenure(words).ok().stdout;
        let expected = format!("{name} is limited until ");
        assert!(said.starts_with(&expected), "{said}");
        assert!(said.ends_with(" and then continues by itself\n"), "{said}");
    }
    assert_eq!(started(&env), Vec::<String>::new());
}

#[test]
fn a_limit_without_a_time_is_not_waited_for() {
    let env = env();
    let name = dead(&env, None);
    let refused = env.tenure(&["resume", &name, "--when-reset", "--json"]);
    let error = refused.fails(1).json()["error"].clone();
    assert_eq!(error["kind"], "not_limited", "{error:#}");
    assert_eq!(started(&env), Vec::<String>::new());
    let model = env.agent("claude");
    let refused = model.tenure(&["resume", "--when-reset", "--json"]);
    assert_eq!(refused.json()["error"]["kind"], Value::from("person_only"));
}
