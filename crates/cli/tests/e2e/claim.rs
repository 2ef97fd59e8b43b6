//! Claims from the outside: who gets an item, who keeps it, who lost it and how that is told.

use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_testkit::{Agent, Env, Output, add_worktree, poll, scratch_git};

use crate::env;
use crate::support::line::{
    SOON, crew, events, handle, refused, register, run, session, take, text,
};

/// An item as anybody sees it, whose holder and epoch must be these.
#[track_caller]
fn stands(agent: &Agent, key: &str, holder: Option<&str>, epoch: u64) {
    let claim = &run(agent, 0, &format!("why {key}"))["claim"];
    assert_eq!(claim["holder"]["handle"].as_str(), holder, "{claim}");
    assert_eq!(claim["epoch"], epoch, "{claim}");
}

#[track_caller]
fn told(answer: &Value) -> &Vec<Value> {
    answer["notices"].as_array().expect("notices are a list")
}

/// Every timer of tenure is 50 ms.
fn hasty() -> Env {
    let mut env = env();
    for name in ["TENURE_LEASE", "TENURE_LOCK_DELAY", "TENURE_STALLED_AFTER"] {
        env.set(name, "50ms");
    }
    env
}

/// Lets several times every timer of [`hasty`] pass.
fn outlast_every_timer() {
    let end = Instant::now() + Duration::from_millis(400);
    poll(SOON, "the timers are over", || {
        (Instant::now() > end).then_some(())
    });
}

#[test]
fn f_c02_the_first_claim_after_kill9_succeeds_with_proof_and_place() {
    let env = env();
    let repo = env.dir().join("repo");
    let place = repo.to_str().unwrap();
    scratch_git(&repo, None);
    let (ann, bob) = (env.agent("ann"), session(&env, "bob"));
    register(&ann, "ann", &format!("--dir {place}"));
    let previous = handle(&ann);
    assert_eq!(take(&ann, "wp:42"), 1);
    ann.kill9();
    let claim = &run(&bob, 0, "claim wp:42")["claim"];
    assert_eq!(claim["epoch"], 2);
    let from = &claim["taken_from"];
    assert_eq!(from["handle"], previous.as_str());
    assert_eq!(from["by"], "death");
    assert!(
        text(&from["proof"]).contains(&ann.pid().to_string()),
        "{from}"
    );
    assert_eq!(from["dir"], place);
    assert_eq!(from["branch"], "main");
}

#[test]
fn f_c05_a_stopped_holder_outlasts_every_timer_and_loses_only_by_takeover() {
    let env = hasty();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let (slow, taker) = (handle(&ann), handle(&bob));
    take(&ann, "wp:42");
    ann.stop();
    outlast_every_timer();
    let error = refused(&bob, 3, "held", "claim wp:42");
    assert_eq!(error["holder"]["handle"], slow.as_str());
    assert_eq!(error["holder"]["state"], "live");
    bob.tenure(&["takeover", "wp:42", "--reason", " "]).fails(2);
    stands(&bob, "wp:42", Some(&slow), 1);
    let claim = &run(&bob, 0, "takeover wp:42 --reason stuck")["claim"];
    assert_eq!(claim["epoch"], 2);
    assert_eq!(claim["taken_from"]["handle"], slow.as_str());
    let log = events(&bob, "wp:42");
    let taken = log.iter().find(|event| event["kind"] == "claim.taken_over");
    let taken = taken.expect("the takeover is logged");
    assert_eq!(taken["mechanism"], "takeover");
    assert_eq!(taken["reason"], "stuck");
    ann.cont();
    assert_eq!(refused(&ann, 5, "lost", "guard wp:42")["lost_epoch"], 1);
    refused(&ann, 5, "lost", "release wp:42");
    refused(&ann, 5, "lost", &format!("handoff wp:42 --to {taker}"));
    stands(&bob, "wp:42", Some(&taker), 2);
}

#[test]
fn f_c07_the_loser_is_told_exactly_once_at_its_next_call() {
    let (_env, [ann, bob]) = crew(["ann", "bob"]);
    for key in ["wp:text", "wp:json"] {
        take(&ann, key);
    }
    let notices = |said: &Output| {
        let lines = said.stderr.lines();
        lines.filter(|line| line.starts_with("notice: ")).count()
    };
    run(&bob, 0, "takeover wp:text --reason because-of-text");
    let first = ann.tenure(&["guard", "wp:text"]).fails(5);
    assert_eq!(notices(&first), 1, "{first}");
    assert!(first.stderr.contains("because-of-text"), "{first}");
    assert_eq!(notices(&ann.tenure(&["guard", "wp:text"]).fails(5)), 0);

    run(&bob, 0, "takeover wp:json --reason because-of-json");
    let first = run(&ann, 0, "whoami");
    let [notice] = &told(&first)[..] else {
        panic!("one notice: {first}")
    };
    assert_eq!(notice["kind"], "lost");
    assert_eq!(notice["key"], "wp:json");
    assert_eq!(notice["epoch"], 2);
    assert!(
        text(&notice["message"]).contains("because-of-json"),
        "{notice}"
    );
    assert!(told(&run(&ann, 0, "whoami")).is_empty());
    assert!(told(&run(&bob, 0, "whoami")).is_empty());
}

