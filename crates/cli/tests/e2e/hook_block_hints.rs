//! A blocked tool call names a command that helps: once it succeeded, the same call passes.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, poll, scratch_git};

use crate::env;
use crate::support::answer::{PATIENCE, ask, asked_by_nobody, events};
use crate::support::hooked::{Hooked, denied, pair, repository, told};

const BLOCK: &[&str] = &["--mode", "block"];

/// The commands between backquotes that begin so.
fn commands(why: &str, start: &str) -> Vec<String> {
    let quoted = why.split('`').skip(1).step_by(2);
    quoted
        .filter(|command| command.starts_with(start))
        .map(str::to_owned)
        .collect()
}

/// The one command in a reason that begins so.
#[track_caller]
fn command(why: &str, start: &str) -> String {
    let mut found = commands(why, start);
    assert_eq!(found.len(), 1, "{start}: {why}");
    found.remove(0)
}

#[track_caller]
fn blocked(answer: &Value) -> String {
    let why = denied(answer).unwrap_or_else(|| panic!("it is not blocked: {answer}"));
    why.to_owned()
}

/// Runs a named command as the agent's own shell does, in the agent's directory.
#[track_caller]
fn run(agent: &Hooked, line: &str) {
    agent.agent.run(Cmd::shell(line).dir(&agent.dir)).ok();
}

/// A session of Claude Code that tells its activity.
fn turn(agent: &Hooked, event: &str) {
    agent.event(&[], event, json!({}));
}

#[test]
fn a_file_that_another_wrote_can_be_written_after_the_claim_that_is_named() {
    let env = env();
    let (repo, a, b) = pair(&env);
    std::fs::create_dir_all(repo.join("odd dir")).unwrap();
    for name in ["src/db.rs", "[id].tsx", "odd dir/it's, {a}:b*.md"] {
        let file = repo.join(name);
        assert_eq!(a.write(BLOCK, &file), Value::Null);
        let why = blocked(&b.write(BLOCK, &file));
        assert!(why.contains(&a.handle()), "{why}");
        assert_eq!(commands(&why, "tenure wait"), [""; 0], "{why}");
        run(&b, &command(&why, "tenure claim "));
        assert_eq!(denied(&b.write(BLOCK, &file)), None, "{name}");
    }
}

#[test]
fn the_same_holds_in_a_repository_without_a_remote_and_from_another_directory() {
    let env = env();
    let repo = env.dir().join("plain");
    scratch_git(&repo, None);
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let b = Hooked::start(&env, "claude", "b1", env.dir());
    let file = repo.join("f");
    a.write(BLOCK, &file);
    let why = blocked(&b.write(BLOCK, &file));
    run(&b, &command(&why, "tenure claim "));
    assert_eq!(denied(&b.write(BLOCK, &file)), None);
}

#[test]
fn a_file_outside_any_repository_can_be_written_after_the_wait_that_is_named() {
    let env = env();
    let dir = env.dir().join("plain");
    std::fs::create_dir_all(&dir).unwrap();
    let [a, b] = ["a1", "b1"].map(|id| Hooked::start(&env, "claude", id, &dir));
    let file = dir.join("notes.md");
    a.write(BLOCK, &file);
    let why = blocked(&b.write(BLOCK, &file));
    assert_eq!(commands(&why, "tenure claim"), [""; 0], "{why}");
    ends_while(&a, &b, &command(&why, "tenure wait "));
    assert_eq!(denied(&b.write(BLOCK, &file)), None);
}

/// Runs a command that waits until `other` ends, which it does meanwhile.
#[track_caller]
fn ends_while(other: &Hooked, agent: &Hooked, line: &str) {
    let waits = agent.agent.start(Cmd::shell(line).dir(&agent.dir));
    other.event(&[], "SessionEnd", json!({"reason": "other"}));
    waits.wait().ok();
}

#[test]
fn a_file_whose_claim_was_released_as_done_is_not_offered_for_a_claim() {
    let env = env();
    let (repo, a, b) = pair(&env);
    let file = repo.join("src/db.rs");
    a.write(BLOCK, &file);
    let key = "path:acme/web:src/db.rs";
    ask(&a.agent, &["claim", key]);
    ask(&a.agent, &["release", key, "--done"]);
    let why = blocked(&b.write(BLOCK, &file));
    assert_eq!(commands(&why, "tenure claim"), [""; 0], "{why}");
    ends_while(&a, &b, &command(&why, "tenure wait "));
    assert_eq!(denied(&b.write(BLOCK, &file)), None);
}

