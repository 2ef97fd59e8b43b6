//! What goes on showing things: it ends with its reader, and with signals, whatever it shows.

use std::time::{Duration, Instant};

use tenure_testkit::{Cmd, Signal, poll};

use crate::support::line::{SOON, crew, handle, run, session, take, text};
use crate::support::waiter::ends;

#[test]
fn every_watcher_ends_when_nobody_reads_any_more() {
    let (_env, [ann]) = crew(["ann"]);
    run(&ann, 0, "mission join m --role r");
    for verb in [
        "ps --watch",
        "log -f",
        "mission status --mission m --watch",
        &format!("wait {}", handle(&ann)),
    ] {
        for more in ["", "--json"] {
            // It has its reader only until it has begun to watch.
            let line = format!(
                "{{ tenure {verb} {more}; echo \"code $?\" >&2; }} | {{ read first; exec <&-; }}"
            );
            let line = if verb.starts_with("wait") {
                format!("{{ tenure {verb} {more}; echo \"code $?\" >&2; }} | :")
            } else {
                line
            };
            let end = ends(ann.start(Cmd::shell(&line)));
            let code = if verb.starts_with("wait") { 141 } else { 0 };
            let said = end.stderr.trim().ends_with(&format!("code {code}"));
            assert!(said, "{verb} {more}\n{end}");
        }
    }
}

#[test]
fn every_watcher_ends_with_a_signal() {
    let (env, [ann]) = crew(["ann"]);
    let bob = session(&env, "bob");
    run(&ann, 0, "mission join m --role r");
    for verb in ["ps --watch", "log -f", "mission status --mission m --watch"] {
        for (signal, code) in [(Signal::INT, 0), (Signal::TERM, 143)] {
            let watcher = bob.start(Cmd::new("tenure").args(verb.split(' ')));
            poll(SOON, "it shows something", || {
                (!watcher.stdout().is_empty()).then_some(())
            });
            poll(SOON, "it sleeps", || {
                let stat = tenure_testkit::pinned::Stat::read(watcher.pid);
                stat.filter(|stat| stat.state == 'S')
            });
            watcher.signal(signal);
            let end = ends(watcher);
            assert_eq!((end.code, end.stderr.as_str()), (code, ""), "{verb} {end}");
        }
    }
}

#[test]
fn a_follower_shows_each_event_once_and_sleeps_in_between() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    let follower = bob.start(Cmd::new("tenure").args(["log", "-f", "--json", "--limit", "2"]));
    let events = || -> Vec<serde_json::Value> {
        let said = follower.stdout();
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        let object = |line: &str| -> serde_json::Value {
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?}"))
        };
        whole.lines().map(object).collect()
    };
    poll(SOON, "it shows something", || {
        (!events().is_empty()).then_some(())
    });
    // More in one commit than it reads at once.
    run(&ann, 0, "claim --all wp:1 wp:2 wp:3 wp:4 wp:5");
    let keys = || -> Vec<String> {
        let all = events();
        let keyed = all.iter().filter(|line| line["event"]["key"].is_string());
        keyed.map(|line| text(&line["event"]["key"])).collect()
    };
    poll(SOON, "all are shown", || (keys().len() == 5).then_some(()));
    let switches = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", follower.pid));
        let status = status.expect("it lives");
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count
            .and_then(|count| count.trim().parse().ok())
            .expect("a number")
    };
    poll(SOON, "it sleeps", || {
        let (before, end) = (switches(), Instant::now() + Duration::from_millis(300));
        poll(SOON, "time passes", || (Instant::now() > end).then_some(()));
        (switches() == before).then_some(())
    });
    let (before, end) = (switches(), Instant::now() + Duration::from_secs(2));
    poll(SOON, "time passes", || (Instant::now() > end).then_some(()));
    assert!(
        switches() - before <= 2,
        "it polls: {}",
        switches() - before
    );
    take(&ann, "wp:6");
    poll(SOON, "the last is shown", || {
        (keys().len() == 6).then_some(())
    });
    assert_eq!(keys(), ["wp:1", "wp:2", "wp:3", "wp:4", "wp:5", "wp:6"]);
}

#[test]
fn a_follower_tells_its_session_what_it_lost() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    take(&bob, "wp:1");
    let follower = bob.start(Cmd::new("tenure").args(["log", "-f"]));
    poll(SOON, "it shows something", || {
        (!follower.stdout().is_empty()).then_some(())
    });
    run(&ann, 0, "takeover wp:1 --reason test");
    poll(SOON, "it is told", || {
        follower.stderr().contains("wp:1").then_some(())
    });
    follower.signal(Signal::TERM);
    assert_eq!(ends(follower).code, 143);
}
