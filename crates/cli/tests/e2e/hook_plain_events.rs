//! A hook with nothing to do opens nothing, and loses nothing by it.

use std::fs::{self, File};

use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, poll};

use crate::env;
use crate::support::answer::{PATIENCE, ask};
use crate::support::hook::{can_trace, only, outages};
use crate::support::hooked::{Hooked, denied, pair, told};

/// An event that only shows that the agent is at work.
fn plain(of: &Hooked) -> Value {
    of.event(
        &[],
        "PreToolUse",
        json!({"tool_name": "Read", "tool_input": {"file_path": "/x"}}),
    )
}

/// Locks the index of the store's log, so that a process that opens the store is late and counted.
fn lock_index(env: &Env) -> File {
    let index = File::options()
        .read(true)
        .write(true)
        .open(env.state().join("tenure.db-shm"))
        .expect("the store was used");
    rustix::fs::fcntl_lock(&index, rustix::fs::FlockOperation::LockExclusive)
        .expect("nobody has it open");
    index
}

/// Whether a plain event opens the store now.
fn opens(env: &Env, of: &Hooked) -> bool {
    let before = outages(env).len();
    let locked = lock_index(env);
    plain(of);
    drop(locked);
    outages(env).len() > before
}

/// Sends plain events until one needs no store. A busy machine may take longer than a note is good for.
#[track_caller]
fn settle(env: &Env, of: &Hooked) {
    poll(PATIENCE, "a plain event opens nothing", || {
        plain(of);
        plain(of);
        (!opens(env, of)).then_some(())
    });
}

#[test]
fn a_plain_event_after_another_opens_nothing_and_any_other_event_opens_the_store() {
    let env = env();
    let (repo, a, _b) = pair(&env);
    settle(&env, &a);
    let before = outages(&env).len();
    let locked = lock_index(&env);
    a.event(&[], "UserPromptSubmit", json!({"prompt": "go on"}));
    a.event(
        &[],
        "PreToolUse",
        json!({"tool_name": "Write", "tool_input": {"file_path": repo.join("f")}}),
    );
    a.run(&[], "git stash");
    a.event(&[], "Stop", json!({}));
    drop(locked);
    assert_eq!(
        outages(&env).len() - before,
        4,
        "each of them is late, and counted"
    );
}

#[test]
fn what_another_process_stores_is_told_at_the_next_plain_event() {
    let env = env();
    let (_repo, a, b) = pair(&env);
    let name = a.handle();
    a.agent.tenure(&["claim", "wp:1"]).ok();
    settle(&env, &a);
    b.agent.tenure(&["tell", &name, "have a look"]).ok();
    let answer = plain(&a);
    assert!(
        told(&answer).is_some_and(|said| said.contains("have a look")),
        "{answer}"
    );
    settle(&env, &a);
    b.agent
        .tenure(&["takeover", "wp:1", "--reason", "stuck"])
        .ok();
    let answer = plain(&a);
    assert!(
        told(&answer).is_some_and(|said| said.contains("took over wp:1")),
        "{answer}"
    );
    // What was told once is not told again, and then there is nothing to do once more.
    settle(&env, &a);
    assert_eq!(told(&plain(&a)), None);
}

#[test]
fn a_session_that_rested_or_was_ended_is_found_at_work_by_its_next_plain_event() {
    let env = env();
    let a = Hooked::start(&env, "claude", "a1", &env.work());
    settle(&env, &a);
    assert_eq!(only(&env)["activity"], "busy");
    a.event(&[], "Stop", json!({}));
    assert_ne!(only(&env)["activity"], "busy");
    plain(&a);
    assert_eq!(only(&env)["activity"], "busy");
    settle(&env, &a);
    env.tenure(&["end", "--session", &a.handle(), "--reason", "test"])
        .ok();
    plain(&a);
    assert_eq!(only(&env)["state"], "live", "it is registered again");
    settle(&env, &a);
    a.event(&[], "SessionEnd", json!({"reason": "other"}));
    assert_eq!(only(&env)["state"], "ended");
}

#[test]
fn a_guard_blocks_a_write_between_plain_events() {
    let env = env();
    let (repo, a, b) = pair(&env);
    settle(&env, &b);
    let file = repo.join("f");
    a.write(&[], &file);
    let answer = b.write(&["--mode", "block"], &file);
    assert!(denied(&answer).is_some(), "{answer}");
}

