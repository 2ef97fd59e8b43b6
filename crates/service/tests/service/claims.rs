//! Claims: who gets an item, who keeps it, who lost it and how that is reported.

use serde_json::{Value, json};

use crate::words::house;
use crate::words::line::{
    events, handle, refused, register, run, session, stands, take, text, told,
};
use crate::{LEASE, LOCK_DELAY};

#[test]
fn f_c05_a_dead_holder_that_resumes_is_refused_what_others_took() {
    let env = house();
    let (ann, bob) = (env.agent("ann"), session(&env, "bob"));
    register(&ann, "ann", "--native-id n1");
    for key in ["wp:taken", "wp:left"] {
        take(&ann, key);
    }
    ann.kill9();
    take(&bob, "wp:taken");
    let again = env.agent("ann");
    let back = register(&again, "ann", "--native-id n1");
    assert_eq!(back["session"]["registered"], "resumed");
    assert_eq!(back["regranted"], json!([{"key": "wp:left", "epoch": 2}]));
    assert_eq!(back["taken"].as_array().map(Vec::len), Some(1));
    refused(&again, 5, "lost", "guard wp:taken");
    refused(&again, 5, "lost", "guard wp:left --epoch 1");
    run(&again, 0, "guard wp:left --epoch 2");
}

#[test]
fn claiming_what_one_holds_changes_nothing_and_once_refuses_it() {
    let env = house();
    let ann = session(&env, "ann");
    assert_eq!(take(&ann, "wp:42"), 1);
    let again = &run(&ann, 0, "claim wp:42")["claim"];
    assert_eq!(again["epoch"], 1);
    assert_eq!(again["already_held"], true);
    refused(&ann, 1, "already_held", "claim wp:42 --once");
    assert_eq!(events(&ann, "wp:42").len(), 1);
}

#[test]
fn f_c19_a_finished_item_is_refused_until_it_is_reopened() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    take(&ann, "wp:42");
    run(&ann, 0, "release wp:42 --done");
    for who in [&ann, &bob] {
        refused(who, 1, "done", "claim wp:42");
        refused(who, 1, "done", "guard wp:42");
        refused(who, 1, "done", "takeover wp:42 --reason x");
    }
    assert_eq!(run(&bob, 0, "claim wp:42 --reopen")["claim"]["epoch"], 2);
    run(&bob, 0, "release wp:42");
    assert_eq!(take(&ann, "wp:42"), 3);
}

#[test]
fn f_c14_a_retry_gets_the_same_answer_and_none_after_a_loss() {
    let env = house();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    take(&ann, "wp:42");
    ann.kill9();
    let first = run(&bob, 0, "claim wp:42 --request-id r1");
    assert!(first["claim"]["taken_from"].is_object(), "{first}");
    for retry in [
        "claim wp:42 --request-id r1",
        "claim wp:42 --request-id r1 --once",
    ] {
        let again = run(&bob, 0, retry);
        for part in ["key", "epoch", "already_held", "taken_from", "acquired_at"] {
            assert_eq!(
                first["claim"][part], again["claim"][part],
                "{retry}: {part}"
            );
        }
    }
    refused(
        &bob,
        1,
        "already_held",
        "claim wp:42 --request-id r2 --once",
    );
    let log = events(&bob, "wp:42");
    let grants = log.iter().filter(|event| event["kind"] == "claim.granted");
    assert_eq!(grants.count(), 2);
    run(&eve, 0, "takeover wp:42 --reason test");
    refused(&bob, 5, "lost", "claim wp:42 --request-id r1");
    refused(&bob, 3, "held", "claim wp:42");
    stands(&eve, "wp:42", Some(&handle(&eve)), 3);
}

#[test]
fn f_c08_a_release_frees_its_own_item_of_its_own_holder_only() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    for key in ["wp:1", "wp:2"] {
        take(&ann, key);
    }
    refused(&bob, 3, "held", "release wp:1");
    stands(&bob, "wp:1", Some(&handle(&ann)), 1);
    run(&ann, 0, "release wp:1");
    stands(&bob, "wp:2", Some(&handle(&ann)), 1);
    refused(&ann, 1, "free", "release wp:1");
    assert_eq!(take(&bob, "wp:1"), 2);
    refused(&ann, 3, "held", "release wp:1");
    stands(&ann, "wp:1", Some(&handle(&bob)), 2);
}

