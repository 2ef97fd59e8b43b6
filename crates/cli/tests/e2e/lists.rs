//! Lists are complete for programs, and say for people how much is missing.

use serde_json::Value;
use tenure_testkit::{Agent, Cmd};

use crate::env;
use crate::support::line::{crew, run};

fn count(answer: &Value, name: &str) -> usize {
    answer[name].as_array().expect("a list").len()
}

/// What people are shown: how many lines, and the last.
fn shown(agent: &Agent, words: &[&str]) -> (usize, String) {
    let said = agent.tenure(words).ok();
    let last = said.stdout.lines().last().expect("a line").to_owned();
    (said.stdout.lines().count(), last)
}

#[test]
fn claims_beyond_a_screen_are_counted() {
    let (_env, [ann]) = crew(["ann"]);
    let keys: Vec<String> = (0..205).map(|n| format!("wp:{n}")).collect();
    run(&ann, 0, &format!("claim --all {}", keys.join(" ")));
    let all = run(&ann, 0, "claims");
    assert_eq!((count(&all, "claims"), &all["more"]), (205, &0.into()));
    let some = run(&ann, 0, "claims --limit 5");
    assert_eq!((count(&some, "claims"), &some["more"]), (5, &200.into()));
    let exact = run(&ann, 0, "claims --limit 205");
    assert_eq!(exact["more"], 0);
    let more = "5 more; run `tenure claims --mine --limit 0` to see them".to_owned();
    assert_eq!(shown(&ann, &["claims", "--mine"]), (1 + 200 + 1, more));
    assert_eq!(shown(&ann, &["claims", "--limit", "0"]).0, 1 + 205);
    let log = run(&ann, 0, "log");
    assert_eq!((count(&log, "events"), &log["more"]), (206, &0.into()));
    let some = run(&ann, 0, "log --limit 6");
    assert_eq!((count(&some, "events"), &some["more"]), (6, &200.into()));
    let (lines, last) = shown(&ann, &["log"]);
    assert_eq!(lines, 101);
    assert!(
        last.starts_with("106 more; run `tenure log --limit 0`"),
        "{last}"
    );
}

#[test]
fn sessions_beyond_a_screen_are_counted() {
    let env = env();
    let ann = env.agent("ann");
    let register = "tenure register --unverified --agent cron -q --native-id";
    let line = format!("for i in $(seq 204); do {register} n$i || exit 1; done");
    ann.run(Cmd::shell(&line)).ok();
    let all = run(&ann, 0, "ps");
    assert_eq!((count(&all, "sessions"), &all["more"]), (204, &0.into()));
    let some = run(&ann, 0, "ps --limit 200");
    assert_eq!((count(&some, "sessions"), &some["more"]), (200, &4.into()));
    let (lines, last) = shown(&ann, &["ps"]);
    assert_eq!(
        (lines, last.as_str()),
        (202, "4 more; run `tenure ps --limit 0` to see them")
    );
    assert_eq!(shown(&ann, &["ps", "-a", "--limit", "0"]).0, 205);
    let others = run(&ann, 0, "who");
    assert_eq!(count(&others, "sessions"), 204);
}
