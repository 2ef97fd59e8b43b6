//! A write or git command that conflicts with another session: the hook warns or blocks.

use serde_json::{Value, json};
use tenure_testkit::add_worktree;

use crate::env;
use crate::support::answer::{ask, events, register};
use crate::support::hooked::{Hooked, denied, pair, repository, told};

const BLOCK: &[&str] = &["--mode", "block"];

const OBSERVE: &[&str] = &["--mode", "observe"];

#[test]
fn the_second_writer_of_a_file_is_told_once_with_who_and_the_way_out() {
    let env = env();
    let (repo, a, b) = pair(&env);
    let file = repo.join("src/db.rs");
    assert_eq!(a.write(&[], &file), Value::Null);
    assert_eq!(a.write(&[], &file), Value::Null, "its own write is no news");

    let answer = b.write(&[], &file);
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "PreToolUse");
    assert_eq!(denied(&answer), None, "nobody asked for a block");
    let said = told(&answer).expect("it is told");
    let who = a.handle();
    for part in [
        who.as_str(),
        "src/db.rs",
        &repo.display().to_string(),
        &format!("tenure tell {who}"),
        "tenure claim path:",
    ] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    assert_eq!(b.write(&[], &file), Value::Null, "it is told once");
    assert_eq!(b.write(&[], &repo.join("src/other.rs")), Value::Null);

    // The first writer hears of the second, which wrote since.
    let answer = a.write(&[], &file);
    assert!(
        told(&answer).is_some_and(|said| said.contains(&b.handle())),
        "{answer}"
    );
    let log = events(&env, "session.write_conflict");
    let means: Vec<&Value> = log.iter().map(|event| &event["mechanism"]).collect();
    assert_eq!(means, ["second_writer", "second_writer"]);
}

#[test]
fn a_write_is_blocked_where_the_user_asked_for_it_and_a_claim_is_the_way_out() {
    let env = env();
    let (repo, a, b) = pair(&env);
    let file = repo.join("src/db.rs");
    assert_eq!(a.write(BLOCK, &file), Value::Null);
    for _ in 0..2 {
        let answer = b.write(BLOCK, &file);
        let why = denied(&answer).unwrap_or_else(|| panic!("{answer}"));
        assert!(why.contains(&a.handle()), "{why}");
    }
    assert_eq!(a.write(BLOCK, &file), Value::Null, "it was not written");
    let key = "path:acme/web:src/db.rs";
    ask(&b.agent, &["claim", key]);
    let answer = b.write(BLOCK, &file);
    assert_eq!(denied(&answer), None, "it reserved the file");
    assert!(told(&answer).is_some(), "{answer}");
    let answer = a.write(BLOCK, &file);
    assert!(
        denied(&answer).is_some_and(|why| why.contains(key)),
        "{answer}"
    );
}

#[test]
fn a_mode_in_the_settings_goes_before_the_hooks_own_line() {
    let mut env = env();
    env.set("TENURE_GUARD_MODE", "block");
    let (repo, a, b) = pair(&env);
    a.write(&[], &repo.join("f"));
    assert!(denied(&b.write(&["--mode", "warn"], &repo.join("f"))).is_some());
}

#[test]
fn observe_mode_tells_the_model_nothing_and_logs_it() {
    let env = env();
    let (repo, a, b) = pair(&env);
    ask(&a.agent, &["claim", "path:acme/web:src/**"]);
    let file = repo.join("src/db.rs");
    a.write(OBSERVE, &file);
    ask(&a.agent, &["tell", &b.handle(), "hands off"]);
    assert_eq!(b.write(OBSERVE, &file), Value::Null);
    assert_eq!(b.run(OBSERVE, "git stash"), Value::Null);
    let resumed = b.event(OBSERVE, "SessionStart", json!({"source": "resume"}));
    assert_eq!(resumed, Value::Null, "no brief either");
    let log = events(&env, "session.write_conflict");
    let means: Vec<&Value> = log.iter().map(|event| &event["mechanism"]).collect();
    assert_eq!(means, ["second_writer", "reserved", "tree_moved"]);
    // What somebody told it waits for a call of its own.
    let notices = ask(&b.agent, &["whoami"])["notices"].clone();
    assert!(notices.to_string().contains("hands off"), "{notices}");
}

