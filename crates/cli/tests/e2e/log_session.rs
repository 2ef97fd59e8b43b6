//! The log of one session, what a wait for one saw, and the log of a store that has been in use for long.

use rusqlite::Connection;
use serde_json::{Value, json};
use tenure_testkit::{Cmd, poll};

use crate::env;
use crate::support::answer::{PATIENCE, asked_by_nobody, text};
use crate::support::hooked::Hooked;
use crate::support::line::{crew, handle, register, run, session, take};

fn kinds(answer: &Value) -> Vec<&str> {
    let all = answer["events"].as_array().expect("a list");
    all.iter().filter_map(|one| one["kind"].as_str()).collect()
}

#[test]
fn a_session_is_named_by_handle_id_or_a_part_of_either() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    let me = run(&ann, 0, "whoami");
    let (id, name) = (text(&me, "/session/id"), text(&me, "/session/handle"));
    let by_flag = asked_by_nobody(&env, &["log", "--session", name]);
    assert!(kinds(&by_flag).contains(&"claim.granted"), "{by_flag}");
    for word in [id, name, "ann", &name[2..]] {
        let answer = asked_by_nobody(&env, &["log", word]);
        assert_eq!(answer["events"], by_flag["events"], "{word}");
    }
    let people = env.tenure(&["log", "ann"]).ok();
    assert!(
        people.stdout.contains("wp:1") && !people.stdout.contains("wp:2"),
        "{people}"
    );
    // After a place in the log, and of an item.
    let first = by_flag["events"][0]["cursor"].to_string();
    let rest = asked_by_nobody(&env, &["log", "ann", "--after", &first]);
    assert_eq!(kinds(&rest), kinds(&by_flag)[1..]);
    let item = asked_by_nobody(&env, &["log", "wp:2"]);
    assert_eq!(kinds(&item), ["claim.granted"]);
    let none = asked_by_nobody(&env, &["log", "wp:2", "--session", "ann"]);
    assert_eq!(kinds(&none), [""; 0]);
}

#[test]
fn a_word_that_names_no_session_or_several_is_refused() {
    let (env, [ann, other]) = crew(["ann", "ann"]);
    let said = env.tenure(&["log", "ann"]).fails(6);
    for one in [handle(&ann), handle(&other)] {
        assert!(said.stderr.contains(&one), "{said}");
    }
    for flags in [&["log", "zed"][..], &["log", "zed", "-f"]] {
        let said = env.tenure(flags).fails(4);
        for part in ["no session is named \"zed\"", "not a key", "wp:zed"] {
            assert!(said.stderr.contains(part), "{said}");
        }
    }
    let named = handle(&ann);
    let said = env.tenure(&["log", &named, "--session", "ann"]).fails(2);
    assert!(said.stderr.contains("two sessions were given"), "{said}");
    let _said = env.tenure(&["log", "#"]).fails(2);
}

#[test]
fn who_follows_a_session_keeps_it_when_its_name_fits_another_too() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let follower = bob.start(Cmd::new("tenure").args(["log", "ann", "-f", "--json"]));
    let sees = |what: &str| {
        poll(PATIENCE, what, || {
            assert!(
                follower.is_alive(),
                "{}{}",
                follower.stdout(),
                follower.stderr()
            );
            follower.stdout().contains(what).then_some(())
        });
    };
    sees("session.registered");
    let second = session(&env, "ann");
    take(&second, "wp:other");
    take(&bob, "wp:bobs");
    take(&ann, "wp:anns");
    sees("wp:anns");
    assert!(
        !follower.stdout().contains("wp:other"),
        "{}",
        follower.stdout()
    );
    assert!(
        !follower.stdout().contains("wp:bobs"),
        "{}",
        follower.stdout()
    );
    follower.kill9();
}

#[test]
fn a_wait_says_what_it_saw() {
    let env = env();
    let a = Hooked::start(&env, "claude", "a1", &env.work());
    let name = a.handle();
    let wait = |flags: &[&str]| {
        let line = [&["wait", name.as_str(), "--for", "idle"], flags].concat();
        env.tenure(&line).ok()
    };
    a.event(&[], "Stop", json!({}));
    let said = wait(&[]).stdout;
    assert!(said.starts_with(&format!("{name} is idle for ")), "{said}");
    let json = wait(&["--json"]).json();
    assert_eq!(json["saw"]["state"], "idle", "{json}");
    assert_eq!(json["saw"]["since"], json["session"]["activity_since"]);

    a.event(&[], "PermissionRequest", json!({"tool_name": "Bash"}));
    let said = wait(&[]).stdout;
    assert!(
        said.starts_with(&format!("{name} is waiting for ")),
        "{said}"
    );
    assert_eq!(wait(&["--json"]).json()["saw"]["state"], "waiting");

    a.event(&[], "UserPromptSubmit", json!({}));
    let late = env
        .tenure(&["wait", &name, "--for", "idle", "--timeout", "10ms"])
        .fails(7);
    assert!(late.stderr.contains("busy"), "{late}");

    a.event(&[], "SessionEnd", json!({"reason": "logout"}));
    let said = wait(&[]).stdout;
    assert!(
        said.starts_with(&format!("{name} ended: ")) && said.contains("logout"),
        "{said}"
    );
    let json = wait(&["--json"]).json();
    assert_eq!(json["saw"]["state"], "ended", "{json}");
    assert_eq!(json["saw"]["since"], json["session"]["ended_at"]);

    let dead = session(&env, "bob");
    let name = handle(&dead);
    dead.kill9();
    let said = env.tenure(&["wait", &name]).ok().stdout;
    assert!(said.starts_with(&format!("{name} is dead: ")), "{said}");
}

