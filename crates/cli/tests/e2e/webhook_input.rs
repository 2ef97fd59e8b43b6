//! Bad input to the dispatcher, from the network and in dispatch.toml.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::{Cmd, Env, Scripted};

use crate::env;
use crate::support::dispatch::fill_in;
use crate::support::webhook::{Dispatcher, comment, issue, read_answer, set_up, sign};

fn deliveries(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "deliveries", "--json"]).ok().json();
    answer["deliveries"].as_array().expect("a list").clone()
}

#[test]
fn every_forge_gives_the_same_answer_to_every_wrong_proof() {
    for (kind, event, proof, prefix) in [
        ("forgejo", "X-Forgejo-Event", "X-Forgejo-Signature", ""),
        ("gitea", "X-Gitea-Event", "X-Gitea-Signature", ""),
        ("github", "X-GitHub-Event", "X-Hub-Signature-256", "sha256="),
        ("gitlab", "X-Gitlab-Event", "X-Gitlab-Token", ""),
    ] {
        let env = env();
        Scripted::new(&env, "mine", "init; done_");
        set_up(&env, "");
        fill_in(&env, "kind = \"forgejo\"", &format!("kind = \"{kind}\""));
        let ann = env.agent("ann");
        let door = Dispatcher::start(&ann);
        let body = issue(6, "opened").to_string();
        let right = sign(body.as_bytes());
        let flipped: String = right
            .chars()
            .map(|digit| if digit == 'a' { 'b' } else { 'a' })
            .collect();
        let form = format!("payload={body}");
        let json_type = "application/json";
        let wrong = [
            Some(flipped),
            None,
            Some(String::new()),
            Some(right[..63].to_owned()),
            Some(format!("{right}00")),
            Some("z".repeat(64)),
            // The signature of another body.
            Some(sign(b"{}")),
        ];
        let refused = |name: &str, proved: Option<&str>, content: &str, sent: &str| {
            let mut headers = vec![(event, "issues"), ("Content-Type", content)];
            headers.extend(proved.map(|value| (proof, value)));
            let (status, answer) = door.send("POST", "/hooks/home", &headers, sent.as_bytes());
            let expected = (401, json!({"error": "not authorised"}));
            assert_eq!((status, answer), expected, "{kind}: {name}");
        };
        for value in wrong {
            let value = value.map(|value| format!("{prefix}{value}"));
            refused(&format!("{value:?}"), value.as_deref(), json_type, &body);
        }
        refused("sha256= alone", Some("sha256="), json_type, &body);
        // Forgejo signs the JSON of a form, GitHub its bytes; neither is taken.
        let form_type = "application/x-www-form-urlencoded";
        for signature in [right.clone(), sign(form.as_bytes())] {
            let signature = format!("{prefix}{signature}");
            refused("a form", Some(&signature), form_type, &form);
        }
        // A header of another forge, with a right proof.
        if kind != "gitlab" {
            let proved = format!("{prefix}{right}");
            let headers = [
                ("X-Gitlab-Event", "Issue Hook"),
                ("Content-Type", json_type),
                (proof, &proved),
            ];
            let (status, _) = door.send("POST", "/hooks/home", &headers, body.as_bytes());
            assert_eq!(status, 401, "{kind}");
        }
        assert!(deliveries(&env).is_empty(), "{kind}");
    }
}

#[test]
fn other_methods_and_senders_that_never_finish_take_nothing_from_others() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for method in ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        let (status, _) = door.send(method, "/hooks/home", &[], b"");
        assert_eq!(status, 401, "{method}");
    }
    // Half a request line, half the headers, half a body, a chunk without an end.
    let beginnings = [
        "POST /ho",
        "POST /hooks/home HTTP/1.1\r\nHost: x\r\n",
        "POST /hooks/home HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"action\":",
        "POST /hooks/home HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"act\r\n",
        "POST /hooks/home HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ];
    let mut open: Vec<TcpStream> = beginnings
        .iter()
        .cycle()
        .take(40)
        .map(|beginning| {
            let mut stream = TcpStream::connect(&door.address).unwrap();
            stream.write_all(beginning.as_bytes()).unwrap();
            stream
        })
        .collect();
    let (status, answer) = door.deliver("issues", "d-1", &issue(6, "opened"));
    assert_eq!(status, 202, "{answer}");
    // The server ends each of them by itself.
    for stream in &mut open {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).ok();
        let said = String::from_utf8_lossy(&said);
        let is_refused = ["HTTP/1.1 400", "HTTP/1.1 408", "HTTP/1.1 413"]
            .iter()
            .any(|status| said.starts_with(status));
        assert!(said.is_empty() || is_refused, "{said}");
    }
    assert_eq!(deliveries(&env).len(), 1);
}

/// A sender that claims a body of this length.
fn sender(door: &Dispatcher, endpoint: &str, length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(&door.address).expect("it listens");
    stream
        .set_write_timeout(Some(FULL))
        .expect("it is more than nothing");
    let head = format!(
        "POST /hooks/{endpoint} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is read");
    stream
}

/// After how long a sender that cannot send any more gives up.
const FULL: Duration = Duration::from_secs(1);
const MEBIBYTE: usize = 1 << 20;

#[test]
fn a_body_that_is_too_long_or_for_no_endpoint_is_passed_over_and_its_sender_reads_why() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for (endpoint, length, expected) in [
        ("home", 40 * MEBIBYTE, 413),
        ("nowhere", 20 * MEBIBYTE, 401),
    ] {
        let mut stream = sender(&door, endpoint, length);
        stream.write_all(&vec![b' '; length]).unwrap();
        let (status, answer) = read_answer(&mut stream);
        assert_eq!(status, expected, "{answer}");
    }
    assert_eq!(deliveries(&env).len(), 0);
}