#[test]
fn f_c10_an_item_and_its_part_are_independent() {
    let env = house();
    let ann = session(&env, "ann");
    let keys = ["wp:041", "wp:041/WP03"];
    for key in keys {
        take(&ann, key);
    }
    for (given, kept) in [(keys[1], keys[0]), (keys[0], keys[1])] {
        run(&ann, 0, &format!("release {given}"));
        run(&ann, 0, &format!("guard {kept}"));
        refused(&ann, 1, "free", &format!("guard {given}"));
        take(&ann, given);
    }
}

#[test]
fn f_c11_freeing_a_claim_does_not_touch_its_holders_heartbeat() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let who = handle(&ann);
    for key in ["wp:1", "wp:2"] {
        take(&ann, key);
    }
    let seen = || text(&run(&bob, 0, &format!("show {who}"))["session"]["last_seen_at"]);
    let before = seen();
    env.pass(2 * (LEASE + LOCK_DELAY));
    run(&bob, 0, &format!("release wp:1 --session {who} --reason x"));
    assert_eq!(seen(), before, "after a release on its behalf");
    ann.kill9();
    assert_eq!(take(&bob, "wp:2"), 2);
    assert_eq!(seen(), before, "after its death was recorded");
}

#[test]
fn f_c11_nobody_can_renew_the_dead() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let who = handle(&ann);
    let seen = || text(&run(&bob, 0, &format!("show {who}"))["session"]["last_seen_at"]);
    let before = seen();
    ann.kill9();
    refused(
        &bob,
        1,
        "not_live",
        &format!("renew --session {who} --reason x"),
    );
    assert_eq!(seen(), before);
}

#[test]
fn nothing_is_granted_to_a_session_that_is_dead() {
    let env = house();
    let (ann, bob, eve) = (
        session(&env, "ann"),
        session(&env, "bob"),
        session(&env, "eve"),
    );
    let who = handle(&ann);
    take(&eve, "wp:held");
    ann.kill9();
    let act = |line: &str| format!("{line} --session {who} --reason x");
    refused(&bob, 1, "not_live", &act("claim wp:42"));
    stands(&bob, "wp:42", None, 0);
    refused(&bob, 1, "not_live", &act("takeover wp:held"));
    stands(&bob, "wp:held", Some(&handle(&eve)), 1);
}

#[test]
fn a_handoff_goes_to_the_living_and_tells_them() {
    let env = house();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    let (heir, gone) = (handle(&bob), handle(&eve));
    take(&ann, "wp:42");
    eve.kill9();
    refused(&ann, 4, "no_such_session", "handoff wp:42 --to nobody-zzzz");
    refused(&ann, 1, "not_live", &format!("handoff wp:42 --to {gone}"));
    stands(&ann, "wp:42", Some(&handle(&ann)), 1);
    let given = run(&ann, 0, &format!("handoff wp:42 --to {heir} --note tests"));
    assert_eq!(given["claim"]["epoch"], 2);
    let first = run(&bob, 0, "guard wp:42 --epoch 2");
    assert_eq!(first["claim"]["note"], "tests");
    assert_eq!(told(&first).len(), 1, "{first}");
    assert_eq!(first["notices"][0]["kind"], "handed");
    assert!(told(&run(&bob, 0, "guard wp:42")).is_empty());
    refused(&ann, 3, "held", "guard wp:42");
}

#[test]
fn f_c18_a_takeover_that_saw_another_epoch_changes_nothing() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    take(&ann, "wp:42");
    run(&ann, 0, "release wp:42");
    take(&ann, "wp:42");
    for stale in [1, 3] {
        let ask = format!("takeover wp:42 --epoch {stale} --reason x");
        assert_eq!(refused(&bob, 3, "held", &ask)["epoch"], 2);
    }
    stands(&bob, "wp:42", Some(&handle(&ann)), 2);
    assert!(told(&run(&ann, 0, "guard wp:42")).is_empty());
    run(&bob, 0, "takeover wp:42 --epoch 2 --reason x");
}