#[test]
fn dead_and_ended_sessions_conflict_with_nothing() {
    let env = env();
    let repo = repository(&env, "web");
    let killed = Hooked::start(&env, "claude", "a1", &repo);
    let ended = Hooked::start(&env, "claude", "a2", &repo);
    ask(&killed.agent, &["claim", "path:acme/web:src/**"]);
    killed.write(&[], &repo.join("src/one"));
    ended.write(&[], &repo.join("two"));
    // Before the deaths: a start would record them.
    let b = Hooked::start(&env, "claude", "b1", &repo);
    killed.agent.kill9();
    ended.event(&[], "SessionEnd", json!({"reason": "other"}));
    assert_eq!(b.write(BLOCK, &repo.join("src/one")), Value::Null);
    assert_eq!(b.write(BLOCK, &repo.join("two")), Value::Null);
    assert_eq!(b.run(BLOCK, "git reset --hard"), Value::Null);
    assert_eq!(events(&env, "session.write_conflict").len(), 0);
}

#[test]
fn a_file_of_another_worktree_is_another_file() {
    let env = env();
    let repo = repository(&env, "web");
    // Below the other, as many keep them.
    let other = repo.join("trees/two");
    add_worktree(&repo, &other, "two");
    let (a, b) = (
        Hooked::start(&env, "claude", "a1", &repo),
        Hooked::start(&env, "claude", "b1", &other),
    );
    a.write(BLOCK, &repo.join("f"));
    assert_eq!(b.write(BLOCK, &other.join("f")), Value::Null);
    assert_eq!(b.run(BLOCK, "git stash"), Value::Null);
    assert_eq!(a.run(BLOCK, "git stash"), Value::Null);
    let line = format!("cd {} && git stash", repo.display());
    assert!(denied(&b.run(BLOCK, &line)).is_some());
    let line = format!("cd {} && git stash", other.display());
    assert_eq!(
        a.run(BLOCK, &line)["hookSpecificOutput"]["permissionDecision"],
        "deny"
    );
}

#[test]
fn a_git_command_that_moves_files_under_others_is_told_or_blocked() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    for line in [
        "git stash",
        "git checkout main",
        "git reset --hard",
        "git clean -fd",
    ] {
        assert_eq!(a.run(BLOCK, line), Value::Null, "it is alone: {line}");
    }
    // A child works for its parent.
    let child = Hooked::with(a.agent.nest("claude"), "claude", "c1", &repo.join("src"));
    assert_eq!(a.run(BLOCK, "git stash"), Value::Null);
    assert!(denied(&child.run(BLOCK, "git stash")).is_some());

    let b = Hooked::start(&env, "claude", "b1", &repo.join("src"));
    for line in ["git stash", "git checkout main", "git reset --hard HEAD~1"] {
        let answer = a.run(&[], line);
        let said = told(&answer).unwrap_or_else(|| panic!("{line}: {answer}"));
        let parts = [b.handle(), "git worktree add".into(), "tenure tell".into()];
        for part in parts {
            assert!(said.contains(&part), "{part} is not in: {said}");
        }
        assert!(!said.contains(&child.handle()), "{said}");
        assert_eq!(denied(&answer), None);
        let answer = a.run(BLOCK, line);
        let why = denied(&answer).unwrap_or_else(|| panic!("{line}: {answer}"));
        assert!(why.contains(&b.handle()), "{why}");
    }
    for line in ["git status", "git stash list", "git commit -m 'git stash'"] {
        assert_eq!(a.run(BLOCK, line), Value::Null, "{line}");
    }
}

