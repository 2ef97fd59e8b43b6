//! Several items in one request: the first free one, or all of them or none.

use crate::words::line::{all_held, handle, holder, refused, run, session, take, text};
use crate::words::{Worker, house};

/// The one key that was granted.
#[track_caller]
fn takes(worker: &Worker, line: &str) -> String {
    text(&run(worker, 0, line)["claim"]["key"])
}

#[test]
fn any_takes_what_a_dead_session_held() {
    let env = house();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    let gone = handle(&ann);
    take(&bob, "wp:1");
    take(&ann, "wp:2");
    ann.kill9();
    let claim = &run(&eve, 0, "claim --any wp:1 wp:2 wp:3")["claim"];
    assert_eq!(claim["key"], "wp:2");
    assert_eq!(claim["taken_from"]["handle"], gone.as_str());
}

#[test]
fn any_says_when_none_is_free_and_whose_the_first_is() {
    let env = house();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| session(&env, name));
    take(&ann, "wp:1");
    take(&bob, "wp:2");
    let error = refused(&eve, 3, "none_free", "claim --any wp:1 wp:2");
    assert!(text(&error["message"]).contains(&handle(&ann)), "{error}");
    assert_eq!(holder(&env, "wp:1"), (Some(handle(&ann)), 1));
}

#[test]
fn any_skips_what_the_session_holds() {
    let env = house();
    let ann = session(&env, "ann");
    for key in ["wp:1", "wp:2", "wp:3"] {
        assert_eq!(takes(&ann, "claim --any wp:1 wp:2 wp:3"), key);
    }
    refused(&ann, 3, "none_free", "claim --any wp:1 wp:2 wp:3");
}

#[test]
fn f_c14_any_again_with_its_request_id_gives_the_same_one() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    take(&bob, "wp:1");
    let ask = "claim --any wp:1 wp:2 wp:3 --request-id r1";
    let first = run(&ann, 0, ask);
    run(&bob, 0, "release wp:1");
    let again = run(&ann, 0, ask);
    for part in ["key", "epoch", "already_held", "acquired_at"] {
        assert_eq!(first["claim"][part], again["claim"][part], "{part}");
    }
    assert_eq!(all_held(&env), ["wp:2"]);
}

#[test]
fn all_keeps_what_the_session_holds_and_adds_the_rest() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    take(&ann, "wp:1");
    let claims = run(&ann, 0, "claim --all wp:1 wp:2")["claims"].clone();
    assert_eq!(claims[0]["already_held"], true);
    assert_eq!(claims[1]["already_held"], false);
    take(&bob, "wp:3");
    run(&bob, 0, "release wp:3 --done");
    refused(&ann, 1, "done", "claim --all wp:1 wp:3 wp:4");
    assert_eq!(holder(&env, "wp:4"), (None, 0));
}

#[test]
fn quiet_is_asked_for_only_after_a_death() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    env.leave_behind(&[4_711]);
    run(&ann, 0, "claim wp:1 --require-quiet");
    refused(&bob, 3, "held", "claim wp:1 --require-quiet");
    run(&ann, 0, "release wp:1");
    let claim = run(&bob, 0, "claim wp:1 --require-quiet")["claim"].clone();
    assert_eq!(claim["taken_from"], serde_json::Value::Null);
    bob.kill9();
    refused(&ann, 3, "survivors", "claim wp:1 --require-quiet");
}

#[test]
fn any_finds_the_one_free_item_among_10_000() {
    let env = house();
    let (ann, bob) = (session(&env, "ann"), session(&env, "bob"));
    let keys = |count: usize| -> Vec<String> {
        (0..count)
            .map(|number| format!("wp:many/{number}"))
            .collect()
    };
    run(&ann, 0, &format!("claim --all {}", keys(9_999).join(" ")));
    let any = |count: usize| format!("claim --any {}", keys(count).join(" "));
    assert_eq!(takes(&bob, &any(10_000)), "wp:many/9999");
    refused(&bob, 3, "none_free", &any(9_999));
}
