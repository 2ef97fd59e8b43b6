//! Notices arrive at least once: they count as told only after they were written where their reader looks.

use serde_json::Value;
use tenure_testkit::{Agent, Cmd, Env, poll};

use crate::env;
use crate::support::hook::{claude, told};
use crate::support::line::{SOON, crew, run, session, take};

/// How many losses an answer tells.
fn losses(answer: &Value) -> usize {
    let notices = answer["notices"].as_array().expect("a list").iter();
    notices.filter(|notice| notice["kind"] == "lost").count()
}

/// Takes a key from a session that has it.
fn lose(loser: &Agent, winner: &Agent, key: &str) {
    take(loser, key);
    run(winner, 0, &format!("takeover {key} --reason test"));
}

/// Two sessions, of which the first has lost `wp:1` and does not know.
fn robbed(env: &Env) -> (Agent, Agent) {
    let (ann, bob) = (session(env, "ann"), session(env, "bob"));
    lose(&ann, &bob, "wp:1");
    (ann, bob)
}

/// A connection that holds the store's write lock.
fn write_lock(env: &Env) -> rusqlite::Connection {
    let store = rusqlite::Connection::open(env.state().join("tenure.db")).expect("a store");
    store.busy_timeout(SOON).expect("a setting");
    store
        .execute_batch("BEGIN IMMEDIATE")
        .expect("nobody holds it for long");
    store
}

/// Whether a process sleeps in a write to its stdout.
fn blocks_on_stdout(pid: u32) -> bool {
    let called = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    called.starts_with("1 0x1 ")
}

#[test]
fn a_notice_survives_a_kill_before_it_is_written() {
    let env = env();
    let (ann, _bob) = robbed(&env);
    let pipe = env.dir().join("pipe");
    let line = format!(
        "mkfifo {0} && exec 3<>{0} && head -c 65536 /dev/zero >&3 && exec tenure whoami --json >&3",
        pipe.display()
    );
    let call = ann.start(Cmd::shell(&line));
    poll(SOON, "it waits for its reader", || {
        blocks_on_stdout(call.pid).then_some(())
    });
    call.kill9();
    assert_eq!(losses(&run(&ann, 0, "whoami")), 1, "told after the kill");
    assert_eq!(losses(&run(&ann, 0, "whoami")), 0, "told once");
}

#[test]
fn a_notice_that_was_written_and_not_marked_is_told_again() {
    let env = env();
    let (ann, _bob) = robbed(&env);
    let store = write_lock(&env);
    let call = ann.start(Cmd::shell("exec tenure whoami --json"));
    poll(SOON, "the notice is written", || {
        call.stdout().contains("took over wp:1").then_some(())
    });
    call.kill9();
    store.execute_batch("ROLLBACK").unwrap();
    assert_eq!(losses(&run(&ann, 0, "whoami")), 1, "told again");
    assert_eq!(losses(&run(&ann, 0, "whoami")), 0, "told enough");
}

#[test]
fn a_notice_that_nobody_could_read_is_kept() {
    let env = env();
    let (ann, _bob) = robbed(&env);
    for swallowed in [
        "tenure whoami --json >/dev/full 2>/dev/null",
        "tenure whoami --json >/dev/null",
        "tenure whoami --json >&-",
        "tenure whoami 2>/dev/full",
        "tenure whoami 2>/dev/null",
        "tenure whoami 2>&-",
        "tenure guard wp:1 -q >/dev/null 2>&1",
        "tenure ps -q",
    ] {
        let said = ann.run(Cmd::shell(swallowed));
        assert!(!said.stdout.contains("took over"), "{swallowed}: {said}");
    }
    assert_eq!(losses(&run(&ann, 0, "whoami")), 1);
    assert_eq!(losses(&run(&ann, 0, "whoami")), 0);
}

#[test]
fn a_wait_that_is_killed_takes_no_notice_along() {
    let env = env();
    let (ann, bob) = robbed(&env);
    take(&bob, "wp:held");
    let waiter = ann.start(Cmd::shell("exec tenure claim wp:held --wait 60s --json"));
    poll(SOON, "it stands in line", || {
        let why = run(&bob, 0, "why wp:held");
        (!why["why"]["waiters"].as_array()?.is_empty()).then_some(())
    });
    waiter.kill9();
    assert_eq!(losses(&run(&ann, 0, "whoami")), 1);
}

#[test]
fn a_loss_is_told_until_the_model_could_read_it() {
    let env = env();
    let (ann, bob) = (env.agent("claude"), session(&env, "bob"));
    claude(&env, &ann, "SessionStart.startup", "a1");
    lose(&ann, &bob, "wp:1");
    for _ in 0..3 {
        assert_eq!(losses(&run(&ann, 0, "whoami")), 1, "a helper's call");
    }
    let heard = told(&claude(&env, &ann, "PostToolUse.Bash", "a1")).expect("it is told");
    assert_eq!(heard.matches("took over wp:1").count(), 1, "{heard}");
    assert_eq!(losses(&run(&ann, 0, "whoami")), 0);
    assert_eq!(told(&claude(&env, &ann, "PostToolUse.Bash", "a1")), None);
}

