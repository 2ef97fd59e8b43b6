//! Acting for another session: one rule for every verb.

use serde_json::{Value, json};
use tenure_testkit::{Agent, Env};

use crate::env;
use crate::support::answer::{ask, asked_by_nobody, count, events, held, refused, register, text};
use crate::support::forge::forge_process;

/// Nothing of these can be seen.
const BLANKS: [&str; 5] = ["", " ", "\t\n", "\u{200B}", "\u{3164}\u{2800}"];

struct Two {
    env: Env,
    me: Agent,
    other: Agent,
    mine: Value,
    theirs: Value,
}

/// Two sessions that have nothing to do with each other.
fn two() -> Two {
    let env = env();
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

    /// How the other one is shown, but for its lease, which is shown by the wall clock.
    fn theirs_now(&self) -> Value {
        let mut shown = asked_by_nobody(&self.env, &["show", self.handle()])["session"].clone();
        shown["lease_until"] = Value::Null;
        shown
    }

    /// Its lease as it is stored.
    fn lease(&self) -> i64 {
        let path = self.env.state().join("tenure.db");
        let store = rusqlite::Connection::open(path).expect("it is there");
        let id = text(&self.theirs, "/session/id");
        let sql = "SELECT lease_at FROM sessions WHERE id = ?1";
        let lease = store.query_row(sql, [id], |row| row.get(0));
        lease.expect("the tables are as the test thinks")
    }
}

#[test]
fn a_reason_that_shows_nothing_is_refused_by_every_verb() {
    let two = two();
    ask(&two.other, &["claim", "wp:1"]);
    let handle = two.handle();
    let acts: [&[&str]; 16] = [
        &["claim", "wp:2", "--session", handle],
        &["claim", "wp:2", "--session", handle, "--wait", "1ms"],
        &["claim", "wp:1"],
        &["release", "wp:1", "--session", handle],
        &["handoff", "wp:1", "--to", "claude", "--session", handle],
        &["takeover", "wp:1"],
        &["guard", "wp:1", "--session", handle],
        &["renew", "--for", "1h"],
        &["end", "--session", handle],
        &["meta", "set", "a", "b", "--session", handle],
        &["meta", "unset", "a", "--session", handle],
        &["mission", "join", "m1", "--role", "r", "--session", handle],
        &["mission", "leave", "m1", "--session", handle],
        &["transcript", "append", handle],
        &["register", "--parent", handle],
        &["adopt", "1"],
    ];
    let before = asked_by_nobody(&two.env, &["log"])["cursor"].clone();
    for act in acts {
        for blank in BLANKS {
            let error = refused(&two.me, 2, &[act, &["--reason", blank]].concat());
            assert_eq!(error["kind"], "usage", "{act:?} {blank:?}: {error}");
            assert!(
                error["message"].as_str().unwrap().contains("reason"),
                "{error}"
            );
        }
    }
    let long = "x".repeat(1_001);
    refused(&two.me, 2, &["takeover", "wp:1", "--reason", &long]);
    let after = asked_by_nobody(&two.env, &["log"])["cursor"].clone();
    assert_eq!(before, after, "nothing was done");
}

#[test]
fn registering_the_process_of_another_session_takes_a_reason_and_names_the_actor() {
    let two = two();
    ask(&two.me, &["tell", two.handle(), "for its ears only"]);
    let pid = two.other.pid().to_string();
    let dir = two.env.dir().display().to_string();
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
    let answer = ask(&two.me, &args);
    assert_eq!(answer["session"]["registered"], "same");
    assert_eq!(answer["session"]["title"], "renamed");
    assert_eq!(answer["token"], Value::Null, "{answer:#}");
    assert_eq!(answer["notices"], json!([]), "{answer:#}");
    assert_eq!(two.lease(), lease);
    let changed = events(&two.env, "session.changed");
    let last = changed.last().expect("it is in the log");
    assert_eq!(last["actor"]["id"], two.mine["session"]["id"]);
    assert_eq!(last["reason"], "the plan changed");
    // Looking it up takes no reason and changes nothing, and what it was told is still there for it.
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
    let env = env();
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
    let renew = ["renew", "--for", "2h", "--reason", "it asked me to"];
    let error = refused(&two.me, 2, &[&renew[..], &["--session", id]].concat());
    assert_eq!(error["kind"], "only_itself");
    assert_eq!(two.lease(), before);
    ask(&two.other, &[&renew[..], &["--session", id]].concat());
    assert!(two.lease() > before);
    // Nor by a grant, a release or metadata on its behalf.
    let before = two.lease();
    for act in [
        &["claim", "wp:1"][..],
        &["meta", "set", "a", "b"],
        &["release", "wp:1"],
    ] {
        let more = ["--session", id, "--reason", "it asked me to"];
        ask(&two.me, &[act, &more[..]].concat());
        assert_eq!(two.lease(), before, "{act:?}");
    }
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
    // As if it ran in a container: it may live or not.
    forge_process(&two.env, &id, "pid_ns = pid_ns + 1");
    for grant in grants {
        let error = refused(&third, 9, &[grant, &why[..]].concat());
        assert_eq!(error["kind"], "cannot_tell", "{grant:?}");
    }
    forge_process(&two.env, &id, "pid_ns = pid_ns - 1");
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
    let env = env();
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
    // Any other session is a stranger's. The actor is recorded, so one must be picked.
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