#[test]
fn f_c20_short_keys_are_completed_from_the_remote_in_every_worktree() {
    let env = env();
    let (repo, linked) = (env.dir().join("repo"), env.dir().join("linked"));
    scratch_git(&repo, Some("git@github.com:acme/web.git"));
    add_worktree(&repo, &linked, "feature");
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let whole = "issue:acme/web#42";
    let won = ann.tenure_in(&repo, &["claim", "#42", "--json"]).ok();
    assert_eq!(won.json()["claim"]["key"], whole);
    for dir in [&repo, &linked] {
        for typed in ["#42", "issue:42", "issue:#42", whole] {
            let said = bob.tenure_in(dir, &["claim", typed, "--json"]).fails(3);
            assert_eq!(said.json()["error"]["key"], whole, "{typed}");
        }
    }
    let said = ann.tenure_in(&linked, &["release", "issue:42"]).ok();
    assert!(said.stdout.contains(whole), "{said}");
    let other = bob.tenure_in(&linked, &["claim", "pr:42", "--json"]).ok();
    assert_eq!(other.json()["claim"]["key"], "pr:acme/web#42");
    let outside = bob.tenure(&["claim", "#42"]).fails(2);
    assert!(outside.stderr.contains("issue:OWNER/NAME#42"), "{outside}");
}

#[test]
fn f_c17_only_a_registered_session_can_claim_and_the_hint_makes_it_one() {
    let env = env();
    env.tenure(&["claim", "wp:42"]).fails(4);
    let claude = env.agent("claude");
    let error = refused(&claude, 4, "no_session", "claim wp:42");
    let hint = &error["hints"][0];
    let mut command = format!("tenure {}", text(&hint["verb"]));
    for word in hint["args"].as_array().expect("words") {
        command.push_str(&format!(" {}", text(word)));
    }
    claude.tenure_shell(&command).ok();
    assert_eq!(take(&claude, "wp:42"), 1);
}

/// Who says what, the code, and one part of the answer; ANN and BOB are handles.
const CALLS: &str = r#"
    ann | claim wp:1 --note why                         | 0 | /claim/note "why"
    ann | claim wp:1                                    | 0 | /claim/already_held true
    ann | claim wp:1 --once                             | 1 | /error/kind "already_held"
    bob | guard wp:1                                    | 3 | /error/kind "held"
    ann | release wp:1 --epoch 2                        | 5 | /error/kind "no_such_epoch"
    ann | release wp:1 --done                           | 0 | /claim/state "done"
    ann | claim wp:1                                    | 1 | /error/kind "done"
    ann | claim wp:1 --reopen --request-id r1           | 0 | /claim/epoch 2
    ann | claim wp:1 --request-id r1                    | 0 | /claim/already_held false
    ann | release wp:1 --epoch 2                        | 0 | /claim/state "free"
    ann | claim wp:1                                    | 0 | /claim/epoch 3
    ann | handoff wp:1 --to BOB --epoch 3 --note x      | 0 | /claim/holder/handle "BOB"
    bob | guard wp:1 --epoch 4                          | 0 | /claim/note "x"
    ann | takeover wp:1 --from ANN --reason x           | 3 | /error/kind "held"
    ann | takeover wp:1 --epoch 3 --reason x            | 3 | /error/kind "held"
    ann | takeover wp:1 --from BOB --reason x           | 0 | /claim/taken_from/handle "BOB"
    bob | guard wp:1                                    | 5 | /error/lost_epoch 4
    bob | release wp:1 --session ANN                    | 2 | /error/kind "reason_needed"
    bob | release wp:1 --session ANN --reason asleep    | 0 | /claim/state "free"
    ann | guard wp:1                                    | 1 | /error/kind "free"
    ann | renew                                         | 0 | /session/handle "ANN"
    ann | renew --for 2h                                | 2 | /error/kind "usage"
    ann | renew --for 4h1s --reason build               | 2 | /error/kind "usage"
    ann | renew --for 4h --reason build                 | 0 | /session/handle "ANN"
"#;

/// What they mean is tested with the service.
#[test]
fn every_verb_of_claims_and_each_of_its_flags_reaches_the_service() {
    let (env, [ann, bob]) = crew(["ann", "bob"]);
    let calls = CALLS.replace("ANN", &handle(&ann));
    let calls = calls.replace("BOB", &handle(&bob));
    for call in calls.trim().lines() {
        let parts: Vec<&str> = call.split('|').map(str::trim).collect();
        let [who, line, code, part] = parts[..] else {
            panic!("{call}")
        };
        let who = if who == "ann" { &ann } else { &bob };
        let answer = run(who, code.parse().expect("a code"), line);
        let (place, value) = part.split_once(' ').expect("a place and a value");
        let value: Value = serde_json::from_str(value).expect("JSON");
        assert_eq!(answer.pointer(place), Some(&value), "{line}: {answer:#}");
    }
    let log = events(&bob, "wp:1");
    let last = log.last().expect("it is in the log");
    assert_eq!(last["actor"]["handle"], handle(&bob).as_str());
    assert_eq!(last["reason"], "asleep");
    let nobody = env.tenure(&["guard", "wp:1", "--json"]).fails(4).json();
    assert_eq!(nobody["error"]["kind"], "no_session");
}