#[test]
fn a_reserved_file_can_be_written_after_the_claim_that_waits_for_it() {
    let env = env();
    let (repo, a, b) = pair(&env);
    ask(&a.agent, &["claim", "path:acme/web:src/**"]);
    let file = repo.join("src/db.rs");
    // It wrote the file as well: one way out is named, and it is the one that works.
    a.write(BLOCK, &file);
    let why = blocked(&b.write(BLOCK, &file));
    let line = command(&why, "tenure claim ");
    let waits = b.agent.start(Cmd::shell(&line).dir(&b.dir));
    poll(PATIENCE, "it waits in line", || {
        let all = asked_by_nobody(&env, &["ps"]);
        let all = all["sessions"].as_array()?;
        let waits = |one: &Value| {
            one["waits_for"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        };
        all.iter().any(waits).then_some(())
    });
    assert!(denied(&b.write(BLOCK, &file)).is_some());
    ask(&a.agent, &["release", "path:acme/web:src/**"]);
    waits.wait().ok();
    assert_eq!(denied(&b.write(BLOCK, &file)), None);
}

#[test]
fn a_write_under_a_claim_only_passes_after_the_claim_that_is_named() {
    for (pattern, item) in [
        ("issue:*", "42"),
        ("issue:acme/*#4*", "2"),
        ("wp:041", ""),
        ("*", "x"),
    ] {
        let mut env = env();
        env.set("TENURE_GUARD_REQUIRE_CLAIM", pattern);
        let repo = repository(&env, "web");
        let a = Hooked::start(&env, "claude", "a1", &repo);
        let file = repo.join("f");
        let why = blocked(&a.write(&[], &file));
        let line = command(&why, "tenure claim ");
        let line = match pattern {
            "issue:acme/*#4*" => line.replacen("NAME", "web", 1).replacen("NAME", item, 1),
            _ => line.replace("NAME", item),
        };
        run(&a, &line);
        assert_eq!(denied(&a.write(&[], &file)), None, "{pattern}: {line}");
    }
}

#[test]
fn a_git_command_passes_in_the_worktree_that_is_named_or_after_the_wait() {
    let env = env();
    let (repo, a, b) = pair(&env);
    let c = Hooked::start(&env, "claude", "c1", &repo);
    let why = blocked(&b.run(BLOCK, "git checkout -b mine"));
    let add = command(&why, "git worktree add ");
    run(&b, &add);
    let own = PathBuf::from(add.rsplit(' ').next().unwrap());
    assert!(own.join(".git").exists(), "{add}");
    let there = format!("cd {} && git checkout -b mine", own.display());
    assert_eq!(b.run(BLOCK, &there), Value::Null);

    let wait = command(&why, "tenure wait ");
    let waits = b.agent.start(Cmd::shell(&wait).dir(&b.dir));
    for other in [&a, &c] {
        other.event(&[], "SessionEnd", json!({"reason": "other"}));
    }
    waits.wait().ok();
    assert_eq!(b.run(BLOCK, "git checkout -b mine"), Value::Null);
}

#[test]
fn a_write_that_waits_for_the_store_passes_once_the_command_that_is_named_succeeds() {
    let mut env = env();
    env.set("TENURE_GUARD_ON_ERROR", "closed");
    let repo = repository(&env, "web");
    let a = Hooked::start(&env, "claude", "a1", &repo);
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).unwrap();
    store.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let file = repo.join("f");
    let why = blocked(&a.write(&[], &file));
    let line = command(&why, "tenure ");
    store.execute_batch("ROLLBACK").unwrap();
    a.agent.run(Cmd::shell(&line).dir(&a.dir)).ok();
    assert_eq!(denied(&a.write(&[], &file)), None);
}

#[test]
fn a_session_is_said_to_be_at_work_only_while_it_is() {
    let env = env();
    let (repo, a, b) = pair(&env);
    let writes = |name: &str, event: &str| -> String {
        let file = repo.join(name);
        a.write(&[], &file);
        turn(&a, event);
        let answer = b.write(&[], &file);
        told(&answer)
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    };
    let busy = writes("one", "UserPromptSubmit");
    assert!(busy.contains("is still working"), "{busy}");
    let idle = writes("two", "Stop");
    assert!(idle.contains("is idle now"), "{idle}");
    let waiting = writes("three", "PermissionRequest");
    assert!(waiting.contains("is waiting for a person"), "{waiting}");
    for said in [idle, waiting] {
        assert!(!said.contains("at work"), "{said}");
    }
    turn(&a, "Stop");
    let moved = b.run(&[], "git stash");
    let said = told(&moved).unwrap_or_else(|| panic!("{moved}"));
    assert!(
        said.contains(&format!("{} (finished)", a.handle())),
        "{said}"
    );
}

/// Everything that says whether a write is recent.
fn is_recent(env: &Env, repo: &Path, a: &Hooked, b: &Hooked) -> (bool, bool) {
    let file = repo.join("f");
    a.write(&[], &file);
    let status = b.agent.tenure_in(repo, &["status", "--json"]).ok().json();
    let others = status["status"]["others"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let wrote = others
        .iter()
        .any(|other| other["wrote"].as_array().is_some_and(|all| !all.is_empty()));
    let is_told = told(&b.write(&[], &file)).is_some();
    assert_eq!(
        events(env, "session.write_conflict").len(),
        usize::from(is_told)
    );
    (wrote, is_told)
}

#[test]
fn how_long_a_write_counts_is_a_setting() {
    let usual = env();
    let (repo, a, b) = pair(&usual);
    assert_eq!(is_recent(&usual, &repo, &a, &b), (true, true));

    let mut never = env();
    never.set("TENURE_GUARD_RECENT_WRITES", "0s");
    let (repo, a, b) = pair(&never);
    assert_eq!(is_recent(&never, &repo, &a, &b), (false, false));
    let config = asked_by_nobody(&never, &["config"]);
    let config = config["config"].as_array().unwrap();
    let one = config
        .iter()
        .find(|one| one["key"] == "guard.recent_writes")
        .expect("it is listed");
    assert_eq!(one["value"], "0s");
    assert_eq!(one["origin"], "TENURE_GUARD_RECENT_WRITES");
}