#[test]
fn another_mode_and_a_subagent_are_not_repeats() {
    let env = env();
    let a = Hooked::start(&env, "claude", "a1", &env.work());
    settle(&env, &a);
    let before = outages(&env).len();
    let locked = lock_index(&env);
    let read = json!({"tool_name": "Read", "tool_input": {"file_path": "/x"}});
    a.event(&["--mode", "observe"], "PreToolUse", read);
    let inside = json!({"tool_name": "Read", "tool_input": {"file_path": "/x"},
        "agent_id": "s1", "agent_type": "Explore"});
    a.event(&[], "PreToolUse", inside);
    drop(locked);
    assert_eq!(outages(&env).len() - before, 2, "each opens the store");
}

#[test]
fn a_mark_that_proves_nothing_settles_nothing() {
    let env = env();
    let a = Hooked::start(&env, "claude", "a1", &env.work());
    let mark = env.state().join("tenure.db.mark");
    type Spoil = dyn Fn(&str) -> Option<String>;
    let spoil: [(&str, &Spoil); 4] = [
        ("missing", &|_| None),
        ("corrupt", &|_| Some("tenure-mark 1 x\n".to_owned())),
        ("of another boot", &|line| {
            let (rest, _) = line.trim_end().rsplit_once(' ')?;
            Some(format!("{rest} another-boot\n"))
        }),
        ("of another file", &|line| {
            let mut words: Vec<&str> = line.trim_end().split(' ').collect();
            words[4] = "1.1";
            Some(words.join(" ") + "\n")
        }),
    ];
    for (what, spoilt) in spoil {
        settle(&env, &a);
        let line = fs::read_to_string(&mark).expect("it is written at every change");
        fs::remove_file(&mark).expect("it is there");
        if let Some(text) = spoilt(&line) {
            fs::write(&mark, text).expect("the state is ours");
        }
        assert!(opens(&env, &a), "{what}");
        // The next change writes a whole one.
        ask(&a.agent, &["claim", "wp:1"]);
        ask(&a.agent, &["release", "wp:1"]);
    }
    settle(&env, &a);
    let notes = fs::read_dir(env.state().join("tenure.db.settled")).expect("there are notes");
    for note in notes {
        fs::write(note.expect("it is readable").path(), "\u{0}\n").expect("the state is ours");
    }
    assert!(opens(&env, &a), "corrupt notes");
}

#[test]
fn a_store_that_was_replaced_and_a_second_store_are_opened() {
    let env = env();
    let a = Hooked::start(&env, "claude", "a1", &env.work());
    settle(&env, &a);
    let db = env.state().join("tenure.db");
    let copy = env.state().join("copy");
    fs::copy(&db, &copy).expect("the state is ours");
    fs::rename(&copy, &db).expect("the state is ours");
    assert!(opens(&env, &a), "the same in another file");
    settle(&env, &a);
    let other = env.dir().join("other");
    fs::create_dir(&other).expect("it is new");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(&other, mode).expect("it is ours");
    let other = other.join("tenure.db");
    let elsewhere = [("TENURE_STORE", other.to_str())];
    let event = json!({"hook_event_name": "PreToolUse", "session_id": "a1", "cwd": a.dir,
        "tool_name": "Read", "tool_input": {"file_path": "/x"}});
    let line = format!(
        "TENURE_STORE={} tenure hook claude; exit $?",
        other.display()
    );
    a.agent.run(Cmd::shell(&line).stdin(event.to_string())).ok();
    let known = a
        .agent
        .tenure_env(&elsewhere, &["ps", "--json"])
        .ok()
        .json();
    assert_eq!(
        known["sessions"].as_array().map(Vec::len),
        Some(1),
        "{known}"
    );
}

#[test]
fn what_was_stored_by_a_process_that_was_killed_before_it_said_so_is_told_with_the_next_heartbeat()
{
    let mut env = env();
    // A heartbeat every two seconds.
    env.set("TENURE_LEASE", "8s");
    let (_repo, a, b) = pair(&env);
    if !can_trace(&b.agent) {
        return;
    }
    let name = a.handle();
    settle(&env, &a);
    let mark = env.state().join("tenure.db.mark");
    let before = fs::read(&mark).expect("it is written at every change");
    let line = format!(
        "exec strace -f -qq -o /dev/null -P {} -e trace=pwrite64 -e inject=pwrite64:signal=KILL:when=1 \
         tenure tell {name} hello",
        mark.display()
    );
    let killed = b.agent.run(Cmd::shell(&line));
    assert!([137, -1].contains(&killed.code), "{killed}");
    // strace kills at the call, which the kernel may have finished.
    fs::write(&mark, before).expect("the state is ours");
    let answer = poll(PATIENCE, "the notice is told", || {
        let answer = plain(&a);
        told(&answer).is_some().then_some(answer)
    });
    assert!(
        told(&answer).is_some_and(|said| said.contains("hello")),
        "{answer}"
    );
}
