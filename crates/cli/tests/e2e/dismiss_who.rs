//! Who may take what was cut off from the list: a person, a person's script, or an agent with a reason; all
//! of it no agent.

use serde_json::Value;
use tenure_testkit::Env;

use crate::env;
use crate::support::answer::events;
use crate::support::line::{refused, register, run, session, text};

/// A session that was cut off in a conversation; its handle.
fn cut_off(env: &Env, conversation: &str) -> String {
    let agent = env.agent("claude");
    let born = register(&agent, "claude", &format!("--native-id {conversation}"));
    agent.kill9();
    text(&born["session"]["handle"])
}

fn dismissed(env: &Env) -> Vec<Value> {
    events(env, "session.dismissed")
}

#[test]
fn an_agent_dismisses_another_session_only_with_a_reason() {
    let env = env();
    let handle = cut_off(&env, "c-1");
    let other = session(&env, "codex");
    refused(&other, 2, "reason_needed", &format!("dismiss {handle}"));
    assert_eq!(dismissed(&env), Vec::<Value>::new());
    run(&other, 0, &format!("dismiss {handle} --reason superseded"));
    assert_eq!(dismissed(&env)[0]["reason"], "superseded");
}

#[test]
fn a_persons_script_needs_no_reason() {
    let env = env();
    let handle = cut_off(&env, "c-1");
    env.tenure(&["rename", &handle, "Login"]).ok();
    env.tenure(&["dismiss", &handle]).ok();
    cut_off(&env, "c-2");
    env.tenure(&["dismiss", "--all", "--reason", "the disk was full"])
        .ok();
    let reasons: Vec<Value> = dismissed(&env)
        .iter()
        .map(|event| event["reason"].clone())
        .collect();
    assert_eq!(reasons, [Value::Null, "the disk was full".into()]);
}

#[test]
fn only_a_person_dismisses_all() {
    let env = env();
    cut_off(&env, "c-1");
    let registered = session(&env, "codex");
    let unknown = env.agent("gemini");
    for agent in [&registered, &unknown] {
        refused(agent, 1, "person_only", "dismiss --all --reason tidy");
    }
    assert_eq!(dismissed(&env), Vec::<Value>::new());
    let person = env.agent("bash");
    register(&person, "human", "");
    run(&person, 0, "dismiss --all");
    assert_eq!(dismissed(&env).len(), 1);
    // Nor does a person need one for a single session.
    let handle = cut_off(&env, "c-2");
    run(&person, 0, &format!("dismiss {handle}"));
    assert_eq!(dismissed(&env).len(), 2);
}
