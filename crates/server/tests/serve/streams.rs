//! The live stream: a death is seen, a reader goes on where it was, and a gap is said.

use std::time::Instant;

use serde_json::{Value, json};
use tenure_testkit::poll;

use crate::client::Ask;
use crate::{ALL, SOON, Server, env, session, token};

fn cursor(env: &tenure_testkit::Env) -> u64 {
    env.tenure(&["log", "--json"]).ok().json()["cursor"]
        .as_u64()
        .unwrap()
}

#[test]
fn a_session_that_is_killed_is_seen() {
    let env = env();
    let (ann, handle) = session(&env, "ann");
    ann.tenure(&["claim", "wp:1"]).ok();
    let server = Server::start(&env);
    let token = token(&env, "t", ALL);
    let mut stream = Ask::get("/api/v1/events")
        .token(&token)
        .follow(&server.address);
    let snapshot = stream.until("snapshot");
    assert_eq!(snapshot.data["sessions"][0]["handle"], json!(handle));
    assert_eq!(snapshot.data["sessions"][0]["state"], "live");
    assert_eq!(snapshot.id, snapshot.data["cursor"].as_u64());
    let began = Instant::now();
    ann.kill9();
    let is_dead = |data: &Value| {
        let rows = data["changed"].as_array().unwrap();
        rows.iter()
            .any(|row| row["handle"] == json!(handle) && row["state"] == "dead")
    };
    let fleet = stream.find("fleet", is_dead).data;
    assert!(began.elapsed() < SOON, "{fleet}");
    assert_eq!(fleet["order"].as_array().unwrap().len(), 1);
    assert_eq!(fleet["counts"]["all"], 1);
    let died = stream.find("event", |data| data["event"]["kind"] == "session.died");
    assert_eq!(died.id, died.data["event"]["cursor"].as_u64());
}

#[test]
fn a_reader_goes_on_after_its_last_event() {
    let env = env();
    let (ann, _) = session(&env, "ann");
    let server = Server::start(&env);
    let token = token(&env, "t", ALL);
    let before = cursor(&env);
    for number in 0..3 {
        ann.tenure(&["claim", &format!("wp:{number}")]).ok();
    }
    let resume = |last: u64| {
        let ask = Ask::get("/api/v1/events").token(&token);
        ask.header("Last-Event-ID", &last.to_string())
            .follow(&server.address)
    };
    let mut stream = resume(before);
    let snapshot = stream.next().unwrap();
    assert_eq!((snapshot.name.as_str(), snapshot.id), ("snapshot", None));
    for number in 0..3 {
        let event = stream.until("event");
        assert_eq!(event.id, Some(before + 1 + number), "none is missing");
        assert_eq!(event.data["event"]["key"], format!("wp:{number}"));
    }
    // A place that this log does not have.
    let mut stream = resume(before + 1_000);
    let reset = stream.next().unwrap();
    assert_eq!((reset.name.as_str(), reset.id), ("reset", None));
    assert_eq!(reset.data["cursor"].as_u64(), Some(cursor(&env)));
    assert_eq!(stream.next().unwrap().name, "snapshot");
}

#[test]
fn a_revoked_token_ends_its_stream_and_so_does_the_server() {
    let env = env();
    let server = Server::start(&env);
    let (first, second) = (token(&env, "one", "read"), token(&env, "two", "read"));
    let mut revoked = Ask::get("/api/v1/events")
        .token(&first)
        .follow(&server.address);
    revoked.until("snapshot");
    env.tenure(&["token", "revoke", "one"]).ok();
    assert_eq!(server.get("/api/v1/me", &first).status, 401);
    revoked.until("login_over");
    assert!(revoked.next().is_none(), "it is closed");
    let mut other = Ask::get("/api/v1/events")
        .token(&second)
        .follow(&server.address);
    other.until("snapshot");
    server.process.signal(tenure_testkit::Signal::TERM);
    other.until("bye");
    assert!(other.next().is_none(), "it is closed");
    poll(SOON, "the server ends", || {
        (!server.process.is_alive()).then_some(())
    });
}
