//! A browser's login: a code in an address, once, for a person, until the server ends.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use tenure_testkit::{Env, Signal, poll};

use crate::client::Ask;
use crate::{SOON, Server, env, said, session, text, token};

/// An environment whose browser notes what it was told to open.
fn with_browser() -> (Env, PathBuf) {
    let mut env = env();
    let (browser, told) = (env.dir().join("browser"), env.dir().join("told"));
    let script = format!("#!/bin/sh\necho \"$1\" >>'{}'\n", told.display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.set("BROWSER", browser.to_str().unwrap());
    (env, told)
}

fn exchange(server: &Server, code: &str) -> crate::Answer {
    let body = json!({"code": code}).to_string();
    Ask::post("/api/v1/login", &body).send(&server.address)
}

fn code_of(url: &str) -> String {
    url.split_once("/#code=").expect(url).1.to_owned()
}

#[test]
fn a_browser_gets_its_code_through_a_private_file_and_uses_it_once() {
    let (env, told) = with_browser();
    let server = Server::start_with(&env, &["--open"]);
    let url = said(&server.process, "login", |said| said["url"].as_str());
    assert!(
        url.starts_with(&format!("http://{}/#code=", server.address)),
        "{url}"
    );
    let code = code_of(&url);
    assert_eq!(code.len(), 32, "128 bits");
    let opened = poll(SOON, "a browser is opened", || {
        let told = std::fs::read_to_string(&told).ok()?;
        told.lines().next().map(str::to_owned)
    });
    assert!(
        !opened.contains(&code),
        "an argument is no secret: {opened}"
    );
    let mode = std::fs::metadata(&opened).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(std::fs::read_to_string(&opened).unwrap().contains(&url));

    let answer = exchange(&server, &code).json();
    let token = text(&answer["token"]);
    assert_eq!(answer["scopes"], json!(["read", "logs", "act", "admin"]));
    assert_eq!(answer["first"]["sessions"], json!([]));
    assert!(
        !std::path::Path::new(&opened).exists(),
        "the file is gone with its code"
    );
    let again = exchange(&server, &code);
    assert_eq!((again.status, again.kind().as_str()), (401, "bad_code"));
    let me = server.list("/api/v1/me", &token);
    assert_eq!(me["me"]["name"], "browser");
    let own = rustix::system::uname();
    assert_eq!(me["server"]["host"], own.nodename().to_str().unwrap());
    // It acts in its own name.
    let (_ann, handle) = session(&env, "ann");
    let path = format!("/api/v1/sessions/{handle}/end");
    assert_eq!(
        server.post(&path, &token, json!({"reason": "done"})).status,
        200
    );
    let log = env
        .tenure(&["log", "--kind", "session.ended", "--json"])
        .ok()
        .json();
    assert_eq!(log["events"][0]["reason"], "done (token browser)");
    assert_eq!(server.post("/api/v1/logout", &token, json!({})).status, 200);
    assert_eq!(server.get("/api/v1/me", &token).status, 401);
}

#[test]
fn a_second_server_is_refused_and_the_first_one_is_asked_for_a_login() {
    let (env, _) = with_browser();
    let server = Server::start(&env);
    let refused = env.tenure(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    assert_eq!(
        (refused.code, refused.json()["error"]["kind"].as_str()),
        (1, Some("already_serving"))
    );
    let login = env.tenure(&["serve", "--open", "--json"]).ok().json();
    let code = code_of(&text(&login["login"]["url"]));
    let token = text(&exchange(&server, &code).json()["token"]);
    assert_eq!(server.get("/api/v1/me", &token).status, 200);
    server.process.signal(Signal::TERM);
    poll(SOON, "the server ends", || {
        (!server.process.is_alive()).then_some(())
    });
    let files: Vec<_> = std::fs::read_dir(env.state().join("serve"))
        .unwrap()
        .flatten()
        .collect();
    let left: Vec<_> = files.iter().map(|file| file.file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().ends_with(".sock")),
        "{left:?}"
    );
    // A login is of one process.
    let next = Server::start(&env);
    let answer = next.get("/api/v1/me", &token);
    assert_eq!((answer.status, answer.kind().as_str()), (401, "bad_token"));
}

#[test]
fn a_server_that_was_killed_is_replaced() {
    let env = env();
    let server = Server::start(&env);
    server.process.kill9();
    poll(SOON, "it is gone", || {
        (!server.process.is_alive()).then_some(())
    });
    let next = Server::start(&env);
    assert_eq!(next.get("/healthz", "").status, 200);
}

#[test]
fn an_agent_gets_neither_a_token_nor_a_login() {
    let (env, told) = with_browser();
    let (ann, _) = session(&env, "ann");
    let person_only = |words: &[&str]| {
        let refused = ann.tenure(words);
        let kind = refused.json()["error"]["kind"].clone();
        assert_eq!(
            (refused.code, kind),
            (1, Value::from("person_only")),
            "{words:?}"
        );
    };
    person_only(&["token", "new", "mine", "--json"]);
    person_only(&["serve", "--open", "--json"]);
    let server = Server::start(&env);
    person_only(&["serve", "--open", "--json"]);
    token(&env, "ci", "read");
    person_only(&["token", "revoke", "ci", "--json"]);
    // Not by the socket itself either: the server looks at who connects.
    let door = env
        .state()
        .join("serve")
        .join(format!("{}.sock", rustix::process::getuid().as_raw()));
    let line = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect({:?}); s.sendall(b'login\\n'); print(s.recv(4096))",
        door.to_str().unwrap()
    );
    let asked = ann
        .run(tenure_testkit::Cmd::new("python3").args(["-c", &line]))
        .ok();
    assert!(asked.stdout.contains("only a person"), "{}", asked.stdout);
    assert!(!told.exists(), "no browser was opened");
    drop(server);
}

#[test]
fn tokens_are_listed_without_their_text_and_stored_hashed() {
    let env = env();
    let secret = token(&env, "ci", "read,act");
    let list = env.tenure(&["token", "list", "--json"]).ok();
    assert_eq!(
        list.json()["api_tokens"][0]["scopes"],
        json!(["read", "act"])
    );
    assert!(!list.stdout.contains(&secret));
    for file in std::fs::read_dir(env.state()).unwrap().flatten() {
        if let Ok(bytes) = std::fs::read(file.path()) {
            let hex = secret.rsplit('.').next().unwrap();
            let found = bytes.windows(hex.len()).any(|part| part == hex.as_bytes());
            assert!(!found, "{}", file.path().display());
        }
    }
    let again = env.tenure(&["token", "new", "ci", "--json"]);
    assert_eq!(again.code, 2, "{again}");
    assert_eq!(env.tenure(&["token", "revoke", "none"]).code, 4);
}