#[test]
fn f_c03_a_takeover_from_the_dead_does_not_hit_the_holder_of_now() {
    let env = house();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    let (previous, now) = (handle(&ann), handle(&bob));
    take(&ann, "wp:42");
    ann.kill9();
    take(&bob, "wp:42");
    let ask = format!("takeover wp:42 --from {previous} --reason dead");
    assert_eq!(
        refused(&eve, 3, "held", &ask)["holder"]["handle"],
        now.as_str()
    );
    stands(&eve, "wp:42", Some(&now), 2);
    assert!(told(&run(&bob, 0, "guard wp:42 --epoch 2")).is_empty());
}

#[test]
fn there_is_nothing_to_take_over_of_a_free_item() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    refused(&bob, 1, "free", "takeover wp:42 --reason x");
    take(&ann, "wp:42");
    run(&ann, 0, "release wp:42");
    refused(&bob, 1, "free", "takeover wp:42 --reason x");
    stands(&bob, "wp:42", None, 1);
}

#[test]
fn an_older_epoch_is_lost_and_one_that_was_never_granted_is_invalid() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let heir = handle(&bob);
    take(&ann, "wp:42");
    run(&ann, 0, "release wp:42");
    assert_eq!(take(&ann, "wp:42"), 2);
    for act in [
        "guard wp:42",
        "release wp:42",
        &format!("handoff wp:42 --to {heir}"),
    ] {
        refused(&ann, 5, "lost", &format!("{act} --epoch 1"));
        refused(&ann, 5, "no_such_epoch", &format!("{act} --epoch 3"));
    }
    stands(&ann, "wp:42", Some(&handle(&ann)), 2);
    run(&ann, 0, "release wp:42 --epoch 2");
}

#[test]
fn f_c21_a_parents_claim_covers_its_children_but_no_twin() {
    let env = house();
    let ann = env.agent("ann");
    register(&ann, "ann", "--native-id n1");
    let (child, twin) = (ann.nest("kid"), ann.nest("twin"));
    register(&child, "kid", "");
    let double = register(&twin, "ann", "--native-id n1");
    assert_eq!(double["session"]["registered"], "twin");
    take(&ann, "wp:42");
    let yes = run(&child, 0, "guard wp:42");
    assert_eq!(yes["claim"]["via"], handle(&ann).as_str());
    refused(&child, 3, "held", "claim wp:42");
    refused(&twin, 3, "held", "guard wp:42");
    assert_eq!(run(&ann, 0, "guard wp:42")["claim"]["via"], Value::Null);
    take(&child, "wp:kid");
    refused(&ann, 3, "held", "guard wp:kid");
}

#[test]
fn f_c16_every_end_of_a_claim_is_on_record_with_mechanism_and_evidence() {
    let env = house();
    let [ann, bob, eve, plain] = ["ann", "bob", "eve", "plain"].map(|name| env.agent(name));
    for (agent, name) in [(&ann, "ann"), (&bob, "bob"), (&eve, "eve")] {
        register(agent, name, "");
    }
    for key in ["wp:release", "wp:done", "wp:handoff", "wp:taken", "wp:end"] {
        take(&ann, key);
    }
    take(&eve, "wp:death");
    let ghost = run(&plain, 0, "register --unverified --agent cron");
    let token = text(&ghost["token"]);
    let as_ghost = [("TENURE_SESSION", Some(token.as_str()))];
    plain.tenure_env(&as_ghost, &["claim", "wp:lease"]).ok();
    run(&ann, 0, "release wp:release");
    run(&ann, 0, "release wp:done --done");
    run(
        &ann,
        0,
        &format!("handoff wp:handoff --to {}", handle(&bob)),
    );
    run(&bob, 0, "takeover wp:taken --reason test");
    run(&ann, 0, "end");
    eve.kill9();
    take(&bob, "wp:death");
    env.pass(LEASE + LOCK_DELAY);
    take(&bob, "wp:lease");
    for how in [
        "release", "done", "handoff", "taken", "end", "death", "lease",
    ] {
        let log = events(&bob, &format!("wp:{how}"));
        let grant = |event: &&Value| {
            let grants = ["claim.granted", "claim.taken_over", "claim.replaced"];
            grants.contains(&text(&event["kind"]).as_str())
        };
        let ends: Vec<&Value> = log.iter().filter(|event| !grant(event)).collect();
        assert_eq!(ends.len(), 1, "{how}: {log:?}");
        assert_eq!(ends[0]["mechanism"], how);
        assert_eq!(ends[0]["epoch"], 1);
        assert!(!text(&ends[0]["evidence"]).is_empty(), "{}", ends[0]);
        assert!(ends[0]["session"]["handle"].is_string(), "{}", ends[0]);
    }
}

