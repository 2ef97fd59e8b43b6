//! What a model is warned of, the person at its screen sees too: in one line, once.

use serde_json::{Value, json};
use tenure_testkit::Env;

use crate::env;
use crate::support::answer::ask;
use crate::support::hooked::{Hooked, denied, pair, repository, told};

const BLOCK: &[&str] = &["--mode", "block"];
const OBSERVE: &[&str] = &["--mode", "observe"];

/// What the person is shown by an agent with hooks in the shape of Claude Code's.
fn shown(answer: &Value) -> Option<&str> {
    answer["systemMessage"].as_str()
}

#[test]
fn each_agent_shows_its_person_what_its_model_is_warned_of() {
    for (agent, before, tool, field, input) in [
        (
            "claude",
            "PreToolUse",
            "Write",
            "systemMessage",
            "file_path",
        ),
        (
            "codex",
            "PreToolUse",
            "apply_patch",
            "systemMessage",
            "command",
        ),
        (
            "gemini",
            "BeforeTool",
            "write_file",
            "systemMessage",
            "file_path",
        ),
        (
            "qwen",
            "PreToolUse",
            "write_file",
            "systemMessage",
            "file_path",
        ),
        ("opencode", "PreToolUse", "write", "message", "filePath"),
    ] {
        let env = env();
        let repo = repository(&env, "web");
        let a = Hooked::start(&env, "claude", "a1", &repo);
        let b = Hooked::start(&env, agent, "b1", &repo);
        let file = repo.join("src/db.rs");
        a.write(&[], &file);
        let named = match agent {
            "codex" => json!(format!(
                "*** Begin Patch\n*** Update File: {}\n@@\n-x\n+y\n*** End Patch\n",
                file.display()
            )),
            _ => json!(file),
        };
        let tool = json!({"tool_name": tool, "tool_input": {input: named}});
        let blocked = b.event(BLOCK, before, tool.clone());
        let said = blocked[field]
            .as_str()
            .unwrap_or_else(|| panic!("{agent}: {blocked}"));
        let start = format!("tenure blocked this: {} wrote src/db.rs ", a.handle());
        assert!(said.starts_with(&start), "{agent}: {said}");
        assert!(!said.contains('\n') && said.len() < 200, "{agent}: {said}");
        // The model is told again; the person knows.
        let again = b.event(&[], before, tool);
        assert_eq!(again[field], Value::Null, "{agent}: {again}");
    }
}

/// Qwen Code shows a person nothing of what is answered before the end of a turn.
#[test]
fn what_a_turn_met_is_said_when_it_is_over_where_the_person_reads_nothing_before() {
    let env = env();
    let repo = repository(&env, "web");
    let _a = Hooked::start(&env, "claude", "a1", &repo);
    let b = Hooked::start(&env, "qwen", "b1", &repo);
    let c = Hooked::start(&env, "codex", "c1", &repo);
    let tool = json!({"tool_name": "run_shell_command", "tool_input": {"command": "git stash"}});
    let turn = |who: &Hooked, flags: &[&str], uses: Option<&Value>| {
        who.event(flags, "UserPromptSubmit", json!({"prompt": "go on"}));
        if let Some(tool) = uses {
            who.event(flags, "PreToolUse", tool.clone());
            who.event(flags, "PreToolUse", tool.clone());
        }
        who.event(flags, "Stop", json!({}))
    };
    assert_eq!(turn(&b, &[], None), Value::Null);
    assert_eq!(turn(&b, OBSERVE, Some(&tool)), Value::Null);
    let met = turn(&b, &[], Some(&tool));
    assert_eq!(met, Value::Null, "the log has it already");

    let other = repository(&env, "other");
    let _d = Hooked::start(&env, "claude", "d1", &other);
    let e = Hooked::start(&env, "qwen", "e1", &other);
    let met = turn(&e, &[], Some(&tool));
    let message = shown(&met).unwrap_or_else(|| panic!("{met}"));
    assert!(message.starts_with("tenure: "), "{message}");
    assert_eq!(
        message
            .matches("`git stash` changes files that claude-")
            .count(),
        1,
        "{message}"
    );
    assert_eq!(met, json!({"systemMessage": message}), "the turn ends");
    assert_eq!(turn(&e, &[], Some(&tool)), Value::Null, "once an hour");
    assert_eq!(turn(&e, &[], None), Value::Null);

    let bash = json!({"tool_name": "Bash", "tool_input": {"command": "git stash"}});
    assert_eq!(
        turn(&c, &[], Some(&bash)),
        Value::Null,
        "codex told it before"
    );
}

