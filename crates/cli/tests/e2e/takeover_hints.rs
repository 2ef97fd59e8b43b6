//! Who is told to take something from another: people, never an agent.

use serde_json::Value;
use tenure_testkit::{Env, Output};

use crate::env;
use crate::support::line::{run, session, take};

/// The verbs that an answer suggests.
fn suggested(hints: &Value) -> Vec<String> {
    let hints = hints.as_array().expect("a list of hints");
    let word = |value: &Value| value.as_str().map(str::to_owned);
    hints
        .iter()
        .filter_map(|hint| word(&hint["verb"]))
        .collect()
}

fn refusal(said: &Output) -> Vec<String> {
    assert_eq!(said.code, 3, "{said}");
    suggested(&said.json()["error"]["hints"])
}

fn why(said: &Output) -> Vec<String> {
    suggested(&said.json()["why"]["hints"])
}

fn held() -> (Env, tenure_testkit::Agent) {
    let env = env();
    let ann = session(&env, "ann");
    take(&ann, "wp:1");
    (env, ann)
}

#[test]
fn an_agent_is_never_told_to_take_over() {
    let (env, _ann) = held();
    let bob = session(&env, "claude");
    assert_eq!(
        refusal(&bob.tenure(&["claim", "wp:1", "--json"])),
        ["claim", "why"]
    );
    assert_eq!(
        why(&bob.tenure(&["why", "wp:1", "--json"])),
        ["claim", "tell"]
    );
    let said = bob.tenure(&["claim", "wp:1"]).fails(3);
    assert!(!said.stderr.contains("takeover"), "{said}");
    // Not what runs at a terminal below an agent that is not registered, either.
    let claude = env.agent_at_terminal("claude");
    assert_eq!(
        why(&claude.tenure(&["why", "wp:1", "--json"])),
        ["register", "claim", "tell"]
    );
    assert_eq!(
        why(&env.tenure(&["why", "wp:1", "--json"])),
        ["register", "claim", "tell"]
    );
}

#[test]
fn a_person_is_told_to_take_over_and_to_register_first() {
    let (env, _ann) = held();
    let person = env.shell_at_terminal();
    let at_terminal = "tenure why wp:1 --json 2>/dev/tty";
    let told = person.line(at_terminal).ok();
    assert_eq!(why(&told), ["register", "claim", "tell", "takeover"]);
    // Without the terminal it may be anybody.
    let told = person.line("tenure why wp:1 --json </dev/null").ok();
    assert_eq!(why(&told), ["register", "claim", "tell"]);
    person.tenure(&["register"]).ok();
    for line in [
        "tenure claim wp:1 --json",
        "tenure claim wp:1 --json </dev/null",
    ] {
        let said = person.line(line);
        assert_eq!(refusal(&said), ["claim", "why", "takeover"]);
        let hints = &said.json()["error"]["hints"];
        assert_eq!(hints[2]["for"], "person", "{hints}");
        assert_eq!(hints[0]["for"], "anyone", "{hints}");
    }
}

#[test]
fn an_item_that_is_done_is_reopened_by_people() {
    let (env, ann) = held();
    run(&ann, 0, "release wp:1 --done");
    let answer = run(&ann, 1, "claim wp:1");
    assert_eq!(suggested(&answer["error"]["hints"]), ["log"]);
    let person = env.shell_at_terminal();
    person.tenure(&["register"]).ok();
    let said = person.tenure(&["claim", "wp:1"]).fails(1);
    let reopen = "hint: run `tenure claim wp:1 --reopen` to reopen it";
    assert!(said.stderr.lines().any(|line| line == reopen), "{said}");
}