#[test]
fn a_reserved_path_is_another_s_whatever_its_name() {
    let env = env();
    let (repo, a, b) = pair(&env);
    let parent = Hooked::start(&env, "claude", "p1", &repo);
    let child = Hooked::with(parent.agent.nest("claude"), "claude", "c1", &repo);
    for key in [
        "path:acme/web:src/**",
        "path:acme/web:plain.rs",
        r"path:acme/web:\[id\].tsx",
    ] {
        ask(&a.agent, &["claim", key]);
    }
    ask(&parent.agent, &["claim", "path:acme/web:docs/**"]);
    std::fs::create_dir_all(repo.join("docs")).unwrap();
    for name in ["src/x.rs", "plain.rs", "[id].tsx"] {
        let file = repo.join(name);
        let answer = b.event(
            &[],
            "PreToolUse",
            json!({"tool_name": "Edit", "tool_input": {"file_path": file}}),
        );
        let said = told(&answer).unwrap_or_else(|| panic!("{name}: {answer}"));
        assert!(
            said.contains("is reserved by") && said.contains(&a.handle()),
            "{said}"
        );
        let answer = b.write(BLOCK, &file);
        assert!(
            denied(&answer).is_some_and(|why| why.contains("tenure why")),
            "{name}: {answer}"
        );
    }
    let fresh = repo.join("src/mine.rs");
    assert_eq!(a.write(BLOCK, &fresh), Value::Null, "its own claim");
    for name in ["i.tsx", "d.tsx", "x"] {
        assert_eq!(b.write(BLOCK, &repo.join(name)), Value::Null, "{name}");
    }
    let manual = repo.join("docs/manual.md");
    assert!(denied(&b.write(BLOCK, &manual)).is_some());
    assert_eq!(
        child.write(BLOCK, &manual),
        Value::Null,
        "its parent's claim"
    );
}

#[test]
fn a_required_claim_stops_a_write_without_one_in_any_mode() {
    let mut env = env();
    env.set("TENURE_GUARD_REQUIRE_CLAIM", "issue:*");
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let child = Hooked::with(a.agent.nest("claude"), "claude", "c1", &repo);
    let stranger = Hooked::start(&env, "claude", "s1", &repo);
    ask(&a.agent, &["claim", "wp:1"]);
    for flags in [&[], BLOCK, OBSERVE] {
        let answer = a.write(flags, &repo.join("f"));
        let why = denied(&answer).unwrap_or_else(|| panic!("{answer}"));
        assert!(
            why.contains("issue:*") && why.contains("tenure claim"),
            "{why}"
        );
    }
    assert_eq!(a.run(BLOCK, "make"), Value::Null, "it writes nothing");
    ask(&a.agent, &["claim", "issue:acme/web#42"]);
    assert_eq!(a.write(BLOCK, &repo.join("f")), Value::Null);
    assert_eq!(child.write(BLOCK, &repo.join("g")), Value::Null);
    assert!(denied(&stranger.write(&[], &repo.join("h"))).is_some());
    ask(&a.agent, &["release", "issue:acme/web#42"]);
    assert!(denied(&a.write(&[], &repo.join("f"))).is_some());
    assert!(denied(&child.write(&[], &repo.join("g"))).is_some());
}

#[test]
fn a_store_that_is_locked_stops_writes_only_where_the_user_wants_that() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let mut closed = self::env();
    closed.set("TENURE_GUARD_ON_ERROR", "closed");
    let closed_repo = repository(&closed, "web");
    let b = Hooked::start(&closed, "claude", "b1", &closed_repo);

    let _locked = [&env, &closed].map(|env| {
        let store = rusqlite::Connection::open(env.state().join("tenure.db")).unwrap();
        store.execute_batch("BEGIN EXCLUSIVE").unwrap();
        store
    });
    let answer = a.write(&[], &repo.join("f"));
    assert_eq!(denied(&answer), None, "{answer}");
    assert!(answer["systemMessage"].as_str().is_some(), "{answer}");
    let answer = b.write(&[], &closed_repo.join("f"));
    let why = denied(&answer).unwrap_or_else(|| panic!("{answer}"));
    assert!(why.contains("guard.on_error"), "{why}");
    assert_eq!(denied(&b.run(&[], "make")), None, "it writes no file");
}

