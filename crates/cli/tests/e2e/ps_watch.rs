//! `ps` as a tree, and `ps` that is shown again when something changes.

use serde_json::Value;
use tenure_testkit::{Background, Cmd, Env, Signal, poll};

use crate::env;
use crate::support::hook::event;
use crate::support::line::{SOON, crew, handle, register, run, session, take, text};
use crate::support::waiter::ends;

/// The first words of the rows.
fn rows(env: &Env, words: &[&str]) -> Vec<String> {
    let table = env.tenure(words).ok().stdout;
    let first = |line: &str| {
        line.split("  ")
            .find(|word| !word.is_empty())
            .map(str::to_owned)
    };
    table.lines().skip(1).filter_map(first).collect()
}

#[test]
fn children_stand_below_their_parents() {
    let (env, [ann]) = crew(["ann"]);
    let bob = ann.nest("bob");
    register(&bob, "bob", "");
    let eve = bob.nest("eve");
    register(&eve, "eve", "");
    let late = session(&env, "late");
    let [a, b, e, l] = [&ann, &bob, &eve, &late].map(handle);
    assert_eq!(
        rows(&env, &["ps"]),
        [l.clone(), e.clone(), b.clone(), a.clone()]
    );
    assert_eq!(
        rows(&env, &["ps", "--tree"]),
        [l.clone(), a.clone(), format!("└ {b}"), format!("└ {e}")]
    );
    let table = env.tenure(&["ps", "--tree"]).ok().stdout;
    assert!(table.contains(&format!("\n  └ {e} ")), "{table}");
    let answer = env.tenure(&["ps", "--tree", "--json"]).ok().json();
    let order: Vec<String> = answer["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| text(&one["handle"]))
        .collect();
    assert_eq!(order, [l, a, b, e]);
}

#[test]
fn twins_are_marked_with_whose_they_are() {
    let env = env();
    let (first, second) = (env.agent("claude"), env.agent("claude"));
    for agent in [&first, &second] {
        register(agent, "claude", "--native-id c-1");
    }
    let owner = handle(&first);
    let twin = handle(&second);
    let table = env.tenure(&["ps", "--tree"]).ok().stdout;
    for (one, other) in [(&twin, &owner), (&owner, &twin)] {
        let row = table
            .lines()
            .find(|line| line.starts_with(one))
            .expect("a row");
        assert!(row.contains(&format!("twin of {other}")), "{table}");
    }
}

/// The objects that a watcher has printed so far.
fn objects(watcher: &Background) -> Vec<Value> {
    let said = watcher.stdout();
    let whole = said.rfind('\n').map_or("", |end| &said[..end]);
    let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"));
    whole.lines().map(object).collect()
}

/// Waits until the last object fits.
#[track_caller]
fn shows(watcher: &Background, what: &str, fits: impl Fn(&Value) -> bool) {
    poll(SOON, what, || {
        assert!(
            watcher.is_alive(),
            "{}{}",
            watcher.stdout(),
            watcher.stderr()
        );
        objects(watcher).last().is_some_and(&fits).then_some(())
    });
}

fn state_of(answer: &Value, handle: &str) -> Option<String> {
    let all = answer["sessions"].as_array()?.iter();
    let mut named = all.filter(|one| one["handle"] == handle);
    named.next().map(|one| text(&one["state"]))
}

#[test]
fn a_watcher_shows_each_change_as_one_object_a_line() {
    let (env, [ann]) = crew(["ann"]);
    let name = handle(&ann);
    let me = env.agent("me");
    let watcher = me.start(Cmd::new("tenure").args(["ps", "--watch", "--json"]));
    shows(&watcher, "the first look", |last| {
        state_of(last, &name).is_some()
    });
    take(&ann, "wp:1");
    shows(&watcher, "the claim", |last| {
        last["sessions"][0]["claims"][0]["key"] == "wp:1"
    });
    let bob = session(&env, "bob");
    let other = handle(&bob);
    shows(&watcher, "the newcomer", |last| {
        state_of(last, &other).is_some()
    });
    // Nobody writes when a process dies: the kernel tells.
    ann.kill9();
    shows(&watcher, "the death", |last| {
        state_of(last, &name).as_deref() == Some("dead")
    });
    for object in objects(&watcher) {
        assert_eq!(object["v"], 1);
        assert!(object["notices"].is_array());
    }
    watcher.signal(Signal::INT);
    let end = ends(watcher);
    assert_eq!((end.code, end.stderr.as_str()), (0, ""), "{end}");
}

#[test]
fn a_watcher_that_nothing_wakes_says_and_costs_nothing() {
    let (env, [ann]) = crew(["ann"]);
    let name = handle(&ann);
    let me = env.agent("me");
    let watcher = me.start(Cmd::new("tenure").args(["ps", "--watch", "--json"]));
    shows(&watcher, "the first look", |last| {
        state_of(last, &name).is_some()
    });
    let spent = |pid: u32| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        let after = stat.rsplit_once(") ").expect("a name").1;
        let fields: Vec<&str> = after.split(' ').collect();
        // User and system time in clock ticks.
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(3);
    let before = spent(watcher.pid);
    poll(SOON, "three seconds", || {
        (std::time::Instant::now() > end).then_some(())
    });
    // A heartbeat is nothing that anybody watches for.
    let forged = "UPDATE sessions SET seen_at = seen_at + 1, lease_at = lease_at + 1";
    crate::support::forge::forge(&env, forged);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(1);
    poll(SOON, "a second", || {
        (std::time::Instant::now() > end).then_some(())
    });
    // A hundred ticks are a second; polling would cost most of one.
    assert!(
        spent(watcher.pid) - before < 40,
        "{} ticks",
        spent(watcher.pid) - before
    );
    assert_eq!(objects(&watcher).len(), 1, "{}", watcher.stdout());
    watcher.signal(Signal::TERM);
    assert_eq!(ends(watcher).code, 143);
}

#[test]
fn a_watcher_ends_when_nobody_reads_any_more() {
    let (env, [_ann]) = crew(["ann"]);
    let me = env.agent("me");
    let line = "{ tenure ps --watch --json; echo \"code $?\" >&2; } | head -n 1";
    let end = ends(me.start(Cmd::shell(line)));
    assert_eq!(end.stdout.lines().count(), 1, "{end}");
    assert_eq!(end.stderr.trim(), "code 0", "{end}");
}

#[test]
fn at_a_terminal_the_table_is_drawn_anew() {
    let env = env();
    let claude = env.agent("claude");
    event(
        &claude,
        "SessionStart",
        &serde_json::json!({"source": "startup"}),
    );
    let shell = env.shell_at_terminal();
    shell
        .line("TERM=xterm tenure ps --watch >/dev/tty & echo $! >watcher")
        .ok();
    let drawn = |word: &str| {
        poll(SOON, word, || {
            let shown = shell.shown();
            let last = shown.rsplit_once("\u{1b}[H\u{1b}[2J")?.1.to_owned();
            last.contains(word).then_some(())
        });
    };
    drawn("idle");
    event(
        &claude,
        "UserPromptSubmit",
        &serde_json::json!({"prompt": "x"}),
    );
    drawn("busy");
    shell
        .line("kill -INT $(cat watcher); wait $(cat watcher)")
        .ok();
    assert_eq!(run(&claude, 0, "whoami")["session"]["activity"], "busy");
}