#[test]
fn f_c16_a_release_on_anothers_behalf_says_who_did_it_and_why() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    take(&ann, "wp:42");
    let ask = format!("release wp:42 --session {} --reason asleep", handle(&ann));
    run(&bob, 0, &ask);
    let log = events(&bob, "wp:42");
    let event = log.last().expect("it is logged");
    assert_eq!(event["kind"], "claim.released");
    assert_eq!(event["actor"]["handle"], handle(&bob).as_str());
    assert_eq!(event["reason"], "asleep");
    assert!(!text(&event["evidence"]).contains("own act"), "{event}");
}

#[test]
fn a_guard_answers_yes_free_held_nobody_and_lost() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    refused(&ann, 1, "free", "guard wp:42");
    take(&ann, "wp:42");
    run(&ann, 0, "guard wp:42");
    run(&ann, 0, "guard wp:42 --epoch 1");
    refused(&bob, 3, "held", "guard wp:42");
    let nobody = env.tenure(&["guard", "wp:42"]).fails(4).json();
    assert_eq!(nobody["error"]["kind"], "no_session");
    run(&bob, 0, "takeover wp:42 --reason x");
    refused(&ann, 5, "lost", "guard wp:42");
}

#[test]
fn a_declared_silence_takes_a_reason_and_lasts_at_most_four_hours() {
    let env = house();
    let ann = session(&env, "ann");
    let lease = || text(&run(&ann, 0, "whoami")["session"]["lease_until"]);
    let renewed = || {
        let mut log = events(&ann, "");
        log.retain(|event| event["kind"] == "lease.renewed");
        log
    };
    let before = lease();
    refused(&ann, 2, "usage", "renew --for 2h");
    refused(&ann, 2, "usage", "renew --for 4h1s --reason build");
    assert!(renewed().is_empty());
    run(&ann, 0, "renew --for 4h --reason build");
    let after = lease();
    assert!(after > before, "{after} is not later than {before}");
    run(&ann, 0, "renew");
    assert_eq!(lease(), after, "a plain renewal does not shorten it");
    let [one] = &renewed()[..] else {
        panic!("one is in the log")
    };
    assert_eq!(one["reason"], "build");
}

#[test]
fn an_epoch_that_was_never_granted_is_never_yours() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let to = format!("handoff wp:1 --to {} --epoch 9", handle(&bob));
    take(&ann, "wp:1");
    for act in ["guard wp:1 --epoch 9", "release wp:1 --epoch 9", &to] {
        refused(&ann, 5, "no_such_epoch", act);
        refused(&bob, 3, "held", act);
    }
    run(&ann, 0, "release wp:1");
    refused(&ann, 5, "no_such_epoch", "guard wp:1 --epoch 9");
    refused(&ann, 1, "free", "guard wp:1 --epoch 1");
    // A takeover was never about a claim of one's own.
    take(&ann, "wp:1");
    refused(&bob, 3, "held", "takeover wp:1 --reason stuck --epoch 9");
}

#[test]
fn only_the_session_itself_is_told() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    take(&ann, "wp:1");
    run(&bob, 0, "takeover wp:1 --reason test");
    let line = format!("register --agent ann --pid {}", ann.pid());
    assert!(
        told(&run(&bob, 0, &line)).is_empty(),
        "registered by another"
    );
    let asked = run(&bob, 0, "whoami --session ann");
    assert!(told(&asked).is_empty(), "asked for by another");
    let own = run(&ann, 0, "whoami");
    assert_eq!(told(&own).len(), 1, "{own}");
    assert_eq!(told(&own)[0]["kind"], "lost");
}
