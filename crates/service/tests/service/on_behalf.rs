//! Acting for another session: one rule for every act.

use std::time::Duration;

use serde_json::{Value, json};

use crate::words::answer::{ask, asked_by_nobody, count, events, held, refused, register, text};
use crate::words::{House, Worker, house};

const MINUTE: Duration = Duration::from_secs(60);

struct Two {
    env: House,
    me: Worker,
    other: Worker,
    mine: Value,
    theirs: Value,
}

/// Two sessions that have nothing to do with each other.
fn two() -> Two {
    let env = house();
    let (me, other) = (env.agent("claude"), env.agent("codex"));
    let (mine, theirs) = (register(&me, &[]), register(&other, &[]));
    Two {
        env,
        me,
        other,
        mine,
        theirs,
    }
}

impl Two {
    fn handle(&self) -> &str {
        text(&self.theirs, "/session/handle")
    }

    fn theirs_now(&self) -> Value {
        asked_by_nobody(&self.env, &["show", self.handle()])["session"].clone()
    }

    fn lease(&self) -> String {
        text(&self.theirs_now(), "/lease_until").to_owned()
    }
}

#[test]
fn acting_for_a_stranger_takes_a_reason_and_is_recorded_with_the_actor() {
    let env = house();
    let (a, b) = (env.agent("claude"), env.agent("claude"));
    let actor = register(&a, &[]);
    let other = register(&b, &[]);
    let handle = text(&other, "/session/handle");
    let error = refused(&a, 2, &["claim", "wp:1", "--session", handle]);
    assert_eq!(error["kind"], "reason_needed");
    let reason = ["--session", handle, "--reason", "it asked me to"];
    let claim = ask(&a, &[&["claim", "wp:1"], &reason[..]].concat());
    assert_eq!(claim["claim"]["holder"]["id"], other["session"]["id"]);
    ask(&a, &[&["end"], &reason[..]].concat());
    for kind in ["claim.granted", "session.ended"] {
        let event = &events(&env, kind)[0];
        assert_eq!(event["session"]["id"], other["session"]["id"], "{kind}");
        assert_eq!(event["actor"]["id"], actor["session"]["id"], "{kind}");
        assert_eq!(event["reason"], "it asked me to", "{kind}");
    }
    // Reading needs none.
    ask(&a, &["whoami", "--session", handle]);
}

#[test]
fn a_parent_acts_for_its_child_without_a_reason_and_a_child_not_for_its_parent() {
    let env = house();
    let a = env.agent("claude");
    let parent = register(&a, &[]);
    let child = a.nest("codex");
    let grandchild = child.nest("gemini");
    let born = register(&child, &[]);
    let youngest = register(&grandchild, &[]);
    for one in [&born, &youngest] {
        let key = format!("wp:{}", text(one, "/session/agent"));
        ask(&a, &["claim", &key, "--session", text(one, "/session/id")]);
        let event = events(&env, "claim.granted").pop().unwrap();
        assert_eq!(event["session"]["id"], one["session"]["id"]);
        assert_eq!(event["actor"]["id"], parent["session"]["id"]);
    }
    refused(
        &child,
        2,
        &["claim", "wp:2", "--session", text(&parent, "/session/id")],
    );
    ask(
        &child,
        &["claim", "wp:3", "--session", text(&born, "/session/handle")],
    );
}