#[test]
fn any_program_gets_a_message_for_its_person() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    a.write(&[], &repo.join("f"));
    let program = env.agent("nightly");
    let event = json!({"event": "busy", "agent": "nightly", "cwd": repo, "writes": "f"});
    let said = program
        .tenure_stdin(&["hook", "generic"], &event.to_string())
        .ok()
        .json();
    let message = said["message"].as_str().unwrap_or_else(|| panic!("{said}"));
    assert!(
        message.starts_with(&format!("tenure: {} wrote f ", a.handle())),
        "{said}"
    );
    assert!(said["context"].as_str().is_some(), "{said}");
}

#[test]
fn the_person_is_told_once_for_each_session_and_file() {
    let env = env();
    let (repo, a, b) = pair(&env);
    let c = Hooked::start(&env, "claude", "c1", &repo);
    ask(&a.agent, &["claim", "path:acme/web:src/**"]);
    let [one, two] = ["src/one", "src/two"].map(|name| repo.join(name));
    let first = b.write(&[], &one);
    let message = shown(&first).unwrap_or_else(|| panic!("{first}"));
    let expected = format!(
        "tenure: src/one is reserved by {} (path:acme/web:src/**)",
        a.handle()
    );
    assert_eq!(message, expected);
    // The model is told every time.
    let again = b.write(&[], &one);
    assert_eq!(
        (shown(&again), told(&again).is_some()),
        (None, true),
        "{again}"
    );
    assert!(shown(&b.write(&[], &two)).is_some(), "another file");
    assert!(shown(&c.write(&[], &one)).is_some(), "another session");

    let moved = b.run(&[], "git stash");
    let message = shown(&moved).unwrap_or_else(|| panic!("{moved}"));
    assert!(
        message.starts_with("tenure: `git stash` changes files that "),
        "{message}"
    );
    let again = b.run(&[], "git checkout main");
    assert_eq!(
        (shown(&again), told(&again).is_some()),
        (None, true),
        "{again}"
    );
}

#[test]
fn several_warnings_are_one_line() {
    let env = env();
    let (repo, a, b) = pair(&env);
    for name in ["one", "two", "three"] {
        a.write(&[], &repo.join(name));
    }
    let patch = "*** Begin Patch\n*** Update File: one\n*** Update File: two\n*** Update File: three\n*** End Patch";
    let codex = Hooked::start(&env, "codex", "d1", &repo);
    let tool = json!({"tool_name": "apply_patch", "tool_input": {"command": patch}});
    let answer = codex.event(&[], "PreToolUse", tool);
    let message = shown(&answer).unwrap_or_else(|| panic!("{answer}"));
    assert!(
        message.ends_with("(2 more: run `tenure status`)"),
        "{message}"
    );
    drop(b);
}

#[test]
fn a_lost_claim_and_a_twin_are_shown_once() {
    let env = env();
    let (_repo, a, b) = pair(&env);
    ask(&a.agent, &["claim", "wp:1"]);
    ask(&b.agent, &["takeover", "wp:1", "--reason", "it is stuck"]);
    let prompt = |one: &Hooked| one.event(&[], "UserPromptSubmit", json!({}));
    let lost = prompt(&a);
    let message = shown(&lost).unwrap_or_else(|| panic!("{lost}"));
    assert!(
        message.starts_with("tenure: ") && message.contains("wp:1"),
        "{message}"
    );
    assert_eq!(prompt(&a), Value::Null, "once");

    let twin = Hooked::start(&env, "claude", "a1", &a.dir);
    let message = prompt(&a);
    let message = shown(&message).unwrap_or_else(|| panic!("{message}"));
    assert!(message.contains(&twin.handle()), "{message}");
    assert_eq!(prompt(&a), Value::Null, "once");
    // A message to the model is not a warning.
    ask(&b.agent, &["tell", &a.handle(), "hello"]);
    let said = prompt(&a);
    assert_eq!(
        (shown(&said), told(&said).is_some()),
        (None, true),
        "{said}"
    );
}

