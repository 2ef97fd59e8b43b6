//! Agents that a wrapper starts: the agent's own process is the session of the run, in the same life.

use serde_json::Value;
use tenure_testkit::pinned::Stat;
use tenure_testkit::{Env, poll};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::{is_gone, kill9, newest, pid_of, run, start, until, wrapped};

const HOOK: &str = "printf '{\"hook_event_name\":\"SessionStart\",\"session_id\":\"%s\"}' $id | tenure hook claude >/dev/null";

fn seen(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("the environment is ours"))
        .expect("the environment is ours")
}

fn claudes(env: &Env) -> Vec<Value> {
    let all = env.tenure(&["ps", "-a", "--json"]).ok().json();
    let mut all = all["sessions"]
        .as_array()
        .expect("the environment is ours")
        .clone();
    all.retain(|one| one["agent"] == "claude");
    all
}

#[test]
fn a_hook_below_a_wrapper_makes_the_agent_the_session_of_the_run() {
    let env = env();
    let dir = wrapped(
        &env,
        &format!("echo $$ >$dir/pid; keeps; {HOOK}; tenure whoami --json >$dir/me; init; ok hi"),
    );
    let ann = env.agent("ann");
    assert_eq!(run(&ann, "claude wp:1").ok().stdout, "hi\n");
    let (me, ended) = (seen(&dir.join("me")), newest(&env));
    assert_eq!(me["session"]["handle"], ended["session"]);
    let pid = std::fs::read_to_string(dir.join("pid")).unwrap();
    assert_eq!(me["session"]["process"]["pid"].to_string(), pid.trim());
    assert_eq!(me["session"]["process"]["life"], 1);
    assert_eq!(me["session"]["native_id"], ended["native_id"]);
    assert_eq!(claudes(&env).len(), 1, "{:?}", claudes(&env));
    assert_eq!(ended["outcome"], "done");
}

#[test]
fn without_hooks_the_runner_finds_the_agent_below_a_wrapper() {
    let env = env();
    let dir = wrapped(
        &env,
        "echo $$ >$dir/pid; keeps; init; reply working; hold $dir/flag; tenure whoami --json >$dir/me; ok hi",
    );
    std::fs::write(dir.join("flag"), "").unwrap();
    let ann = env.agent("ann");
    let window = start(&ann, "claude wp:1");
    let agent = poll(SOON, "the agent works", || {
        let text = std::fs::read_to_string(dir.join("pid")).ok()?;
        text.trim().parse::<u64>().ok()
    });
    until(&env, "the agent is the session", |run| run["pid"] == agent);
    std::fs::remove_file(dir.join("flag")).unwrap();
    window.wait().ok();
    let me = seen(&dir.join("me"));
    assert_eq!(me["session"]["handle"], newest(&env)["session"]);
    assert_eq!(claudes(&env).len(), 1);
}

#[test]
fn an_agent_that_outlives_its_wrapper_is_followed_to_its_end() {
    let env = env();
    let dir = wrapped(
        &env,
        &format!("keeps; {HOOK}; init; reply working; : >$dir/on; hold $dir/flag; ok 'at last'"),
    );
    std::fs::write(dir.join("flag"), "").unwrap();
    let ann = env.agent("ann");
    let window = start(&ann, "claude wp:1");
    poll(SOON, "the agent works", || {
        dir.join("on").exists().then_some(())
    });
    let running = until(&env, "it is named", |run| run["native_id"].is_string());
    let agent = pid_of(&running);
    let wrapper = Stat::read(agent).unwrap().parent;
    kill9(&ann, wrapper);
    assert_eq!(newest(&env)["state"], "running");
    assert!(!is_gone(agent));
    std::fs::remove_file(dir.join("flag")).unwrap();
    assert_eq!(window.wait().ok().stdout, "at last\n");
    assert_eq!(newest(&env)["outcome"], "done");
}

/// The runner looks for the agent behind a wrapper once it works; here the wrapper is gone before that.
#[test]
fn an_agent_whose_wrapper_is_gone_before_its_first_line_is_followed_to_its_end() {
    let env = env();
    let dir = wrapped(
        &env,
        &format!("keeps; {HOOK}; echo $$ >$dir/pid; hold $dir/flag; init; ok 'at last'"),
    );
    std::fs::write(dir.join("flag"), "").unwrap();
    let ann = env.agent("ann");
    let window = start(&ann, "claude wp:1");
    let agent = poll(SOON, "its hook has run", || {
        let text = std::fs::read_to_string(dir.join("pid")).ok()?;
        text.trim().parse::<u32>().ok()
    });
    until(&env, "the agent is the session", |run| run["pid"] == agent);
    kill9(&ann, Stat::read(agent).unwrap().parent);
    std::fs::remove_file(dir.join("flag")).unwrap();
    assert_eq!(window.wait().ok().stdout, "at last\n");
    assert_eq!(newest(&env)["outcome"], "done");
}

#[test]
fn a_wrapper_and_its_agent_are_stopped_with_and_without_a_runner() {
    let env = env();
    let dir = wrapped(
        &env,
        &format!("keeps; {HOOK}; init; reply working; : >$dir/on; hold $dir/flag; ok hi"),
    );
    let ann = env.agent("ann");
    for with_runner in [true, false] {
        std::fs::write(dir.join("flag"), "").unwrap();
        std::fs::remove_file(dir.join("on")).ok();
        let window = start(&ann, "claude wp:1");
        poll(SOON, "the agent works", || {
            dir.join("on").exists().then_some(())
        });
        let running = newest(&env);
        let agent = pid_of(&running);
        let wrapper = Stat::read(agent).unwrap().parent;
        let runner = Stat::read(wrapper).unwrap().parent;
        if !with_runner {
            window.kill9();
            kill9(&ann, runner);
        }
        let id = text(&running["id"]);
        let stopped = ann.tenure(&["runs", "stop", &id, "--json"]).ok().json();
        assert_eq!(stopped["run"]["outcome"], "stopped");
        assert!(is_gone(agent) && is_gone(wrapper));
    }
}