#[test]
fn registering_the_process_of_another_session_takes_a_reason_and_names_the_actor() {
    let two = two();
    ask(&two.me, &["tell", two.handle(), "for its ears only"]);
    let pid = two.other.pid().to_string();
    let dir = "/elsewhere".to_owned();
    let (before, lease) = (two.theirs_now(), two.lease());
    for change in [
        &["--title", "mine now"][..],
        &["--dir", &dir],
        &["--meta", "a=b"],
        &["--native-id", "n1"],
    ] {
        let args = [&["register", "--pid", &pid], change].concat();
        let error = refused(&two.me, 2, &args);
        assert_eq!(error["kind"], "reason_needed", "{change:?}");
        assert_eq!(two.theirs_now(), before, "{change:?}");
    }
    let why = ["--title", "renamed", "--reason", "the plan changed"];
    let args = [&["register", "--pid", &pid], &why[..]].concat();
    let error = refused(&two.me, 6, &args);
    assert_eq!(
        error["kind"], "invalid",
        "a title is not even changed with a reason"
    );
    assert_eq!(two.theirs_now(), before);
    let why = ["--dir", &dir, "--reason", "the plan changed"];
    let args = [&["register", "--pid", &pid], &why[..]].concat();
    two.env.pass(MINUTE);
    let answer = ask(&two.me, &args);
    assert_eq!(answer["session"]["registered"], "same");
    assert_eq!(answer["session"]["dir"], dir);
    assert_eq!(answer["token"], Value::Null, "{answer:#}");
    assert_eq!(answer["notices"], json!([]), "{answer:#}");
    assert_eq!(two.lease(), lease);
    let changed = events(&two.env, "session.changed");
    let last = changed.last().expect("it is in the log");
    assert_eq!(last["actor"]["id"], two.mine["session"]["id"]);
    assert_eq!(last["reason"], "the plan changed");
    // Looking it up needs no reason and changes nothing, and its notices stay pending.
    let same = ask(&two.me, &["register", "--pid", &pid]);
    assert_eq!(same["session"]["id"], two.theirs["session"]["id"]);
    assert_eq!(same["token"], Value::Null);
    let own = ask(&two.other, &["whoami"]);
    assert_eq!(count(&own, "/notices"), 1, "{own:#}");
    assert_eq!(own["resolved"]["token"], two.theirs["token"]);
    let looked = ask(&two.me, &["whoami", "--session", two.handle()]);
    assert_eq!(looked["resolved"]["token"], Value::Null);
}

#[test]
fn a_process_that_is_nobodys_session_is_registered_by_another_without_a_reason() {
    let env = house();
    let (me, other) = (env.agent("claude"), env.agent("helper"));
    let mine = register(&me, &[]);
    let pid = other.pid().to_string();
    let born = register(&me, &["--agent", "helper", "--pid", &pid]);
    assert_eq!(born["session"]["registered"], "new");
    assert_eq!(born["token"], Value::Null);
    let registered = events(&env, "session.registered");
    let last = registered.last().expect("it is in the log");
    assert_eq!(last["actor"]["id"], mine["session"]["id"]);
    // The process itself gets it.
    let own = register(&other, &["--pid", &pid]);
    assert_eq!(own["session"]["id"], born["session"]["id"]);
    assert!(own["token"].is_string(), "{own:#}");
}

#[test]
fn a_guard_on_anothers_behalf_takes_a_reason_and_the_dead_may_not_write() {
    let two = two();
    let id = text(&two.theirs, "/session/id").to_owned();
    ask(&two.other, &["claim", "wp:1"]);
    ask(&two.me, &["tell", &id, "for its ears only"]);
    let guard = ["guard", "wp:1", "--session", &id];
    let error = refused(&two.me, 2, &guard);
    assert_eq!(error["kind"], "reason_needed");
    refused(&two.me, 2, &["guard", "--lost", "--session", &id]);
    let why = [&guard[..], &["--reason", "I push for it"]].concat();
    let yes = ask(&two.me, &why);
    assert_eq!(yes["claim"]["holder"]["id"], id.as_str());
    assert_eq!(yes["notices"], json!([]));
    let nobody = two.env.agent("helper");
    refused(&nobody, 2, &guard);

    two.other.kill9();
    refused(&two.me, 1, &why);
    ask(&two.me, &["claim", "wp:1"]);
    refused(&two.me, 5, &why);
    let never = [&["guard", "wp:2", "--session", &id], &why[4..]].concat();
    ask(&two.me, &["claim", "wp:2"]);
    refused(&two.me, 3, &never);
}

#[test]
fn a_lease_is_renewed_by_the_session_itself_only() {
    let two = two();
    let before = two.lease();
    let id = text(&two.theirs, "/session/id");
    let why = ["--session", id, "--reason", "it asked me to"];
    for act in [
        &["claim", "wp:1"][..],
        &["meta", "set", "a", "b"],
        &["release", "wp:1"],
    ] {
        two.env.pass(MINUTE);
        ask(&two.me, &[act, &why[..]].concat());
        assert_eq!(two.lease(), before, "{act:?}");
    }
    let renew = [&["renew", "--for", "2h"], &why[..]].concat();
    let error = refused(&two.me, 2, &renew);
    assert_eq!(error["kind"], "own_session_only");
    assert_eq!(two.lease(), before);
    ask(&two.other, &renew);
    assert!(two.lease() > before);
}

