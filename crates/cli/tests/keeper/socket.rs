//! The keeper's socket, and whatever else is found at its place.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;
use tenure_testkit::poll;

use crate::machine::{Machine, SOON, kept};

/// What a keeper answers to these bytes, until it closes the connection or the time is over.
fn answer(machine: &Machine<'_>, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(machine.file(".sock")).expect("a keeper");
    // A keeper that has heard enough closes the connection while we write.
    drop(stream.write_all(bytes));
    drop(stream.shutdown(std::net::Shutdown::Write));
    let mut said = String::new();
    drop(stream.read_to_string(&mut said));
    said
}

#[test]
#[ignore = "needs PostgreSQL"]
fn bad_requests_are_refused_and_hold_nobody_up() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    let _silent: Vec<UnixStream> = (0..20)
        .map(|_| UnixStream::connect(a.file(".sock")).unwrap())
        .collect();
    assert_eq!(answer(&a, b""), "");
    assert_eq!(answer(&a, b"{\"v\":1,"), "");
    assert!(answer(&a, b"garbage\n").contains("one line of JSON"));
    assert!(answer(&a, b"{\"v\":2,\"ask\":\"status\"}\n").contains("version 1, not 2"));
    let long = vec![b'x'; 100 << 20];
    let refused = answer(&a, &long);
    assert!(
        refused.is_empty() || refused.contains("at most"),
        "{refused}"
    );
    let status: Value =
        serde_json::from_str(&answer(&a, b"{\"v\":1,\"ask\":\"status\"}\n")).unwrap();
    assert_eq!(status["status"]["sessions"], 1, "{status}");
    a.run(&claude, 0, "claim wp:1");
}

#[test]
#[ignore = "needs PostgreSQL"]
fn what_is_not_a_socket_is_left_alone_and_costs_nothing() {
    for stray in ["directory", "link", "file"] {
        let (_server, env) = kept(&[]);
        let a = Machine::new(&env, "a");
        let claude = a.session("claude");
        let socket = a.file(".sock");
        a.person(0, "keeper stop");
        match stray {
            "directory" => fs_err::create_dir(&socket).unwrap(),
            "link" => fs_err::os::unix::fs::symlink("/dev/null", &socket).unwrap(),
            _ => fs_err::write(&socket, "text").unwrap(),
        }
        a.run(&claude, 0, "claim wp:1");
        a.run(&claude, 0, "guard wp:1");
        assert!(
            fs_err::symlink_metadata(&socket).is_ok(),
            "{stray} is still there"
        );
        assert!(a.keeper().is_null());
        // Its parent tries again later, until it is asked not to.
        a.person(0, "keeper stop");
        match stray {
            "directory" => fs_err::remove_dir(&socket).unwrap(),
            _ => fs_err::remove_file(&socket).unwrap(),
        }
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_stale_socket_is_replaced() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    let claude = a.session("claude");
    let socket = a.file(".sock");
    a.person(0, "keeper stop");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    a.run(&claude, 0, "claim wp:1");
    poll(SOON, "a keeper runs", || {
        (a.watched() == Some(1)).then_some(())
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_keeper_that_ends_while_it_is_asked_has_ended() {
    let (_server, env) = kept(&[]);
    let a = Machine::new(&env, "a");
    a.session("claude").kill9();
    let socket = a.file(".sock");
    for (verb, says) in [
        ("keeper stop", "stopped the keeper"),
        ("keeper status", "no keeper runs"),
    ] {
        a.person(0, "keeper stop");
        // One that ends with the question unread.
        let ending = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let path = socket.clone();
        let ends = std::thread::spawn(move || {
            let mut asked: Vec<UnixStream> = ending.incoming().take(1).flatten().collect();
            let mut first = [0; 1];
            asked[0].read_exact(&mut first).unwrap();
            fs_err::remove_file(path).unwrap();
        });
        let said = a.said(verb);
        ends.join().unwrap();
        assert_eq!(said.code, 0, "{verb}: {said}");
        assert!(said.stdout.contains(says), "{verb}: {said}");
    }
}
