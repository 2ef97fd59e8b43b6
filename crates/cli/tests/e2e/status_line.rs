//! The status line in an agent's settings: it comes when it is asked for, and goes without a trace.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tenure_testkit::{Env, Output, poll};

use crate::env;
use crate::support::answer::PATIENCE;
use crate::support::installed::{picture, put, same, world};

const SETTINGS: &str =
    "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": []\n    }\n}\n";

fn file(env: &Env) -> PathBuf {
    env.home().join(".claude/settings.json")
}

fn settings(env: &Env) -> Value {
    let text = fs::read_to_string(file(env)).expect("there are settings");
    serde_json::from_str(&text).expect("settings are JSON")
}

fn claude(said: &Output) -> Value {
    let json = said.json();
    let mut all = json["agents"].as_array().into_iter().flatten();
    let found = all.find(|one| one["agent"] == "claude");
    found.expect("claude is listed").clone()
}

#[test]
fn an_agent_that_draws_no_status_line_is_not_given_one_in_silence() {
    let env = env();
    fs::create_dir_all(env.home().join(".codex")).expect("the home is ours");
    let before = picture(&env.home());
    for line in [
        "install codex --statusline",
        "install claude codex --statusline",
        "install git --statusline",
        "install codex --statusline --dry-run",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = env.tenure(&words).fails(2);
        assert!(
            said.stderr.contains("--statusline works only with claude"),
            "{line}: {said}"
        );
        same(&before, &picture(&env.home()));
        assert!(!env.state().exists(), "{line}");
    }
}

#[test]
fn f_h07_the_status_line_comes_with_the_flag_and_goes_without_a_trace() {
    let env = env();
    put(&file(&env), SETTINGS);
    let before = picture(&env.home());
    let plain = env.tenure(&["install", "claude", "--json"]).ok();
    assert_eq!(claude(&plain)["status_line"], "not_installed");
    assert_eq!(settings(&env)["statusLine"], Value::Null);

    let dry = env
        .tenure(&["install", "claude", "--statusline", "--dry-run"])
        .ok();
    assert!(dry.stdout.contains("+     \"statusLine\": {"), "{dry}");
    assert_eq!(settings(&env)["statusLine"], Value::Null);

    let said = env
        .tenure(&["install", "claude", "--statusline", "--json"])
        .ok();
    assert_eq!(claude(&said)["status_line"], "installed");
    let line = settings(&env)["statusLine"].clone();
    assert_eq!(line["type"], "command");
    let command = line["command"].as_str().unwrap();
    assert!(command.ends_with("tenure statusline claude"), "{command}");
    let text = fs::read_to_string(file(&env)).unwrap();
    for again in [
        &["install", "claude", "--statusline"][..],
        &["install", "claude"],
    ] {
        let said = env.tenure(again).ok();
        assert!(said.stdout.contains("already installed"), "{said}");
        assert_eq!(fs::read_to_string(file(&env)).unwrap(), text);
    }
    let check = env.tenure(&["install", "--check", "claude"]).ok();
    assert!(
        check
            .stdout
            .contains("claude: the status line is installed"),
        "{check}"
    );

    // A tenure that was moved is brought up to date, as hooks are.
    let old = text.replace(env.tenure_path().to_str().unwrap(), "/old/tenure");
    fs::write(file(&env), old).unwrap();
    let check = env
        .tenure(&["install", "--check", "claude", "--json"])
        .fails(1);
    assert_eq!(claude(&check)["state"], "outdated");
    env.tenure(&["install", "claude"]).ok();
    assert_eq!(fs::read_to_string(file(&env)).unwrap(), text);

    env.tenure(&["uninstall", "claude"]).ok();
    same(&picture(&env.home()), &before);
}

#[test]
fn a_status_line_draws_what_the_settings_name() {
    let env = env();
    put(&file(&env), "{}");
    env.tenure(&["install", "claude", "--statusline"]).ok();
    let command = settings(&env)["statusLine"]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let agent = env.agent("claude");
    let event = r#"{"hook_event_name":"SessionStart","session_id":"c1","source":"startup"}"#;
    let _answer = agent.tenure_stdin(&["hook", "claude"], event).ok();
    let input = r#"{"session_id":"c1"}"#;
    let drawn = agent
        .run(tenure_testkit::Cmd::shell(&command).stdin(input.to_owned()))
        .ok();
    let own = agent.tenure(&["whoami", "--json"]).ok().json();
    let handle = own["session"]["handle"].as_str().unwrap();
    assert!(drawn.stdout.contains(handle), "{drawn}");
    // Without tenure the line is empty, and no error.
    let gone = command.replace(env.tenure_path().to_str().unwrap(), "/gone/tenure");
    let drawn = agent.run(tenure_testkit::Cmd::shell(&gone)).ok();
    assert_eq!((drawn.stdout.as_str(), drawn.stderr.as_str()), ("", ""));
}