#[test]
fn nothing_is_granted_to_a_session_that_is_not_live() {
    let two = two();
    let id = text(&two.theirs, "/session/id").to_owned();
    ask(&two.me, &["claim", "wp:1"]);
    let third = two.env.agent("gemini");
    register(&third, &[]);
    let why = ["--session", &id, "--reason", "it asked me to"];
    let grants: [&[&str]; 4] = [
        &["claim", "wp:2"],
        &["claim", "wp:2", "--wait", "1ms"],
        &["takeover", "wp:1"],
        &["claim", "wp:2", "--any"],
    ];
    let far = two.env.agent_apart("codex");
    let unseen = text(&register(&far, &[]), "/session/id").to_owned();
    for grant in grants {
        let more = ["--session", &unseen, "--reason", "it asked me to"];
        let error = refused(&third, 9, &[grant, &more[..]].concat());
        assert_eq!(error["kind"], "cannot_tell", "{grant:?}");
    }
    two.other.kill9();
    for grant in grants {
        let error = refused(&third, 1, &[grant, &why[..]].concat());
        assert_eq!(error["kind"], "not_live", "{grant:?}");
    }
    let held_now = held(&ask(&two.me, &["whoami"]), "/session/claims");
    assert_eq!(held_now, ["wp:1@1"]);
}

#[test]
fn in_a_hosted_process_the_flag_picks_among_exactly_its_sessions() {
    let env = house();
    let (gateway, stranger) = (env.agent("openclaw"), env.agent("claude"));
    let one = register(&gateway, &["--native-id", "c1"]);
    let two = register(&gateway, &["--native-id", "c2"]);
    let other = register(&stranger, &[]);
    let [first, second, foreign] =
        [&one, &two, &other].map(|born| text(born, "/session/id").to_owned());
    ask(&stranger, &["tell", &first, "for the first"]);
    refused(&gateway, 6, &["claim", "wp:1"]);
    let claim = ask(&gateway, &["claim", "wp:1", "--session", &first]);
    assert_eq!(claim["claim"]["holder"]["id"], first.as_str());
    assert_eq!(count(&claim, "/notices"), 1, "it calls itself: {claim:#}");
    ask(&gateway, &["guard", "wp:1", "--session", &first]);
    ask(&gateway, &["renew", "--session", &second]);
    refused(&gateway, 3, &["claim", "wp:1", "--session", &second]);
    let me = ask(&gateway, &["whoami", "--session", &first]);
    assert_eq!(me["resolved"]["token"], one["token"]);
    // A variable that picks one does not keep the flag from picking another.
    let as_one = [("TENURE_SESSION", Some(text(&one, "/token")))];
    let args = ["claim", "wp:2", "--session", &second, "--json"];
    let claim = gateway.tenure_env(&as_one, &args).ok().json();
    assert_eq!(claim["claim"]["holder"]["id"], second.as_str());
    let granted = events(&env, "claim.granted");
    assert!(
        granted.iter().all(|event| event["actor"] == Value::Null),
        "{granted:#?}"
    );
    // Any other session is unrelated. The actor is recorded, so one must be selected.
    let act = [
        "claim",
        "wp:3",
        "--session",
        &foreign,
        "--reason",
        "it asked",
    ];
    assert_eq!(refused(&gateway, 6, &act)["kind"], "ambiguous");
    let bare = ["claim", "wp:3", "--session", &foreign, "--json"];
    gateway.tenure_env(&as_one, &bare).fails(2);
    let full = [&act[..], &["--json"]].concat();
    gateway.tenure_env(&as_one, &full).ok();
    let granted = events(&env, "claim.granted");
    assert_eq!(granted.last().unwrap()["actor"]["id"], first.as_str());
}

#[test]
fn one_sender_leaves_a_session_at_most_twenty_messages() {
    let two = two();
    let tell = |message: &str| ["tell", two.handle(), message].map(str::to_owned);
    for at in 0..20 {
        let words = tell(&format!("number {at}"));
        ask(&two.me, &words.each_ref().map(String::as_str));
    }
    let error = refused(&two.me, 1, &["tell", two.handle(), "one more"]);
    assert_eq!(error["kind"], "unread");
    // Another sender is heard, and so is the same one once they were read.
    let third = two.env.agent("gemini");
    register(&third, &[]);
    ask(&third, &["tell", two.handle(), "something else"]);
    let read = ask(&two.other, &["renew"]);
    assert_eq!(count(&read, "/notices"), 21);
    ask(&two.me, &["tell", two.handle(), "one more"]);
}

#[test]
fn a_message_shows_something() {
    let two = two();
    for unseen in ["", " \n", "\u{200b}", "\u{e0041}\u{ad}", "\u{3164}\u{301}"] {
        let error = refused(&two.me, 2, &["tell", two.handle(), unseen]);
        assert_eq!(error["kind"], "usage", "{unseen:?}");
    }
    ask(&two.me, &["tell", two.handle(), "\u{200b}x"]);
}
