//! `dispatch ping`: a signed delivery to oneself, and what is wrong when it is not accepted.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, Scripted};

use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::webhook::{Dispatcher, set_up};

#[track_caller]
fn ping(env: &Env, args: &[&str]) -> (i32, Value) {
    let words = [&["dispatch", "ping", "--json"], args].concat();
    let output = env.tenure(&words);
    (output.code, output.json())
}

#[track_caller]
fn fails(env: &Env, args: &[&str], code: i32, kind: &str) {
    let (found, said) = ping(env, args);
    assert_eq!(
        (found, &said["error"]["kind"]),
        (code, &json!(kind)),
        "{said:#}"
    );
}

#[test]
fn a_dispatcher_accepts_a_ping_of_every_forge_and_starts_nothing() {
    for kind in ["forgejo", "gitea", "github", "gitlab"] {
        let env = env();
        Scripted::new(&env, "mine", "init; done_");
        set_up(&env, "");
        fill_in(&env, "kind = \"forgejo\"", &format!("kind = \"{kind}\""));
        let ann = env.agent("ann");
        let door = Dispatcher::start(&ann);
        // The file says port 0; where it listens is found from its own note.
        let (code, said) = ping(&env, &[]);
        assert_eq!(code, 0, "{kind}: {said:#}");
        assert_eq!(said["pinged"]["verdict"], "ignored", "{kind}");
        assert_eq!(said["pinged"]["address"], json!(door.address));
        let queue = env.tenure(&["queue", "--all", "--json"]).ok().json();
        let stored = env.tenure(&["queue", "deliveries", "--json"]).ok().json();
        assert_eq!(
            (&queue["jobs"], &stored["deliveries"]),
            (&json!([]), &json!([]))
        );
    }
}

#[test]
fn every_secret_is_tried_and_the_one_that_is_refused_is_named() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let new = env.home().join(".config/tenure/new.secret");
    std::fs::write(&new, "another secret").unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).unwrap();
    fill_in(
        &env,
        "[\"home.secret\"]",
        "[\"home.secret\", \"new.secret\"]",
    );
    // The dispatcher was started before the second secret was there.
    let (code, said) = ping(&env, &[]);
    let message = said["error"]["message"].as_str().unwrap();
    assert_eq!((code, &said["error"]["kind"]), (1, &json!("not_accepted")));
    assert!(message.contains("secret 2 of 2"), "{message}");
    env.tenure(&["dispatch", "stop"]).ok();
    assert!(!door.process.is_alive());
    let _door = Dispatcher::start(&ann);
    let (code, said) = ping(&env, &["home"]);
    assert_eq!((code, &said["pinged"]["secrets"]), (0, &json!(2)));
}

#[test]
fn the_usual_mistakes_are_told_apart() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    fails(&env, &["work"], 4, "unknown_forge");
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    fails(&env, &["--listen", &address], 4, "nothing_listens");
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
        "220 mail.example.org ESMTP\r\n",
        "",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 2048];
            let count = stream.read(&mut head).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&head[..count]).into_owned()
        });
        fails(&env, &["--listen", &address], 6, "other_program");
        let sent = other.join().unwrap();
        assert!(!sent.contains("a secret of the tests"), "{sent}");
    }
}

#[test]
fn a_dispatcher_that_is_about_to_listen_is_waited_for() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let words = ["dispatch", "ping", "--wait", "5m", "--json"];
    let waiting = ann.start(Cmd::new("tenure").args(words));
    let _door = Dispatcher::start(&ann);
    let said = waiting.wait().ok().json();
    assert_eq!(said["pinged"]["status"], 200);
}
