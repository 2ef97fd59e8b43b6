//! What people read about a session and do next: the words and the commands fit what is the case.

use serde_json::{Value, json};
use tenure_testkit::Env;

use crate::env;
use crate::support::hook::event;
use crate::support::line::{handle, register, run, session, text};

/// The error of a line that fails, and the command of its first hint.
#[track_caller]
fn failing(env: &Env, code: i32, words: &[&str]) -> (Value, String) {
    let words = [words, &["--json"]].concat();
    let error = env.tenure(&words).fails(code).json()["error"].clone();
    let hint = &error["hints"][0];
    let verb = hint["verb"].as_str().unwrap_or_default();
    let args = hint["args"].as_array().cloned().unwrap_or_default();
    let words = args.iter().map(text);
    let line: Vec<String> = std::iter::once(verb.to_owned()).chain(words).collect();
    (error, line.join(" "))
}

#[test]
fn a_title_that_is_removed_is_called_removed() {
    let env = env();
    let name = handle(&session(&env, "claude"));
    let renamed = |title: &str| {
        let words = ["rename", &name, title, "--reason", "tidy"];
        env.tenure(&words).ok().stdout.trim_end().to_owned()
    };
    assert_eq!(renamed("Login"), format!("{name} is now titled \"Login\""));
    let said = renamed("");
    assert_eq!(said, format!("removed the title of {name}"));
    // A person's script needs no reason; another agent's session does.
    env.tenure(&["rename", &name, "x"]).ok();
    let other = session(&env, "codex");
    let error = other.tenure(&["rename", &name, "y", "--json"]).fails(2);
    let error = error.json()["error"].clone();
    let wanted = format!("{name} is another session; acting for it needs a reason");
    assert_eq!(error["message"], wanted.as_str());
}

#[test]
fn two_that_write_one_file_are_named_to_each_other() {
    let env = env();
    let (one, two) = (env.agent("claude"), env.agent("claude"));
    tenure_testkit::scratch_git(&env.work(), None);
    let file = env.work().join("a.rs");
    std::fs::write(&file, "").unwrap();
    for agent in [&one, &two] {
        event(agent, "SessionStart", &json!({"source": "startup"}));
        event(agent, "UserPromptSubmit", &json!({"prompt": "go on"}));
        let tool =
            json!({"tool_name": "Write", "tool_input": {"file_path": file}, "cwd": env.work()});
        event(agent, "PreToolUse", &tool);
        std::fs::write(&file, handle(agent)).unwrap();
        event(agent, "PostToolUse", &tool);
    }
    let (a, b) = (handle(&one), handle(&two));
    let table = env.tenure(&["ps"]).ok().stdout;
    for (own, other) in [(&a, &b), (&b, &a)] {
        let row = table.lines().find(|line| line.starts_with(own.as_str()));
        let said = format!("busy, collides with {other}");
        assert!(row.is_some_and(|row| row.contains(&said)), "{table}");
    }
    let listed = env.tenure(&["ps", "--json"]).ok().json();
    assert_eq!(listed["sessions"][0]["rank"], "collides", "{listed}");
}

#[test]
fn a_hint_is_the_command_that_helps() {
    let env = env();
    let agent = env.agent("claude");
    let born = register(&agent, "claude", "--native-id c-1");
    let name = text(&born["session"]["handle"]);
    let (error, hint) = failing(&env, 3, &["resume", &name]);
    let wanted = format!("{name} is still running (pid {})", agent.pid());
    assert_eq!(error["message"], wanted.as_str());
    assert_eq!(hint, format!("goto {name}"));
    let _other = session(&env, "claude");
    let (error, hint) = failing(&env, 6, &["log", "claude"]);
    let first = text(&error["candidates"][0]);
    assert_eq!(hint, format!("log {first}"), "{error}");
    agent.kill9();
    assert_eq!(
        failing(&env, 1, &["goto", &name]).1,
        format!("resume {name}")
    );
    let shown = env.tenure(&["show", &name]).ok().stdout;
    for part in [
        ", cut off; the cause cannot be seen",
        &format!("tenure resume {name}"),
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let _dismissed = env
        .tenure(&["dismiss", &name, "--reason", "it is over"])
        .ok();
    let (error, _) = failing(&env, 1, &["dismiss", &name, "--reason", "again"]);
    assert_eq!(error["kind"], "nothing_to_dismiss", "{error}");
}

#[test]
fn an_end_and_a_wait_say_what_they_mean() {
    let env = env();
    let agent = session(&env, "claude");
    let name = handle(&agent);
    for what in ["idle", "end"] {
        let words = ["wait", &name, "--for", what, "--timeout", "10ms"];
        let (error, _) = failing(&env, 7, &words);
        assert_eq!(error["waited_for"], what, "{error}");
    }
    let end = ["end", name.as_str(), "--reason", "done"];
    let _ended = env.tenure(&end).ok();
    let (error, _) = failing(&env, 1, &end);
    let wanted = format!("{name} has already ended");
    assert_eq!(error["message"], wanted.as_str());
}

#[test]
fn evidence_is_said_once() {
    let env = env();
    let agent = env.agent("claude");
    event(&agent, "SessionStart", &json!({"source": "startup"}));
    event(&agent, "UserPromptSubmit", &json!({"prompt": "go on"}));
    let name = handle(&agent);
    for words in [&["ps", "-v"][..], &["show", &name]] {
        let said = env.tenure(words).ok().stdout;
        assert_eq!(said.matches("events").count(), 1, "{said}");
    }
    run(&agent, 0, "end");
}