/// People read the clock on their wall; programs read a moment that means the same everywhere.
#[test]
fn people_are_shown_times_as_their_own_clock_tells_them() {
    let (env, [ann]) = crew(["ann"]);
    take(&ann, "wp:1");
    let at = |zone: &str| {
        let cmd = Cmd::new("tenure").args(["log", "wp:1"]).env("TZ", zone);
        let said = ann.run(cmd).ok().stdout;
        let words = said.split_whitespace().skip(1);
        words
            .take_while(|word| !word.contains('.'))
            .collect::<Vec<&str>>()
            .join(" ")
    };
    let json = asked_by_nobody(&env, &["log", "wp:1"]);
    let moment = json["events"][0]["at"].as_str().expect("a time").to_owned();
    assert!(moment.ends_with('Z') && moment.contains('T'), "{moment}");
    let minute = &moment[14..16];
    for zone in ["UTC0", "<+05>-5", "/nowhere", ""] {
        let shown = at(zone);
        assert!(!shown.contains('T') && shown.len() <= 12, "{zone}: {shown}");
        assert!(shown.contains(&format!(":{minute}")), "{zone}: {shown}");
    }
    let hour = |shown: &str| {
        let clock = shown.rsplit(' ').next().unwrap_or_default();
        clock[..2].parse::<u32>().expect("an hour")
    };
    assert_eq!((hour(&at("UTC0")) + 5) % 24, hour(&at("<+05>-5")));
    assert_eq!(hour(&at("/nowhere")), hour(&at("UTC0")));
}

#[test]
fn events_are_counted_by_kind_and_time() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    let count = |line: &str| {
        let words: Vec<&str> = line.split(' ').chain(["--count"]).collect();
        let people = env
            .tenure(&[&["log", "--kind"], &words[..]].concat())
            .ok()
            .stdout;
        let answer = asked_by_nobody(&env, &[&["log", "--kind"], &words[..]].concat());
        assert_eq!(people.trim(), answer["count"].to_string());
        answer["count"].clone()
    };
    assert_eq!(count("claim.granted"), 2);
    assert_eq!(count("claim.granted --since 1h"), 2);
    assert_eq!(count("claim.granted --since 2100-01-01T00:00:00Z"), 0);
    let (of_item, of_session) = (["log", "wp:1"], ["log", "bob"]);
    for of in [of_item, of_session] {
        let more = ["--kind", "claim.granted", "--count"];
        assert_eq!(
            asked_by_nobody(&env, &[&of[..], &more[..]].concat())["count"],
            1
        );
    }
    assert_eq!(count("claim.replaced"), 0);
    ann.kill9();
    take(&bob, "wp:1");
    assert_eq!(count("claim.replaced"), 1, "a dead holder was replaced");
    let shown = asked_by_nobody(&env, &["log", "--kind", "claim.replaced"]);
    assert_eq!(kinds(&shown), ["claim.replaced"]);
    let twin = |agent: &tenure_testkit::Agent| {
        let pid = agent.pid().to_string();
        let args = [
            "register",
            "--agent",
            "claude",
            "--pid",
            &pid,
            "--native-id",
            "n",
        ];
        agent.tenure(&args).ok();
    };
    let (one, two) = (env.agent("claude"), env.agent("claude"));
    twin(&one);
    assert_eq!(count("session.twin"), 0);
    twin(&two);
    assert_eq!(count("session.twin"), 1);
    env.tenure(&["log", "--kind", "colour"]).fails(2);
    assert_eq!(count("hook.late"), 0);
    let late = json!({"at": 1_700_000_000_000_i64, "agent": "claude", "event": "Stop",
        "kind": "hook_timed_out", "why": "the hook timed out while waiting for the store"});
    let away = json!({"at": 1_700_000_000_000_i64, "agent": "claude", "kind": "store_unavailable"});
    std::fs::write(env.state().join("outages.log"), format!("{late}\n{away}\n")).unwrap();
    assert_eq!(count("hook.late"), 1);
    assert_eq!(count("hook.late --since 1h"), 0);
    let shown = asked_by_nobody(&env, &["log", "--kind", "hook.late"]);
    assert_eq!(shown["events"][0]["mechanism"], "hook claude");
}

const YEAR_MS: i64 = 365 * 24 * 3600 * 1000;

#[test]
fn old_events_go_with_the_next_command_and_a_reader_that_missed_some_is_told() {
    let mut env = env();
    env.set("TENURE_RETENTION", "90d");
    let ann = env.agent("ann");
    register(&ann, "ann", "");
    take(&ann, "wp:1");
    take(&ann, "wp:2");
    let before = run(&ann, 0, "log --limit 0");
    let before = before["events"].as_array().cloned().unwrap_or_default();
    let store = Connection::open(env.state().join("tenure.db")).expect("it is there");
    store
        .execute("UPDATE events SET at = at - ?1", [YEAR_MS])
        .expect("it is ours");
    drop(store);
    take(&ann, "wp:3");
    // The claim itself was recorded after its command had removed what it could.
    let newest = before.last().expect("events")["cursor"]
        .as_u64()
        .unwrap_or_default();
    let after = format!("log --after {}", newest - 1);
    let late = run(&ann, 0, &after);
    let oldest = late["events"][0]["cursor"].clone();
    assert!(oldest.as_u64() > Some(newest), "{late}");
    assert_eq!(late["oldest"], oldest, "{late}");
    assert_eq!(late["events"][0]["key"], "wp:3", "{late}");
    let shown = ann.tenure(&["log", "--after", "1"]).ok();
    let told = format!("events before cursor {oldest} are no longer stored");
    assert!(shown.stdout.contains(&told), "{shown}");
    let whole = run(&ann, 0, "log");
    assert_eq!(whole.get("oldest"), None, "{whole}");
    assert_eq!(whole["events"], json!([late["events"][0].clone()]));
}