#[test]
fn bodies_take_64_mib_at_most_and_only_when_they_arrive() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    // They claim much and send nothing.
    let claims: Vec<TcpStream> = (0..8)
        .map(|_| sender(&door, "home", 25 * MEBIBYTE))
        .collect();
    let (status, answer) = door.deliver("issues", "d-1", &issue(6, "opened"));
    assert_eq!(status, 202, "{answer}");
    drop(claims);
    let most = vec![b' '; 24 * MEBIBYTE];
    let mut senders: Vec<TcpStream> = (0..4)
        .map(|_| sender(&door, "home", 25 * MEBIBYTE))
        .collect();
    for first in &mut senders[..2] {
        first.write_all(&most).unwrap();
    }
    // The rest of the room is less than the third needs.
    senders[2].write_all(&most).ok();
    let last = senders[3].write_all(&most);
    assert!(last.is_err(), "96 MiB were read");
    // What they took is free again.
    drop(senders);
    let (status, answer) = door.deliver("issues", "d-2", &issue(7, "opened"));
    assert_eq!(status, 202, "{answer}");
}

#[test]
fn a_repository_that_is_not_listed_and_the_own_account_start_nothing_and_are_told() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let mut elsewhere = issue(6, "opened");
    elsewhere["repository"]["full_name"] = json!("acme/other");
    let own = comment(6, 1, "bot", "do it");
    for (event, payload, why) in [
        (
            "issues",
            &elsewhere,
            "acme/other is not a repository of forge home in the settings",
        ),
        (
            "issue_comment",
            &own,
            "bot is the account that tenure writes as",
        ),
    ] {
        let (status, answer) = door.deliver(event, event, payload);
        assert_eq!(
            (status, &answer["verdict"]),
            (200, &json!("ignored")),
            "{answer}"
        );
        assert_eq!(answer["why"], why);
    }
    assert_eq!(
        env.tenure(&["queue", "--all", "--json"]).ok().json()["jobs"],
        json!([])
    );
}

/// The dispatcher itself refuses to start, and names what is wrong; nothing listens.
#[test]
fn a_dispatcher_does_not_start_with_a_file_that_has_faults() {
    let no_match = "on = [\"repo.renamed\"]";
    for (from, to, why) in [
        (
            "name = \"fix\"",
            "name = \"fix\"\nskil = \"fix\"",
            "rule 1, skil: there is no such key",
        ),
        (
            "skill = \"fix\"",
            "skill = \"absent\"",
            "skill absent was not found",
        ),
        (
            "agent = \"mine\"",
            "agent = \"yours\"",
            "tenure does not know how to run yours",
        ),
        (
            "on = [\"issue.opened\", \"issue.comment\"]",
            no_match,
            "this rule never matches",
        ),
        (
            "[\"alice\", \"bob\"]",
            "[]",
            "it names nobody who may start a run",
        ),
        (
            "skill = \"fix\"",
            "skill = \"fix\"\nwrap = [\"absent-program\"]",
            "rule 1, wrap: absent-program",
        ),
        ("listen", "grace = \"1d\"\nlisten", "grace in config.toml"),
    ] {
        let env = env();
        Scripted::new(&env, "mine", "init; done_");
        set_up(&env, "");
        fill_in(&env, from, to);
        let said = env.tenure(&["dispatch"]).fails(6);
        assert!(said.stderr.contains(why), "{why}\n{said}");
        assert!(!said.stdout.contains("listening"), "{said}");
        assert!(!env.state().join("dispatchers").exists());
    }
}

#[test]
fn arguments_that_a_run_would_refuse_are_named_at_the_start() {
    let env = env();
    set_up(&env, "args = [\"--model\", \"x\", \"--resume\", \"abc\"]");
    fill_in(&env, "agent = \"mine\"", "agent = \"claude\"");
    let said = env.tenure(&["dispatch", "check"]).fails(6);
    let why = "rule 1, args: --resume is set by `tenure run` itself";
    assert!(said.stderr.contains(why), "{said}");
    fill_in(&env, "\"--resume\", \"abc\"", "\"--mcp-config=x.json\"");
    let said = env.tenure(&["dispatch", "check"]).fails(6);
    let why = "cannot be used in a repository that is not trusted";
    assert!(said.stderr.contains(why), "{said}");
    fill_in(
        &env,
        "forge = \"home\"\n",
        "forge = \"home\"\ntrusted = true\n",
    );
    let said = env.tenure(&["dispatch", "check"]).ok();
    let first = said.stdout.lines().next().unwrap();
    assert!(
        first.contains("can read everything that this user can"),
        "{said}"
    );
}

#[test]
fn a_secret_that_others_can_read_keeps_the_dispatcher_from_starting() {
    for mode in [0o644, 0o640, 0o606] {
        let env = env();
        Scripted::new(&env, "mine", "init; done_");
        set_up(&env, "");
        let secret = env.home().join(".config/tenure/home.secret");
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode)).unwrap();
        let ann = env.agent("ann");
        let said = ann.run(Cmd::new("tenure").args(["dispatch"])).fails(6);
        assert!(said.stderr.contains("others can read"), "{said}");
        assert!(!said.stderr.contains("a secret of the tests"));
    }
}
