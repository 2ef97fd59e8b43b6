//! What a dead agent left running: a person sees it, and ends what is certainly its own.

use serde_json::{Value, json};
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Agent, Cmd, Env, poll};

use crate::env;
use crate::support::answer::events;
use crate::support::forge::forge_process;
use crate::support::line::{SOON, refused, register, session, take, text};

/// A conversation of this test alone: survivors are looked for among all processes, other tests' too.
fn native(env: &Env) -> String {
    let name = env.dir().file_name().expect("a directory has a name");
    name.to_string_lossy().into_owned()
}

/// An agent that is a session and holds wp:1: its handle, and what TENURE_SESSION must be.
fn holding(env: &Env) -> (Agent, String, String) {
    let agent = env.agent("claude");
    let born = register(&agent, "claude", &format!("--native-id {}", native(env)));
    take(&agent, "wp:1");
    let handle = text(&born["session"]["handle"]);
    (agent, handle, text(&born["token"]))
}

/// Something that goes on, and names the life of this token.
fn busy(token: &str) -> Cmd {
    Cmd::new("sleep").arg("1000").env("TENURE_SESSION", token)
}

fn survivors(env: &Env, handle: &str) -> Value {
    let shown = env.tenure(&["show", handle, "--json"]).ok().json();
    shown["session"]["survivors"].clone()
}

fn pids(list: &Value) -> Vec<u64> {
    let all = list.as_array().expect("a list").iter();
    all.map(|one| one["pid"].as_u64().expect("a pid")).collect()
}

#[track_caller]
fn end(env: &Env, code: i32, words: &[&str]) -> Value {
    let line = [&["end", "--kill-survivors", "--json"], words].concat();
    let output = env.tenure(&line);
    assert_eq!(output.code, code, "{output}");
    output.json()
}

#[test]
fn what_a_dead_agent_left_is_shown_and_can_be_ended() {
    let env = env();
    let (claude, handle, token) = holding(&env);
    let orphan = claude.orphan(busy(&token));
    claude.kill9();
    let table = env.tenure(&["ps"]).ok().stdout;
    let row = table.lines().find(|line| line.starts_with(&handle));
    let row = row.expect("its death is listed");
    assert!(row.contains("1 process still runs"), "{table}");
    let shown = survivors(&env, &handle);
    assert_eq!(pids(&shown), [u64::from(orphan)]);
    assert_eq!(shown[0]["command"], "sleep 1000");
    assert_eq!(shown[0]["can_end"], true);
    assert!(shown[0]["since"].is_string(), "{shown}");
    let said = env.tenure(&["show", &handle]).ok().stdout;
    assert!(said.contains(&format!("pid {orphan}, started")), "{said}");
    let command = format!("tenure end {handle} --kill-survivors");
    assert!(said.contains(&command), "{said}");
    // The next holder is told.
    let bob = session(&env, "bob");
    let told = bob.tenure(&["claim", "wp:1"]).ok().stdout;
    assert!(
        told.contains(&format!("its pid {orphan} is still running")),
        "{told}"
    );

    let ended = end(&env, 0, &[&handle, "--reason", "it still writes"]);
    assert_eq!(pids(&ended["ended"]), [u64::from(orphan)]);
    assert_eq!(ended["ended"][0]["signal"], "TERM");
    assert_eq!(ended["survivors"], json!([]));
    assert!(!Stat::runs(orphan));
    assert_eq!(survivors(&env, &handle), json!([]));
    let log = events(&env, "session.changed");
    let last = log.last().expect("it is logged");
    assert_eq!(last["reason"], "it still writes", "{last}");
    assert!(
        text(&last["evidence"]).contains(&orphan.to_string()),
        "{last}"
    );
    // Once more there is nothing to do, and no reason is needed.
    let nothing = env.tenure(&["end", &handle, "--kill-survivors"]).ok();
    assert!(nothing.stdout.contains("left nothing running"), "{nothing}");
}