#[test]
fn a_status_line_of_the_users_own_is_never_replaced() {
    let env = env();
    let own = "{\"statusLine\": {\"type\": \"command\", \"command\": \"my-line\"}}";
    put(&file(&env), own);
    let before = picture(&env.home());
    let said = env.tenure(&["install", "claude", "--statusline"]).fails(6);
    assert!(
        said.stderr
            .contains("another status line; nothing was changed"),
        "{said}"
    );
    assert!(
        said.stderr.contains("run `tenure statusline claude` from"),
        "{said}"
    );
    same(&picture(&env.home()), &before);
    let said = env.tenure(&["install", "claude", "--json"]).ok();
    assert_eq!(claude(&said)["status_line"], "other");
    let check = env.tenure(&["install", "--check", "claude"]).ok();
    assert!(
        check.stdout.contains("another status line is set"),
        "{check}"
    );
    env.tenure(&["uninstall", "claude"]).ok();
    same(&picture(&env.home()), &before);
}

/// Runs `install claude` at a terminal and types this answer to its question; what the terminal showed.
fn answered(env: &Env, answer: &str) -> String {
    let shell = env.shell_at_terminal();
    std::thread::scope(|scope| {
        let typed = scope.spawn(|| shell.line("tenure install claude 2>/dev/tty").ok());
        poll(PATIENCE, "it asks", || {
            shell.shown().contains("[y/N]").then_some(())
        });
        shell.press(answer);
        typed.join().expect("it was typed");
    });
    shell.shown()
}

#[test]
fn at_a_terminal_the_person_is_asked_and_the_answer_is_no_unless_it_is_yes() {
    for (answer, line) in [
        ("\r", false),
        ("n\r", false),
        ("y\r", true),
        ("YES\r", true),
    ] {
        let env = env();
        put(&file(&env), SETTINGS);
        answered(&env, answer);
        assert!(settings(&env)["hooks"]["SessionStart"].is_array());
        assert_eq!(settings(&env)["statusLine"].is_object(), line, "{answer:?}");
    }
}

#[test]
fn nobody_is_asked_what_is_decided_or_cannot_be_answered() {
    let env = env();
    put(&file(&env), SETTINGS);
    let shell = env.shell_at_terminal();
    for line in [
        "tenure install claude --json 2>/dev/tty",
        "tenure install claude --quiet 2>/dev/tty",
        "tenure install claude --dry-run 2>/dev/tty",
        "tenure install --check claude 2>/dev/tty",
        "tenure install gemini 2>/dev/tty",
        "tenure install claude </dev/null 2>/dev/tty",
        "tenure install claude",
        "tenure install claude --statusline 2>/dev/tty",
        "tenure install claude 2>/dev/tty",
    ] {
        let _said = shell.line(line);
        assert!(!shell.shown().contains("[y/N]"), "{line}");
    }
    assert!(settings(&env)["statusLine"].is_object());
}

#[test]
fn a_directory_that_was_made_for_two_goes_with_the_last() {
    let env = env();
    let world = world(&env);
    let before = picture(&world);
    let at = |name: &str| world.join(name).to_str().unwrap().to_owned();
    // The first makes `deep`, the second finds it there.
    for name in ["deep/one", "deep/two"] {
        env.tenure(&["install", "claude", "--plugin", &at(name)])
            .ok();
    }
    env.tenure(&["uninstall", "claude"]).ok();
    same(&picture(&world), &before);

    // What somebody else put there stays, with the directories around it.
    for name in ["deep/one", "deep/two"] {
        env.tenure(&["install", "claude", "--plugin", &at(name)])
            .ok();
    }
    put(&world.join("deep/mine"), "mine");
    env.tenure(&["uninstall", "claude"]).ok();
    let left: Vec<PathBuf> = picture(&world).into_keys().collect();
    assert_eq!(left, [world.join("deep"), world.join("deep/mine")]);
    // One that was there before us is never ours to remove.
    fs::remove_file(world.join("deep/mine")).unwrap();
    env.tenure(&["install", "claude", "--plugin", &at("deep/three")])
        .ok();
    env.tenure(&["uninstall", "claude"]).ok();
    let left: Vec<PathBuf> = picture(&world).into_keys().collect();
    assert_eq!(left, [world.join("deep")]);
}
