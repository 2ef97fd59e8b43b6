//! `tenure watch`: each change once, in order, to stdout or to a command that may be slow.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{Agent, Background, Cmd, Signal, poll};

use crate::env;
use crate::support::hook::event;
use crate::support::line::{SOON, crew, handle, run, session, take};
use crate::support::waiter::ends;

/// Starts a watch and waits until it watches.
#[track_caller]
fn watches(agent: &Agent, words: &[&str]) -> Background {
    let watcher = agent.start(Cmd::new("tenure").args(["watch"]).args(words.to_vec()));
    poll(SOON, "it watches", || {
        assert!(watcher.is_alive(), "{}", watcher.stderr());
        watcher.stderr().contains("watching for").then_some(())
    });
    watcher
}

/// The events that were written to a file, one a line.
fn written(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"));
    whole.lines().map(object).collect()
}

/// Waits for so many events.
#[track_caller]
fn events(file: &Path, count: usize) -> Vec<Value> {
    poll(SOON, "the events", || {
        let found = written(file);
        (found.len() >= count).then_some(found)
    })
}

fn interrupt(watcher: Background) {
    watcher.signal(Signal::INT);
    let end = ends(watcher);
    assert_eq!(end.code, 0, "{end}");
}

#[test]
fn a_command_gets_each_event_once_and_in_order() {
    let (env, [ann, me]) = crew(["ann", "me"]);
    let name = handle(&ann);
    let file = env.dir().join("events");
    let command = format!("cat >>{}", file.display());
    // What is so already is no event.
    take(&ann, "wp:0");
    let watcher = watches(&me, &["--on", "claimed,done,died,lost", "--exec", &command]);
    take(&ann, "wp:1");
    run(&ann, 0, "release wp:1 --done");
    take(&ann, "wp:2");
    run(&me, 0, "takeover wp:2 --reason stuck");
    ann.kill9();
    let found = events(&file, 6);
    let kinds: Vec<&str> = found
        .iter()
        .map(|one| one["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["claimed", "done", "claimed", "lost", "claimed", "died"]
    );
    for one in [0, 1, 2, 3, 5] {
        assert_eq!(found[one]["session"]["handle"], name, "{found:?}");
    }
    assert_eq!(found[3]["key"], "wp:2");
    assert_eq!(found[3]["others"], json!([handle(&me)]));
    assert_eq!(found[5]["held"], json!([{"key": "wp:0", "epoch": 1}]));
    interrupt(watcher);
    assert_eq!(written(&file).len(), 6);
}

#[test]
fn what_waits_for_a_person_is_an_event_when_it_begins() {
    let env = env();
    let claude = env.agent("claude");
    event(
        &claude,
        "SessionStart",
        &json!({"source": "startup", "cwd": env.work()}),
    );
    let me = env.agent("me");
    let file = env.dir().join("events");
    let command = format!("cat >>{}", file.display());
    let watcher = watches(&me, &["--on", "asks,failed", "--exec", &command]);
    let asked = json!({"tool_name": "Bash", "tool_input": {"command": "touch x"}});
    event(&claude, "PermissionRequest", &asked);
    let found = events(&file, 1);
    assert_eq!(found[0]["event"], "asks");
    // The same question again is the same wait; an answer and another question are another one.
    event(&claude, "PermissionRequest", &asked);
    event(&claude, "PostToolUse", &asked);
    let ps = run(&me, 0, "ps");
    assert_eq!(ps["sessions"][0]["activity"], "busy");
    event(&claude, "PermissionRequest", &asked);
    assert_eq!(events(&file, 2).len(), 2);
    interrupt(watcher);
}

#[test]
fn a_command_that_hangs_is_ended_with_its_watch() {
    let (env, [ann, me]) = crew(["ann", "me"]);
    let pid = env.dir().join("pid");
    let command = format!("echo $$ >{}; exec sleep 600", pid.display());
    let watcher = watches(&me, &["--on", "claimed", "--exec", &command]);
    // At once: the watch has seen both when the command runs.
    run(&ann, 0, "claim wp:1 wp:2 --all");
    let hangs = poll(SOON, "it runs", || {
        let text = fs::read_to_string(&pid).ok()?;
        text.trim().parse::<u32>().ok()
    });
    watcher.signal(Signal::TERM);
    let end = ends(watcher);
    assert_eq!(end.code, 128 + 15, "{end}");
    assert!(end.stderr.contains("did not get 1 event"), "{end}");
    assert!(!Path::new(&format!("/proc/{hangs}")).exists());
}

#[test]
fn a_watch_shows_only_the_sessions_that_were_asked_for() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let me = session(&env, "me");
    let name = handle(&ann);
    let watcher = watches(&me, &["--on", "claimed,done", "--session", &name]);
    take(&bob, "wp:1");
    take(&ann, "wp:2");
    let shown = poll(SOON, "an event", || {
        let shown = watcher.stdout();
        shown.ends_with('\n').then_some(shown)
    });
    assert!(
        shown.contains(&format!("claimed   {name} claimed wp:2")),
        "{shown}"
    );
    assert!(!shown.contains("wp:1"), "{shown}");
    interrupt(watcher);
    let unknown = me.tenure(&["watch", "--on", "nothing"]);
    assert_eq!(unknown.code, 2, "{unknown}");
}

/// The example with a tracker that writes down what it is told.
#[test]
fn a_trackers_command_line_follows_a_claim_its_end_and_a_proved_death() {
    let (env, [ann, me]) = crew(["ann", "me"]);
    let name = handle(&ann);
    let told = env.dir().join("told");
    let tracker = env.dir().join("tracker");
    fs::write(
        &tracker,
        format!("#!/bin/sh\necho \"$*\" >>{}\n", told.display()),
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&tracker, mode).unwrap();
    let bridge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tracker-bridge.py");
    let command = format!("{} {}", bridge.display(), tracker.display());
    let watcher = watches(&me, &["--on", "claimed,done,died", "--exec", &command]);
    take(&ann, "wp:1");
    run(&ann, 0, "release wp:1 --done");
    take(&ann, "wp:2");
    ann.kill9();
    let expected = [
        format!("assign wp:1 {name}"),
        "close wp:1".to_owned(),
        format!("assign wp:2 {name}"),
        format!("unassign wp:2 {name} died"),
    ];
    poll(SOON, "the tracker knows", || {
        let told = fs::read_to_string(&told).unwrap_or_default();
        (told.lines().count() >= expected.len()).then_some(())
    });
    let told = fs::read_to_string(&told).unwrap();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    interrupt(watcher);
}

#[test]
fn a_failing_command_is_reported_and_the_next_event_gets_its_own() {
    let (_env, [ann, me]) = crew(["ann", "me"]);
    let watcher = watches(&me, &["--on", "claimed", "--exec", "exit 3"]);
    take(&ann, "wp:1");
    take(&ann, "wp:2");
    poll(SOON, "both are reported", || {
        let said = watcher.stderr();
        (said.matches("the command failed").count() == 2).then_some(())
    });
    assert!(
        watcher.stderr().contains("claimed wp:2"),
        "{}",
        watcher.stderr()
    );
    interrupt(watcher);
}
