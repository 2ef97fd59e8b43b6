//! Budgets of runs: what is used up keeps the next run from beginning, and stops the one that is at work.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use tenure_testkit::Env;

use crate::env;
use crate::support::line::text;
use crate::support::run::{lines, newest, run};

/// A program called `opencode` whose one step costs 60 cents, and that then does what these lines say.
fn opencode(env: &Env, then: &str) {
    let program = env.dir().join("bin/opencode");
    let script = format!(
        r#"#!/bin/sh
[ "$1" = session ] && exit 0
cat >/dev/null
echo called >>{}/calls
say() {{ printf '{{"type":"%s","sessionID":"ses_1","part":%s}}\n' $1 "$2"; }}
step() {{ say step_finish "{{\"reason\":\"$1\",\"cost\":0.6,\"tokens\":{{\"input\":1,\"output\":1}}}}"; }}
say step_start '{{}}'
{then}
"#,
        env.dir().display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
}

fn calls(env: &Env) -> usize {
    let text = std::fs::read_to_string(env.dir().join("calls")).unwrap_or_default();
    text.lines().count()
}

const SAYS: &str = "say text '{\"text\":\"hi\"}'; step stop";

#[test]
fn a_run_that_costs_more_than_its_budget_is_stopped_with_the_reason() {
    let env = env();
    opencode(&env, "step tool-calls; exec sleep 1000");
    let ann = env.agent("ann");
    let stopped = run(&ann, "opencode wp:1 --budget 0.5");
    assert_ne!(stopped.code, 0, "{stopped}");
    let ended = newest(&env);
    assert_eq!(ended["outcome"], "stopped", "{ended:#}");
    assert_eq!(text(&ended["why"]), "it cost $0.60 of a budget of $0.50");
    opencode(&env, SAYS);
    run(&ann, "opencode wp:2 --budget 0.7").ok();
}

#[test]
fn no_run_begins_when_the_budget_of_a_day_is_used_up() {
    let mut env = env();
    opencode(&env, SAYS);
    env.set("TENURE_BUDGET_DAY", "1");
    let ann = env.agent("ann");
    for item in ["wp:1", "wp:2"] {
        run(&ann, &format!("opencode {item}")).ok();
    }
    let refused = run(&ann, "opencode wp:3 --json");
    assert_ne!(refused.code, 0, "{refused}");
    let error = lines(&refused)[0]["error"].clone();
    assert_eq!(error["kind"], "over_budget", "{error:#}");
    let said = text(&error["message"]);
    let why = "all runs cost $1.20 within a day; budget.day is $1.00; runs begin again at 2";
    assert!(said.starts_with(why), "{said}");
    assert!(error["until"].is_string(), "{error:#}");
    assert_eq!(calls(&env), 2, "the agent was not started");
    let usage = env.tenure(&["usage", "--json"]).ok().json()["usage"].clone();
    assert_eq!(usage["total"]["cost"], 1.2, "{usage:#}");
    let past = Value::from("all runs cost $1.20 within a day; budget.day is $1.00");
    assert_eq!(usage["past_budgets"], Value::from(vec![past]));
}

#[test]
fn what_is_left_of_a_day_is_the_budget_of_the_next_run() {
    let mut env = env();
    opencode(&env, SAYS);
    env.set("TENURE_BUDGET_ITEM_DAY", "1");
    let ann = env.agent("ann");
    run(&ann, "opencode wp:1").ok();
    opencode(&env, "step tool-calls; exec sleep 1000");
    let stopped = run(&ann, "opencode wp:1");
    assert_ne!(stopped.code, 0, "{stopped}");
    let why = text(&newest(&env)["why"]);
    assert_eq!(why, "it cost $0.60 of a budget of $0.40");
    opencode(&env, SAYS);
    run(&ann, "opencode wp:2").ok();
}
