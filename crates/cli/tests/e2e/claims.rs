//! Claims from the outside: who gets an item, who keeps it, who lost it and how that is told.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::{Agent, Env, Output, add_worktree, poll, scratch_git};

use crate::env;
use crate::support::line::{SOON, events, handle, refused, register, run, session, take, text};

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
    let former = handle(&ann);
    assert_eq!(take(&ann, "wp:42"), 1);
    ann.kill9();
    let claim = &run(&bob, 0, "claim wp:42")["claim"];
    assert_eq!(claim["epoch"], 2);
    let from = &claim["taken_from"];
    assert_eq!(from["handle"], former.as_str());
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
    let taken = log.iter().find(|event| event["kind"] == "claim.taken");
    let taken = taken.expect("the takeover is on record");
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
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
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
fn a_guard_answers_yes_free_held_nobody_and_lost() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    refused(&ann, 1, "free", "guard wp:42");
    take(&ann, "wp:42");
    run(&ann, 0, "guard wp:42");
    run(&ann, 0, "guard wp:42 --epoch 1");
    refused(&bob, 3, "held", "guard wp:42");
    let nobody = env.tenure(&["guard", "wp:42", "--json"]).fails(4).json();
    assert_eq!(nobody["error"]["kind"], "nobody");
    run(&bob, 0, "takeover wp:42 --reason x");
    refused(&ann, 5, "lost", "guard wp:42");
}

#[test]
fn a_declared_silence_takes_a_reason_and_lasts_at_most_four_hours() {
    let env = env();
    let ann = session(&env, "ann");
    let lease = || text(&run(&ann, 0, "whoami")["session"]["lease_until"]);
    let before = lease();
    refused(&ann, 2, "usage", "renew --for 2h");
    refused(&ann, 2, "usage", "renew --for 4h1s --reason build");
    assert!(
        events(&ann, "")
            .iter()
            .all(|event| event["kind"] != "lease.renewed")
    );
    run(&ann, 0, "renew --for 4h --reason build");
    let after = lease();
    assert!(after > before, "{after} is not later than {before}");
    run(&ann, 0, "renew");
    assert_eq!(
        lease()[..16],
        after[..16],
        "a plain renewal does not shorten it"
    );
    let log = events(&ann, "");
    let mut renewed = log.iter().filter(|event| event["kind"] == "lease.renewed");
    assert_eq!(renewed.next().expect("it is on record")["reason"], "build");
    assert_eq!(renewed.next(), None);
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
    let error = refused(&claude, 4, "nobody", "claim wp:42");
    let hint = &error["hints"][0];
    let mut command = format!("tenure {}", text(&hint["verb"]));
    for word in hint["args"].as_array().expect("words") {
        command.push_str(&format!(" {}", text(word)));
    }
    claude.tenure_shell(&command).ok();
    assert_eq!(take(&claude, "wp:42"), 1);
}

/// One call of each verb with each of its flags; what they mean is tested with the service.
#[test]
fn every_verb_of_claims_and_each_of_its_flags_reaches_the_service() {
    let env = env();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let (one, two) = (handle(&ann), handle(&bob));
    let to = format!("handoff wp:1 --to {two} --epoch 3 --note tests");
    let from = format!("takeover wp:1 --from {two} --epoch 4 --reason x --note more");
    let wrong = format!("takeover wp:1 --from {one} --reason x");
    let other = format!("release wp:1 --session {one} --reason asleep");
    for (who, code, line, part, value) in [
        (
            &ann,
            0,
            "claim wp:1 --note why",
            "/claim/note",
            json!("why"),
        ),
        (&ann, 0, "claim wp:1", "/claim/already_held", json!(true)),
        (
            &ann,
            1,
            "claim wp:1 --once",
            "/error/kind",
            json!("already_held"),
        ),
        (
            &ann,
            5,
            "release wp:1 --epoch 2",
            "/error/kind",
            json!("no_such_epoch"),
        ),
        (
            &ann,
            0,
            "release wp:1 --done",
            "/claim/state",
            json!("done"),
        ),
        (&ann, 1, "claim wp:1", "/error/kind", json!("done")),
        (
            &ann,
            0,
            "claim wp:1 --reopen --request-id r1",
            "/claim/epoch",
            json!(2),
        ),
        (
            &ann,
            0,
            "claim wp:1 --request-id r1",
            "/claim/already_held",
            json!(false),
        ),
        (
            &ann,
            0,
            "release wp:1 --epoch 2",
            "/claim/state",
            json!("free"),
        ),
        (&ann, 0, "claim wp:1", "/claim/epoch", json!(3)),
        (&ann, 0, &to, "/claim/holder/handle", json!(two)),
        (
            &bob,
            0,
            "guard wp:1 --epoch 4",
            "/claim/note",
            json!("tests"),
        ),
        (&ann, 3, &wrong, "/error/kind", json!("held")),
        (&ann, 0, &from, "/claim/taken_from/handle", json!(two)),
        (&bob, 5, "guard wp:1", "/error/lost_epoch", json!(4)),
        (&bob, 0, &other, "/claim/state", json!("free")),
        (&ann, 1, "guard wp:1", "/error/kind", json!("free")),
        (&ann, 0, "renew", "/session/handle", json!(one)),
    ] {
        let answer = run(who, code, line);
        assert_eq!(answer.pointer(part), Some(&value), "{line}: {answer:#}");
    }
    let log = events(&bob, "wp:1");
    let last = log.last().expect("it is in the log");
    assert_eq!(last["actor"]["handle"], two.as_str());
    assert_eq!(last["reason"], "asleep");
}