#[test]
fn one_that_ignores_the_first_signal_is_killed() {
    let env = env();
    let (claude, handle, token) = holding(&env);
    let deaf = Cmd::shell("trap '' TERM; exec sleep 1000").env("TENURE_SESSION", &token);
    let orphan = claude.orphan(deaf);
    claude.kill9();
    poll(SOON, "it ignores the signal", || {
        (survivors(&env, &handle)[0]["command"] == "sleep 1000").then_some(())
    });
    let ended = end(&env, 0, &[&handle, "--grace", "300ms"]);
    assert_eq!(pids(&ended["ended"]), [u64::from(orphan)]);
    assert_eq!(ended["ended"][0]["signal"], "KILL");
    assert!(!Stat::runs(orphan));
}

/// The variable of an earlier life, the conversation, or only the process session: listed, and left alone.
#[test]
fn what_is_not_certainly_its_last_lifes_is_listed_and_not_ended() {
    let env = env();
    let (first, handle, token) = holding(&env);
    let before = first.orphan(busy(&token));
    first.kill9();
    let second = env.agent("claude");
    let again = register(&second, "claude", &format!("--native-id {}", native(&env)));
    assert_eq!(again["session"]["registered"], "resumed");
    let plain = Cmd::new("sleep").arg("1000");
    let others = [
        // It has the variable of the life before, and began in this one.
        second.orphan(busy(&token)),
        second.orphan(plain.clone().env("CLAUDE_CODE_SESSION_ID", native(&env))),
        second.orphan(plain),
        before,
    ];
    let own = second.orphan(busy(&text(&again["token"])));
    second.kill9();
    let ended = end(&env, 0, &[&handle]);
    assert_eq!(pids(&ended["ended"]), [u64::from(own)]);
    let mut left = pids(&ended["survivors"]);
    left.sort_unstable();
    let mut expected = others.map(u64::from);
    expected.sort_unstable();
    assert_eq!(left, expected, "{ended:#}");
    assert!(!Stat::runs(own));
    assert!(others.iter().all(|pid| Stat::runs(*pid)));
    let said = env.tenure(&["end", &handle, "--kill-survivors"]).ok();
    assert!(said.stdout.contains("not ended"), "{said}");
}

#[test]
fn the_living_the_unseen_and_agents_are_refused() {
    let env = env();
    let (claude, handle, token) = holding(&env);
    let child = claude.orphan(busy(&token));
    let error = end(&env, 3, &[&handle]);
    assert_eq!(error["error"]["kind"], "live", "{error}");
    assert!(Stat::runs(child));
    // Nor what runs below a process whose session was ended without it.
    let program = env.agent("worker");
    let born = register(&program, "worker", "");
    let other = text(&born["session"]["handle"]);
    let tool = program.orphan(busy(&text(&born["token"])));
    env.tenure(&["end", &other, "--reason", "over"]).ok();
    let error = end(&env, 3, &[&other]);
    assert_eq!(error["error"]["kind"], "live", "{error}");
    assert!(Stat::runs(tool) && program.is_alive());
    let unknown = end(&env, 4, &["claude-none"]);
    assert_eq!(unknown["error"]["kind"], "no_such_session", "{unknown}");
    claude.kill9();
    let bob = session(&env, "bob");
    let line = format!("end {handle} --kill-survivors --reason because");
    refused(&bob, 1, "person_only", &line);
    assert!(Stat::runs(child));
    // Its record is from a namespace that is not visible here.
    let shown = env.tenure(&["show", &handle, "--json"]).ok().json();
    forge_process(&env, &text(&shown["session"]["id"]), "pid_ns = 1");
    let unseen = end(&env, 9, &[&handle]);
    assert_eq!(unseen["error"]["kind"], "survivors_unknown", "{unseen}");
    assert!(Stat::runs(child));
}

/// With `--kill` too, the agent and what it leaves are ended by one command.
#[test]
fn a_live_agent_and_what_it_leaves_are_ended_together() {
    let env = env();
    let (claude, handle, token) = holding(&env);
    let child = claude.orphan(busy(&token));
    let ended = end(&env, 0, &[&handle, "--kill", "--reason", "it hangs"]);
    assert_eq!(ended["killed"]["pid"], claude.pid());
    assert_eq!(pids(&ended["ended"]), [u64::from(child)]);
    assert!(!claude.is_alive() && !Stat::runs(child));
}