#[test]
fn a_hook_whose_answer_was_not_written_tells_it_again() {
    let env = env();
    let (ann, bob) = (env.agent("claude"), session(&env, "bob"));
    claude(&env, &ann, "SessionStart.startup", "a1");
    lose(&ann, &bob, "wp:1");
    // Not a prompt: that is always recorded, and waits for the store before it is answered.
    let event =
        crate::support::hook::captured(&env, "claude-2.1.325/PostToolUse.Bash", "a1").to_string();
    // Not into a pipe whose reader leaves: it may leave after the write.
    for lost in [">/dev/full", ">/dev/null"] {
        let line = format!("tenure hook claude {lost}");
        let said = ann.run(Cmd::shell(&line).stdin(event.clone()));
        assert_eq!(said.code, 0, "{said}");
    }
    let store = write_lock(&env);
    let call = ann.start(Cmd::shell("exec tenure hook claude").stdin(event));
    poll(SOON, "the answer is written", || {
        call.stdout().contains("took over wp:1").then_some(())
    });
    call.kill9();
    store.execute_batch("ROLLBACK").unwrap();
    let heard = told(&claude(&env, &ann, "PostToolUse.Bash", "a1")).expect("it is told");
    assert_eq!(heard.matches("took over wp:1").count(), 1, "{heard}");
    assert_eq!(told(&claude(&env, &ann, "PostToolUse.Bash", "a1")), None);
}

#[test]
fn a_resumed_model_is_told_of_every_loss() {
    let env = env();
    let (ann, bob) = (env.agent("claude"), session(&env, "bob"));
    claude(&env, &ann, "SessionStart.startup", "a1");
    let keys = ["wp:1", "wp:2", "wp:3", "wp:4", "wp:5"];
    for key in keys {
        take(&ann, key);
    }
    ann.kill9();
    for key in keys {
        take(&bob, key);
    }
    let back = env.agent("claude");
    let heard = told(&claude(&env, &back, "SessionStart.resume", "a1")).expect("a brief");
    for key in keys {
        assert_eq!(
            heard.matches(&format!("lost {key}:")).count(),
            1,
            "{key}\n{heard}"
        );
    }
}

#[test]
fn many_losses_are_counted_and_come_with_later_answers() {
    let env = env();
    let (ann, bob) = (env.agent("claude"), session(&env, "bob"));
    claude(&env, &ann, "SessionStart.startup", "a1");
    let long = "x".repeat(400);
    let keys: Vec<String> = (0..60).map(|n| format!("wp:{n}-{long}")).collect();
    for key in &keys {
        take(&ann, key);
    }
    ann.kill9();
    for key in &keys {
        take(&bob, key);
    }
    let back = env.agent("claude");
    let mut missing = keys;
    let mut event = "SessionStart.resume";
    while !missing.is_empty() {
        let left = missing.len();
        let heard = told(&claude(&env, &back, event, "a1")).expect("more to tell");
        assert!(heard.len() <= 8 * 1024, "{} bytes", heard.len());
        missing.retain(|key| !heard.contains(&format!("lost {key}:")));
        assert!(missing.len() < left, "{heard}");
        if !missing.is_empty() {
            let more = format!("{} more; run `tenure status` to see them", missing.len());
            assert!(heard.contains(&more), "{more}\n{heard}");
        }
        event = "PostToolUse.Bash";
    }
    assert_eq!(told(&claude(&env, &back, event, "a1")), None);
}

#[test]
fn a_person_is_told_of_a_loss_at_the_terminal_and_not_in_a_pipe() {
    let (env, [bob]) = crew(["bob"]);
    let person = env.shell_at_terminal();
    person.tenure(&["register"]).ok();
    person.tenure(&["claim", "wp:1"]).ok();
    run(&bob, 0, "takeover wp:1 --reason test");
    for _ in 0..2 {
        let piped = person.tenure(&["whoami", "--json"]).ok().json();
        assert_eq!(losses(&piped), 1, "{piped}");
    }
    person.line("tenure whoami 2>/dev/tty").ok();
    let shown = person.shown();
    assert_eq!(shown.matches("took over wp:1").count(), 1, "{shown}");
    let after = person.tenure(&["whoami", "--json"]).ok().json();
    assert_eq!(losses(&after), 0, "{after}");
}

#[test]
fn a_message_is_delivered_waits_or_is_refused() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let live = run(&ann, 0, "tell bob hello");
    assert_eq!(live["delivery"], "delivered");
    let id = "11111111-1111-4111-8111-111111111111";
    let carl = env.agent("claude");
    let _heard = claude(&env, &carl, "SessionStart.startup", id).ok();
    carl.kill9();
    let listed = env.tenure(&["ps", "-a", "--json"]).ok().json();
    let sessions = listed["sessions"].as_array().unwrap().clone();
    let carls = sessions
        .iter()
        .find(|one| one["agent"] == "claude")
        .unwrap();
    let carls = carls["handle"].as_str().unwrap().to_owned();
    let shown = run(&ann, 0, &format!("transcript show {carls}"));
    let transcript = std::path::PathBuf::from(shown["transcript"]["path"].as_str().unwrap());
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    std::fs::write(&transcript, "").unwrap();
    let waiting = ann.tenure(&["tell", &carls, "hello", "--json"]);
    assert_eq!(waiting.code, 0, "{waiting}");
    assert_eq!(waiting.json()["delivery"], "waiting");
    bob.kill9();
    let count = || run(&ann, 0, "log --kind session.message --count")["count"].clone();
    let before = count();
    let dead = ann
        .tenure(&["tell", "bob", "hello", "--json"])
        .fails(1)
        .json();
    assert_eq!(dead["error"]["kind"], "dead");
    assert_eq!(count(), before, "nothing was stored");
    let people = ann.tenure(&["tell", &carls, "hello"]).ok().stdout;
    assert!(people.starts_with("waiting: "), "{people}");
    std::fs::remove_file(&transcript).unwrap();
    ann.tenure(&["tell", &carls, "hello"]).fails(1);
}