#[test]
fn a_shell_command_writes_the_files_that_its_line_shows() {
    let env = env();
    let (repo, a, b) = pair(&env);
    std::fs::create_dir_all(repo.join("src")).unwrap();
    a.write(BLOCK, &repo.join("src/db.rs"));
    for line in [
        "echo x > src/db.rs",
        "cd src && make 2>/dev/null | tee db.rs",
        "sed -i s/a/b/ src/db.rs",
        "cp /tmp/db.rs src",
        "bash -c 'rm src/db.rs'",
    ] {
        let answer = b.run(BLOCK, line);
        let why = denied(&answer).unwrap_or_else(|| panic!("{line}: {answer}"));
        assert!(why.contains("src/db.rs"), "{line}: {why}");
    }
    for line in ["cat src/db.rs > /dev/null", "cp src/db.rs other.rs"] {
        assert_eq!(b.run(BLOCK, line), Value::Null, "{line}");
    }
    let answer = a.run(BLOCK, "echo y >> other.rs");
    assert!(denied(&answer).is_some_and(|why| why.contains(&b.handle())));
}

#[test]
fn a_command_on_a_directory_meets_what_is_below_it() {
    let env = env();
    let (repo, a, b) = pair(&env);
    fs_err::create_dir_all(repo.join("src/deep")).unwrap();
    a.write(BLOCK, &repo.join("src/deep/db.rs"));
    for line in ["rm -rf src", "mv src old", "git rm -r src/deep"] {
        let answer = b.run(BLOCK, line);
        let why = denied(&answer).unwrap_or_else(|| panic!("{line}: {answer}"));
        assert!(why.contains("src/deep/db.rs"), "{why}");
    }
    fs_err::create_dir_all(repo.join("docs")).unwrap();
    ask(&a.agent, &["claim", "path:acme/web:docs/**"]);
    let answer = b.run(BLOCK, "rm -rf docs");
    assert!(denied(&answer).is_some(), "{answer}");
    fs_err::create_dir_all(repo.join("lib")).unwrap();
    assert_eq!(b.run(BLOCK, "rm -rf lib"), Value::Null);
}

#[test]
fn a_write_that_was_refused_collides_with_nothing() {
    let env = env();
    let (repo, a, b) = pair(&env);
    fs_err::write(repo.join("known.rs"), "old").unwrap();
    let collides = || {
        let list = ask(&a.agent, &["ps"])["sessions"].clone();
        let others = |row: &Value| row["collides_with"].as_array().map_or(0, Vec::len);
        list.as_array().unwrap().iter().any(|row| others(row) > 0)
    };
    for file in ["new.rs", "known.rs"] {
        let file = repo.join(file);
        // Announced; the person says no, and no event follows.
        let tool = json!({"tool_name": "Write", "tool_input": {"file_path": file}});
        a.event(&[], "PreToolUse", tool);
        b.write(&[], &file);
    }
    assert!(!collides(), "only one of them wrote");
    a.write(&[], &repo.join("known.rs"));
    assert!(collides());
}

#[test]
fn a_shell_command_runs_where_its_event_says() {
    for (agent, event, tool, field) in [
        ("claude", "PreToolUse", "Bash", None),
        ("codex", "PreToolUse", "Bash", None),
        (
            "gemini",
            "BeforeTool",
            "run_shell_command",
            Some("dir_path"),
        ),
        ("opencode", "PreToolUse", "bash", Some("workdir")),
        ("qwen", "PreToolUse", "run_shell_command", Some("directory")),
    ] {
        let env = env();
        let repo = repository(&env, "web");
        std::fs::create_dir_all(repo.join("src")).unwrap();
        let a = Hooked::start(&env, "claude", "a1", &repo);
        a.write(BLOCK, &repo.join("src/db.rs"));
        let b = Hooked::start(&env, agent, "b1", &repo);
        let input = match field {
            Some(field) => json!({"command": "rm db.rs", field: "src"}),
            None => json!({"command": "rm src/db.rs"}),
        };
        let answer = b.event(
            BLOCK,
            event,
            json!({"tool_name": tool, "tool_input": input}),
        );
        assert!(answer.to_string().contains("wrote"), "{agent}: {answer}");
        assert!(
            answer.to_string().contains("src/db.rs"),
            "{agent}: {answer}"
        );
    }
}

