//! What a project's `.tenure.toml` sets is in force where `tenure config` shows it.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::Env;

use crate::env;
use crate::support::hooked::{Hooked, repository, told};

/// The value of a setting as `config` shows it there, and where it came from.
#[track_caller]
fn setting(env: &Env, dir: &Path, key: &str) -> (String, String) {
    let shown = env
        .agent("some-editor")
        .tenure_in(dir, &["config", "--json"])
        .ok()
        .json();
    let settings = shown["config"].as_array().expect("a list");
    let found = settings.iter().find(|one| one["key"] == key);
    let text = |name: &str| {
        let found = found.unwrap_or_else(|| panic!("{shown}"));
        found[name].as_str().expect("it is text").to_owned()
    };
    (text("value"), text("origin"))
}

fn start(env: &Env, conversation: &str, dir: &Path) -> Value {
    let a = Hooked::start(env, "claude", conversation, dir);
    a.event(&[], "SessionStart", json!({"source": "clear"}))
}

#[test]
fn a_project_turns_the_brief_off_for_those_who_start_there() {
    let env = env();
    let repo = repository(&env, "web");
    assert!(told(&start(&env, "a1", &repo)).is_some());
    std::fs::write(repo.join(".tenure.toml"), "[agent]\nbrief = false\n").expect("it is ours");
    let (value, origin) = setting(&env, &repo, "agent.brief");
    assert_eq!(value, "false");
    assert!(origin.ends_with(".tenure.toml"), "{origin}");
    assert_eq!(told(&start(&env, "b1", &repo.join("src"))), None);
    assert!(told(&start(&env, "c1", &env.work())).is_some(), "elsewhere");
}

#[test]
fn what_the_environment_says_wins_over_a_project_and_its_faults_are_ignored() {
    let mut env = env();
    let repo = repository(&env, "web");
    let file = repo.join(".tenure.toml");
    std::fs::write(&file, "[agent]\nbrief = 7\nlease = [").expect("it is ours");
    assert!(told(&start(&env, "a1", &repo)).is_some());
    std::fs::write(&file, "store = \"/nowhere\"\n[agent]\nbrief = true\n").expect("it is ours");
    assert!(told(&start(&env, "b1", &repo)).is_some());
    env.set("TENURE_AGENT_BRIEF", "false");
    assert_eq!(setting(&env, &repo, "agent.brief").0, "false");
    assert_eq!(told(&start(&env, "c1", &repo)), None);
}
