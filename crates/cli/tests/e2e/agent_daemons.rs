//! An agent's daemon and what looks after it: never an agent, and never between a person and the agent.

use serde_json::Value;
use tenure_testkit::{Agent, Env};

use crate::support::line::{register, run};
use crate::support::person::seeing;

const DAEMON: &[&str] = &[
    "app-server",
    "--listen",
    "unix://",
    "--analytics-default-enabled",
    "--managed-daemon",
];
const UPDATE_LOOP: &[&str] = &["app-server", "daemon", "pid-update-loop"];

/// Which of these `ps` lists as unmanaged; other tests' agents are there too.
#[track_caller]
fn listed<'a>(env: &Env, agents: &[(&'a str, &Agent)]) -> Vec<&'a str> {
    let listed = env.tenure(&["ps", "--json"]).ok().json();
    let all = listed["unmanaged"].as_array().expect("a list").clone();
    let is_there = |agent: &Agent| all.iter().any(|one| one["pid"] == agent.pid());
    let found = agents.iter().filter(|(_, agent)| is_there(agent));
    found.map(|(name, _)| *name).collect()
}

#[test]
fn a_window_with_its_wrapper_its_daemon_and_the_update_loop_is_one_row() {
    let env = seeing();
    let wrapper = env.agent("codex");
    let window = wrapper.nest("codex");
    let daemon = window.nest_with("codex", DAEMON);
    let update_loop = window.nest_with("codex", UPDATE_LOOP);
    let all = [
        ("wrapper", &wrapper),
        ("window", &window),
        ("daemon", &daemon),
        ("update loop", &update_loop),
    ];
    assert_eq!(listed(&env, &all), ["window"]);
    // Nobody is there any more once the window is closed.
    wrapper.kill9();
    window.kill9();
    assert!(daemon.is_alive() && update_loop.is_alive());
    assert_eq!(listed(&env, &all), [""; 0]);
    let work = env.work();
    let who = env.tenure(&["who", work.to_str().unwrap(), "--exit-code", "--json"]);
    let there = who.json()["unmanaged"].clone();
    assert_eq!(there, serde_json::json!([]), "{who}");
    assert_eq!(who.code, 0, "{who}");
}

#[test]
fn neither_a_daemon_nor_its_update_loop_can_be_adopted() {
    let env = seeing();
    let me = env.agent("me");
    for argv in [DAEMON, UPDATE_LOOP] {
        let helper = env.agent_with("codex", argv);
        let refused = run(&me, 6, &format!("adopt {}", helper.pid()));
        assert_eq!(refused["error"]["kind"], "invalid", "{refused}");
    }
    let all = env.tenure(&["ps", "-a", "--json"]).ok().json();
    assert_eq!(all["sessions"], serde_json::json!([]));
}

/// What runs below a daemon is not the work of the window that happened to start the daemon.
#[test]
fn a_daemon_ends_the_search_for_a_session_and_its_update_loop_does_not() {
    let env = seeing();
    let window = env.agent("codex");
    let born = register(&window, "codex", "");
    let daemon = window.nest_with("codex", DAEMON);
    let tool = daemon.nest("tool");
    let refused = run(&tool, 4, "whoami");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("{}", daemon.pid())), "{message}");
    let update_loop = window.nest_with("codex", UPDATE_LOOP);
    let below = update_loop.nest("tool");
    let found: Value = run(&below, 0, "whoami");
    assert_eq!(found["session"]["id"], born["session"]["id"]);
}