/// What `ps` says of a session.
#[track_caller]
fn row(env: &Env, of: &Hooked) -> Value {
    let handle = of.handle();
    let listed = env.tenure(&["ps", "--json"]).ok().json();
    let all = listed["sessions"].as_array().expect("a list").clone();
    let found = all.into_iter().find(|one| one["handle"] == handle);
    found.unwrap_or_else(|| panic!("{listed}"))
}

#[test]
fn a_row_says_what_was_lost_until_it_was_told() {
    let env = env();
    let (_repo, a, b) = pair(&env);
    ask(&a.agent, &["claim", "wp:1"]);
    ask(&b.agent, &["takeover", "wp:1", "--reason", "it is stuck"]);
    // Asked for by another: its own call would tell it.
    let listed = env.tenure(&["ps"]).ok().stdout;
    assert!(listed.contains(", lost wp:1"), "{listed}");
    a.event(&[], "UserPromptSubmit", json!({}));
    assert_eq!(row(&env, &a)["lost"], json!([]));
    let listed = env.tenure(&["ps"]).ok().stdout;
    assert!(!listed.contains("lost"), "{listed}");
}

#[test]
fn a_twin_that_has_left_is_not_told_of() {
    let env = env();
    let (_repo, a, _b) = pair(&env);
    let twin = Hooked::start(&env, "claude", "a1", &a.dir);
    twin.event(&[], "SessionEnd", json!({"reason": "prompt_input_exit"}));
    let said = a.event(&[], "UserPromptSubmit", json!({}));
    assert_eq!(said, Value::Null);
}

#[test]
fn a_window_in_which_nobody_typed_is_not_offered_again() {
    let env = env();
    let repo = repository(&env, "web");
    let file = env.home().join(".claude/projects/x/e1.jsonl");
    let empty = env.agent("claude");
    let start = json!({"source": "startup", "transcript_path": file});
    let empty = Hooked::with(empty, "claude", "e1", &repo);
    empty.event(&[], "SessionStart", start);
    let handle = empty.handle();
    empty.agent.kill9();
    let offered = env.tenure(&["resume"]).stdout;
    assert!(!offered.contains(&handle), "{offered}");
}

#[test]
fn observe_mode_shows_the_person_nothing() {
    let env = env();
    let (repo, a, b) = pair(&env);
    ask(&a.agent, &["claim", "path:acme/web:src/**"]);
    a.write(OBSERVE, &repo.join("f"));
    assert_eq!(b.write(OBSERVE, &repo.join("f")), Value::Null);
    assert_eq!(b.write(OBSERVE, &repo.join("src/f")), Value::Null);
    assert_eq!(b.run(OBSERVE, "git stash"), Value::Null);
    ask(&b.agent, &["claim", "wp:1"]);
    ask(&a.agent, &["takeover", "wp:1", "--reason", "it is stuck"]);
    assert_eq!(b.event(OBSERVE, "UserPromptSubmit", json!({})), Value::Null);
}

#[test]
fn a_claim_that_is_required_is_shown_to_the_person_but_not_where_all_is_only_observed() {
    let mut env = env();
    env.set("TENURE_GUARD_REQUIRE_CLAIM", "issue:*");
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let silent = a.write(OBSERVE, &repo.join("f"));
    assert_eq!((shown(&silent), denied(&silent).is_some()), (None, true));
    let b = Hooked::start(&env, "claude", "b1", &repo);
    let said = b.write(&[], &repo.join("f"));
    assert!(
        shown(&said).is_some_and(|said| said.contains("issue:*")),
        "{said}"
    );
}
