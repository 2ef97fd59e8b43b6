//! Agents that run and have not told tenure of themselves: why not, and what to do about it.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Cmd, Env};

use crate::support::person::seeing;

#[track_caller]
fn unmanaged(env: &Env, agent: &Agent) -> Value {
    let listed = env.tenure(&["ps", "--json"]).ok().json();
    let all = listed["unmanaged"].as_array().expect("a list").clone();
    let mine = all.into_iter().find(|one| one["pid"] == agent.pid());
    mine.unwrap_or_else(|| panic!("{listed:#}"))
}

#[track_caller]
fn assert_says(env: &Env, agent: &Agent, hooks: &str, why: &str) {
    let said = unmanaged(env, agent);
    assert_eq!(said["hooks"], hooks, "{said}");
    assert_eq!(said["why"], why, "{said}");
    let table = env.tenure(&["ps"]).ok().stdout;
    // One line for all that it is true of; other tests' agents are there too.
    let name = format!("{} (pid ", said["agent"].as_str().expect("a name"));
    let says = |line: &str| line.starts_with(&name) && line.contains(why);
    assert!(table.lines().any(says), "{table}");
    assert!(!table.contains("no hooks told tenure"), "{table}");
}

fn home_of(env: &Env, dir: &str) {
    std::fs::create_dir_all(env.home().join(dir)).expect("the home is ours");
}

const NOT_SPOKEN: &str = "it registers at its first prompt";
const NOT_REVIEWED: &str = "it skips its hooks until you review them; type /hooks there";

#[test]
fn opencode_with_hooks_has_not_spoken_yet() {
    let env = seeing();
    home_of(&env, ".config/opencode");
    let before = env.agent("opencode");
    let missing = "its hooks are not installed; run `tenure install opencode` to install them";
    assert_says(&env, &before, "missing", missing);
    before.outlives_its_first_ticks();
    let _installed = env.tenure(&["install", "opencode"]).ok();
    let restart =
        "it started before its hooks were installed or changed; restart it to register it";
    assert_says(&env, &before, "later", restart);
    let opencode = env.agent("opencode");
    assert_says(&env, &opencode, "installed", NOT_SPOKEN);
    let table = env.tenure(&["ps"]).ok().stdout;
    let row = format!("pid {} ", opencode.pid());
    let row = table.lines().find(|line| line.starts_with(&row));
    assert!(
        row.unwrap_or(&table)
            .contains("unmanaged opencode, no prompt yet"),
        "{table}"
    );
}

#[test]
fn codex_with_hooks_that_nobody_reviewed_skips_them() {
    let env = seeing();
    home_of(&env, ".codex");
    let codex = env.agent("codex");
    let missing = "its hooks are not installed; run `tenure install codex` to install them";
    assert_says(&env, &codex, "missing", missing);
    let _installed = env.tenure(&["install", "codex"]).ok();
    assert_says(&env, &codex, "untrusted", NOT_REVIEWED);
}

/// Claude Code runs its hooks when it starts: one that has them and did not was started before.
#[test]
fn an_agent_that_speaks_at_its_start_was_started_before() {
    let env = seeing();
    home_of(&env, ".claude");
    let claude = env.agent("claude");
    claude.outlives_its_first_ticks();
    let _installed = env.tenure(&["install", "claude"]).ok();
    let before = "it started before its hooks were installed or changed; \
        if its next prompt does not register it, restart it";
    assert_says(&env, &claude, "later", before);
    let after = env.agent("claude");
    assert_says(
        &env,
        &after,
        "installed",
        "its hooks are installed but have not run",
    );
    let settings = env.home().join(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    let mut off: Value = serde_json::from_str(&text).unwrap();
    off["disableAllHooks"] = Value::from(true);
    std::fs::write(&settings, off.to_string()).unwrap();
    let switched_off = "its settings turn hooks off";
    assert_says(&env, &claude, "off", switched_off);
    std::fs::write(&settings, &text).unwrap();
    let local = env.work().join(".claude/settings.local.json");
    std::fs::create_dir_all(local.parent().unwrap()).unwrap();
    std::fs::write(&local, r#"{"disableAllHooks": true}"#).unwrap();
    let later = env.agent("claude");
    assert_says(&env, &later, "off", switched_off);
    std::fs::remove_file(&local).unwrap();
    let gone = text.replace(env.tenure_path().to_str().unwrap(), "/gone/tenure");
    std::fs::write(&settings, gone).unwrap();
    let none = "the tenure that its hooks run is gone; run `tenure install claude` to use this one";
    assert_says(&env, &claude, "gone", none);
    std::fs::write(&settings, "{").unwrap();
    let invalid = "its settings are not valid; run `tenure install --check` for details";
    assert_says(&env, &claude, "invalid", invalid);
}

/// The caller may have another home than the agent it looks at.
#[test]
fn the_settings_are_those_of_the_agents_own_home() {
    let env = seeing();
    home_of(&env, ".config/opencode");
    let _installed = env.tenure(&["install", "opencode"]).ok();
    let opencode = env.agent("opencode");
    let elsewhere = env.dir().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("the directory is ours");
    let looker = env.agent("looker");
    let cmd = Cmd::new("tenure")
        .args(["ps", "--json"])
        .env("HOME", elsewhere.display().to_string())
        .env("XDG_CONFIG_HOME", String::new());
    let listed = looker.run(cmd).ok().json();
    let all = listed["unmanaged"].as_array().expect("a list");
    let mine = all.iter().find(|one| one["pid"] == opencode.pid());
    assert_eq!(mine.expect("it is listed")["hooks"], "installed");
}

#[test]
fn hooks_of_the_project_count() {
    let env = seeing();
    home_of(&env, ".config/opencode");
    let project = env.work().to_str().unwrap().to_owned();
    let _installed = env
        .tenure(&["install", "opencode", "--project", &project])
        .ok();
    assert!(Path::new(&project).join(".opencode").is_dir());
    let opencode = env.agent("opencode");
    assert_says(&env, &opencode, "installed", NOT_SPOKEN);
}

/// It works here, and tenure knows only of sessions.
#[test]
fn a_brief_does_not_say_that_nobody_works_beside_an_unmanaged_agent() {
    let env = seeing();
    let _stranger = env.agent("claude");
    let agent = env.agent("claude");
    let event = json!({"hook_event_name": "SessionStart", "session_id": "c-1", "source": "startup", "cwd": env.work()});
    let said = agent
        .tenure_stdin(&["hook", "claude"], &event.to_string())
        .ok()
        .stdout;
    assert!(
        said.contains("tenure knows of no other session here"),
        "{said}"
    );
    assert!(!said.to_lowercase().contains("nobody else"), "{said}");
    let status = agent.tenure(&["status"]).ok().stdout;
    assert!(!status.contains("nobody else"), "{status}");
}