#[test]
fn a_patch_of_codex_is_a_write_of_every_file_in_it() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let b = Hooked::start(&env, "codex", "b1", &repo);
    a.write(&[], &repo.join("src/two.rs"));
    let patch = "*** Begin Patch\n*** Add File: one.rs\n+x\n*** Update File: src/two.rs\n@@\n-x\n+y\n*** End Patch\n";
    let tool = json!({"tool_name": "apply_patch", "tool_input": {"command": patch}});
    let answer = b.event(BLOCK, "PreToolUse", tool.clone());
    assert!(
        denied(&answer).is_some_and(|why| why.contains("src/two.rs")),
        "{answer}"
    );
    let answer = b.event(&[], "PreToolUse", tool);
    assert!(told(&answer).is_some_and(|said| said.contains(&a.handle())));
    let answer = a.write(&[], &repo.join("one.rs"));
    assert!(told(&answer).is_some_and(|said| said.contains(&b.handle())));
}

#[test]
fn gemini_is_denied_before_a_tool_and_told_after_it() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let b = Hooked::start(&env, "gemini", "b1", &repo);
    let file = repo.join("f");
    a.write(&[], &file);
    let tool = json!({"tool_name": "write_file", "tool_input": {"file_path": file}});
    let answer = b.event(BLOCK, "BeforeTool", tool.clone());
    assert_eq!(answer["decision"], "deny");
    let why = answer["reason"].as_str().expect("a reason");
    assert!(why.contains(&a.handle()), "{why}");
    // Before a tool it reads no context: that comes with the tool's result. The person was told of the block.
    assert_eq!(b.event(&[], "BeforeTool", tool.clone()), Value::Null);
    let answer = b.event(&[], "AfterTool", tool);
    let said = told(&answer).unwrap_or_else(|| panic!("{answer}"));
    assert!(said.contains(&a.handle()), "{said}");
}

#[test]
fn any_program_can_say_what_it_is_about_to_write() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    a.write(&[], &repo.join("f"));
    let program = env.agent("nightly");
    let say = |flags: &[&str]| -> Value {
        let event = json!({"event": "busy", "agent": "nightly", "cwd": repo, "writes": "f"});
        let args = [&["hook", "generic"], flags].concat();
        program.tenure_stdin(&args, &event.to_string()).ok().json()
    };
    let blocked = say(BLOCK);
    assert!(
        blocked["block"]
            .as_str()
            .is_some_and(|why| why.contains(&a.handle())),
        "{blocked}"
    );
    let said = say(&[]);
    assert!(
        said["context"]
            .as_str()
            .is_some_and(|why| why.contains(&a.handle())),
        "{said}"
    );
}

#[test]
fn a_write_is_of_one_file_whatever_path_it_is_named_by() {
    let env = env();
    let repo = repository(&env, "web");
    let link = env.dir().join("link");
    std::os::unix::fs::symlink(&repo, &link).unwrap();
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let b = Hooked::start(&env, "claude", "b1", &repo);
    a.write(&[], &repo.join("src/f"));
    assert!(denied(&b.write(BLOCK, &link.join("src/../src/f"))).is_some());
    let relative = json!({"tool_name": "Write", "tool_input": {"file_path": "src/f"}});
    assert!(denied(&b.event(BLOCK, "PreToolUse", relative)).is_some());
}

#[test]
fn a_session_that_was_registered_by_hand_is_told_too() {
    let env = env();
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    a.write(&[], &repo.join("f"));
    let b = env.agent("claude");
    register(&b, &["--native-id", "b1", "--dir", repo.to_str().unwrap()]);
    let b = Hooked::with(b, "claude", "b1", &repo);
    assert!(told(&b.write(&[], &repo.join("f"))).is_some());
}
