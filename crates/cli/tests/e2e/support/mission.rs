//! Participants of missions.

use serde_json::Value;
use tenure_testkit::{Agent, Env};

use super::line::run;

pub fn join(agent: &Agent, mission: &str) -> Value {
    run(
        agent,
        0,
        &format!("mission join {mission} --role developer"),
    )["participant"]
        .clone()
}

/// The participants of a mission as anybody sees them.
#[track_caller]
pub fn participants(env: &Env, mission: &str) -> Vec<Value> {
    let args = ["mission", "status", "--mission", mission, "--json"];
    let roster = env.tenure(&args).ok().json();
    roster["participants"].as_array().expect("a list").clone()
}
