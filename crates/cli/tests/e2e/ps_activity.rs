//! What each session does, as its agent's own events say: which one waits for me?

use serde_json::{Value, json};
use tenure_testkit::{Agent, Env, poll};

use crate::env;
use crate::support::hook::event;
use crate::support::line::{SOON, handle, run, text};

fn starts(env: &Env) -> Agent {
    let claude = env.agent("claude");
    event(
        &claude,
        "SessionStart",
        &json!({"source": "startup", "cwd": env.work()}),
    );
    claude
}

fn asks(agent: &Agent) {
    event(
        agent,
        "PermissionRequest",
        &json!({"tool_name": "Bash", "tool_input": {"command": "touch x"}}),
    );
}

/// Handle, state and activity of everybody, in the order that `ps` shows.
#[track_caller]
fn listed(env: &Env) -> Vec<(String, String, Value)> {
    let answer = env.tenure(&["ps", "--json"]).ok().json();
    let all = answer["sessions"].as_array().expect("a list").iter();
    all.map(|one| {
        (
            text(&one["handle"]),
            text(&one["state"]),
            one["activity"].clone(),
        )
    })
    .collect()
}

#[test]
fn activity_follows_the_agents_events() {
    let env = env();
    let claude = starts(&env);
    let bash = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    for (name, more, doing) in [
        ("UserPromptSubmit", json!({"prompt": "hello"}), "busy"),
        ("PreToolUse", bash.clone(), "busy"),
        ("PermissionRequest", bash.clone(), "waiting"),
        ("PostToolUse", bash.clone(), "busy"),
        ("PermissionRequest", bash.clone(), "waiting"),
        // A subagent's work is not the session's answer from its person.
        (
            "PostToolUse",
            json!({"tool_name": "Read", "agent_id": "a1"}),
            "waiting",
        ),
        ("PermissionDenied", bash, "busy"),
        ("Stop", json!({}), "idle"),
        (
            "Notification",
            json!({"notification_type": "permission_prompt"}),
            "waiting",
        ),
        (
            "Notification",
            json!({"notification_type": "idle_prompt"}),
            "idle",
        ),
    ] {
        event(&claude, name, &more);
        let seen = run(&claude, 0, "whoami");
        assert_eq!(seen["session"]["activity"], doing, "after {name}");
        assert!(seen["session"]["activity_since"].is_string(), "{seen}");
    }
}

#[test]
fn sessions_that_wait_for_a_person_come_first() {
    let env = env();
    let (first, second, third) = (starts(&env), starts(&env), starts(&env));
    event(&third, "UserPromptSubmit", &json!({"prompt": "go on"}));
    event(&first, "UserPromptSubmit", &json!({"prompt": "go on"}));
    let [a, b, c] = [&first, &second, &third].map(handle);
    let order = |env: &Env| -> Vec<String> { listed(env).into_iter().map(|one| one.0).collect() };
    // Those at work before the one that rests, the newest first.
    assert_eq!(order(&env), [c.clone(), a.clone(), b.clone()]);
    asks(&first);
    assert_eq!(order(&env), [a.clone(), c, b]);
    let table = env.tenure(&["ps"]).ok().stdout;
    let row = table.lines().nth(1).expect("a row");
    assert!(
        row.starts_with(&a) && row.contains("asks: `touch x`"),
        "{table}"
    );
    // At a terminal it has a colour of its own.
    let shell = env.shell_at_terminal();
    shell.line("TERM=xterm tenure ps >/dev/tty").ok();
    let shown = shell.shown();
    let painted = shown.lines().find(|line| line.contains("asks: "));
    assert!(
        painted.is_some_and(|line| line.contains("\u{1b}[1;35masks")),
        "{shown}"
    );
    // The dead wait for nobody.
    first.kill9();
    let table = env.tenure(&["ps"]).ok().stdout;
    let row = table.lines().find(|line| line.starts_with(&a));
    assert!(row.is_some_and(|row| row.contains("cut off")), "{table}");
    assert!(!table.contains("waiting for you"), "{table}");
}

#[test]
fn a_stalled_turn_is_told_from_an_idle_prompt() {
    let mut env = env();
    env.set("TENURE_STALLED_AFTER", "300ms");
    let (busy, idle, waits) = (starts(&env), starts(&env), starts(&env));
    for agent in [&busy, &waits] {
        event(agent, "UserPromptSubmit", &json!({"prompt": "go on"}));
    }
    asks(&waits);
    let [busy, idle, waits] = [&busy, &idle, &waits].map(|agent| format!("c-{}", agent.pid()));
    let stalled = poll(SOON, "the busy one is silent for too long", || {
        let answer = env.tenure(&["ps", "--json"]).ok().json();
        let all = answer["sessions"].as_array().expect("a list").clone();
        let of = |id: &str| all.iter().find(|one| one["native_id"] == id).cloned();
        let found = of(&busy)?;
        // The others were silent for longer than it, and are what they were.
        for (id, doing) in [(&idle, "idle"), (&waits, "waiting")] {
            let calm = of(id)?;
            assert_eq!(
                (&calm["state"], &calm["activity"]),
                (&json!("live"), &json!(doing))
            );
        }
        (found["state"] == "stalled").then_some(found)
    });
    assert_eq!(stalled["activity"], "busy");
    assert!(text(&stalled["why"]).contains("silent for"), "{stalled}");
    let table = env.tenure(&["ps"]).ok().stdout;
    let row = table.lines().find(|line| line.contains("stalled "));
    assert!(row.is_some_and(|row| !row.contains("pid ")), "{table}");
}
