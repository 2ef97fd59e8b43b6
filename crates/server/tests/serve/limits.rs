//! Limits: silent connections, readers that do not read, heads that are too long.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::client::{Ask, Events, connect};
use crate::{SOON, Server, env, session, token};

/// More than there are places.
const CROWD: usize = 300;

#[test]
fn more_silent_connections_than_places_keep_nobody_out() {
    let env = env();
    let server = Server::start(&env);
    let token = token(&env, "t", "read");
    let crowd: Vec<TcpStream> = (0..CROWD).map(|_| connect(&server.address)).collect();
    assert_eq!(server.get("/api/v1/me", &token).status, 200);
    // The oldest of them made room.
    let mut first = &crowd[0];
    let mut byte = [0];
    assert!(matches!(first.read(&mut byte), Ok(0) | Err(_)));
    assert_eq!(server.get("/healthz", "").text, "ok\n");
}

#[test]
fn one_who_sends_half_a_request_holds_up_nobody() {
    let env = env();
    let server = Server::start(&env);
    let token = token(&env, "t", "read,act");
    let mut halves = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(&server.address);
        stream.write_all(b"GET /api/v1/me HT").unwrap();
        halves.push(stream);
        let mut stream = connect(&server.address);
        let head = format!(
            "POST /api/v1/sessions/x/end HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
            server.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        halves.push(stream);
    }
    assert_eq!(server.get("/api/v1/sessions", &token).status, 200);
    // They are answered, or disconnected, when their time is over.
    let mut answer = String::new();
    drop(halves[1].read_to_string(&mut answer));
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[test]
fn readers_that_do_not_read_hold_up_nobody_and_miss_nothing() {
    let env = env();
    let (ann, _) = session(&env, "ann");
    let server = Server::start(&env);
    let token = token(&env, "t", "read");
    // Each is answered, and reads nothing of it.
    let ask = || Ask::get("/api/v1/events").token(&token);
    let mut deaf: Vec<Events> = (0..20).map(|_| ask().follow(&server.address)).collect();
    let mut stream = Ask::get("/api/v1/events")
        .token(&token)
        .follow(&server.address);
    stream.until("snapshot");
    for number in 0..20 {
        ann.tenure(&["claim", &format!("wp:{number}")]).ok();
    }
    stream.find("event", |data| data["event"]["key"] == "wp:19");
    assert_eq!(server.get("/api/v1/claims", &token).status, 200);

    // When they read at last, everything is there, in order.
    for reader in &mut deaf {
        let mut last = reader.until("snapshot").id.unwrap();
        for number in 0..20 {
            let key = format!("wp:{number}");
            loop {
                let event = reader.until("event");
                assert_eq!(event.id, Some(last + 1), "none is missing");
                last += 1;
                if event.data["event"]["key"] == *key {
                    break;
                }
            }
        }
    }
}

#[test]
fn what_is_too_long_is_refused() {
    let env = env();
    let server = Server::start(&env);
    let token = token(&env, "t", "read,act");
    let long = "a".repeat(200_000);
    let answer = Ask::get("/healthz")
        .header("X-Long", &long)
        .send(&server.address);
    assert_eq!(answer.status, 431, "{}", answer.head);
    let body = format!(r#"{{"message": "{long}"}}"#);
    let answer = Ask::post("/api/v1/sessions/x/tell", &body)
        .token(&token)
        .send(&server.address);
    assert_eq!((answer.status, answer.kind().as_str()), (413, "too_large"));
    let mut many = Ask::get("/healthz");
    for number in 0..200 {
        many = many.header(&format!("X-{number}"), "1");
    }
    assert_eq!(many.send(&server.address).status, 431);
}

#[test]
fn an_address_that_others_reach_needs_a_proxy() {
    let env = env();
    let refused = env.tenure(&["serve", "--listen", "0.0.0.0:0", "--json"]);
    assert_eq!(
        (refused.code, refused.json()["error"]["kind"].as_str()),
        (2, Some("usage"))
    );
    for url in ["http://a.example", "https://a.example/x"] {
        let refused = env.tenure(&["serve", "--behind-proxy", "--public-url", url, "--json"]);
        assert_eq!(refused.code, 2, "{url}");
    }
    let agent = env.agent("person");
    let words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--behind-proxy",
        "--public-url",
        "https://a.example",
        "--json",
    ];
    let process = agent.start(tenure_testkit::Cmd::new("tenure").args(words));
    let url = crate::said(&process, "serving", |said| said["url"].as_str());
    assert_eq!(url, "https://a.example");
}

#[test]
fn a_socket_is_for_its_user() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    let env = env();
    let agent = env.agent("person");
    let path = env.dir().join("api.sock");
    let words = ["serve", "--socket", path.to_str().unwrap(), "--json"];
    let process = agent.start(tenure_testkit::Cmd::new("tenure").args(words));
    crate::said(&process, "serving", |said| said["socket"].as_str());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream
        .write_all(&Ask::get("/readyz").bytes("localhost", true))
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("ready\n"), "{answer}");
}
