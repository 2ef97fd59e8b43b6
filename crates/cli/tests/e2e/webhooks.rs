//! Webhooks: from a signed delivery to a run, and everything that is not one.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use tenure_testkit::{Env, Scripted, Signal, poll};

use crate::env;
use crate::support::line::{SOON, text};
use crate::support::run::all;
use crate::support::webhook::{Dispatcher, comment, issue, read_answer, set_up, sign};

fn jobs(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "--all", "--json"]).ok().json();
    answer["jobs"].as_array().expect("a list").clone()
}

fn deliveries(env: &Env) -> Vec<Value> {
    let answer = env.tenure(&["queue", "deliveries", "--json"]).ok().json();
    answer["deliveries"].as_array().expect("a list").clone()
}

#[track_caller]
fn all_end(env: &Env, count: usize) -> Vec<Value> {
    poll(SOON, "all jobs end", || {
        let jobs = jobs(env);
        let over = |job: &Value| job["state"] == "ended";
        (jobs.len() == count && jobs.iter().all(over)).then_some(jobs)
    })
}

const LISTENS: &str = "n=$(ls $dir | grep -c prompt); cat >$dir/prompt-$n; echo $mode >>$dir/calls; init; \
                       ready $dir/on; hold $dir/flag; done_";

#[test]
fn an_issue_is_worked_on_and_what_is_said_meanwhile_is_one_more_job() {
    let env = env();
    let mine = Scripted::new(&env, "mine", LISTENS);
    mine.keep("flag");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let (status, answer) = door.deliver("issues", "d-1", &issue(6, "opened"));
    assert_eq!(
        (status, &answer["verdict"]),
        (202, &json!("queued")),
        "{answer}"
    );
    poll(SOON, "the agent works", || mine.wrote("on"));
    let (status, answer) = door.deliver(
        "issue_comment",
        "d-2",
        &comment(6, 1, "bob", "and the docs"),
    );
    assert_eq!(
        (status, &answer["verdict"]),
        (202, &json!("queued")),
        "{answer}"
    );
    let (status, answer) = door.deliver(
        "issue_comment",
        "d-3",
        &comment(6, 2, "alice", "and @/etc/passwd"),
    );
    assert_eq!(
        (status, &answer["verdict"]),
        (202, &json!("joined")),
        "{answer}"
    );
    assert_eq!(jobs(&env).len(), 2);
    std::fs::remove_file(mine.file("flag")).unwrap();
    let ended = all_end(&env, 2);
    assert!(
        ended.iter().all(|job| job["outcome"] == "done"),
        "{ended:#?}"
    );
    assert_eq!(ended[0]["events"].as_array().unwrap().len(), 2);
    assert_eq!(mine.wrote("calls").unwrap(), "fresh\nresume\n");
    let first = mine.wrote("prompt-0").unwrap();
    assert!(first.contains("Fix issue:acme/web#6."), "{first}");
    let second = mine.wrote("prompt-1").unwrap();
    assert!(second.contains("Go on."), "{second}");
    assert!(second.contains("by bob:\nand the docs"), "{second}");
    assert!(second.contains("@\u{200b}/etc/passwd"), "{second}");
    let runs = all(&env);
    assert_eq!(
        runs[0]["native_id"], runs[1]["native_id"],
        "one conversation"
    );
}

#[test]
fn the_same_delivery_is_stored_once_however_often_it_arrives() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo ran >>$dir/calls; init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let answers: Vec<(u16, Value)> = std::thread::scope(|scope| {
        let send = || scope.spawn(|| door.deliver("issues", "d-1", &issue(6, "opened")));
        let sent: Vec<_> = (0..50).map(|_| send()).collect();
        sent.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let new = answers.iter().filter(|(status, _)| *status == 202).count();
    assert_eq!(new, 1, "{answers:?}");
    all_end(&env, 1);
    // Those that came before it was decided are not told its job.
    let job = &jobs(&env)[0]["id"];
    let told = answers.iter().map(|(_, answer)| &answer["job"]);
    assert!(
        told.clone().all(|told| told.is_null() || told == job),
        "{answers:?}"
    );
    // Forgejo gives a redelivery a new id; its content is the same.
    let (status, answer) = door.deliver("issues", "d-2", &issue(6, "opened"));
    assert_eq!(
        (status, &answer["duplicate"]),
        (200, &json!(true)),
        "{answer}"
    );
    assert_eq!(answer["run"], all(&env)[0]["id"], "the first run");
    assert_eq!(deliveries(&env).len(), 1);
    assert_eq!(mine.wrote("calls").unwrap(), "ran\n");
}

#[test]
fn without_the_secret_every_request_gets_the_same_answer() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let body = issue(6, "opened").to_string();
    let right = sign(body.as_bytes());
    let mut wrong = right.clone().into_bytes();
    wrong[0] = if wrong[0] == b'0' { b'1' } else { b'0' };
    let wrong = String::from_utf8(wrong).unwrap();
    let json_type = ("Content-Type", "application/json");
    let event = ("X-Forgejo-Event", "issues");
    type Case<'a> = (&'a str, &'a str, &'a str, Vec<(&'a str, &'a str)>);
    let cases: Vec<Case<'_>> = vec![
        (
            "wrong",
            "POST",
            "/hooks/home",
            vec![event, json_type, ("X-Forgejo-Signature", &wrong)],
        ),
        ("missing", "POST", "/hooks/home", vec![event, json_type]),
        (
            "empty",
            "POST",
            "/hooks/home",
            vec![event, json_type, ("X-Forgejo-Signature", "")],
        ),
        (
            "empty hub",
            "POST",
            "/hooks/home",
            vec![event, json_type, ("X-Hub-Signature-256", "sha256=")],
        ),
        (
            "short",
            "POST",
            "/hooks/home",
            vec![event, json_type, ("X-Forgejo-Signature", &right[..40])],
        ),
        (
            "no hex",
            "POST",
            "/hooks/home",
            vec![event, json_type, ("X-Forgejo-Signature", "zz")],
        ),
        (
            "a form",
            "POST",
            "/hooks/home",
            vec![
                event,
                ("Content-Type", "application/x-www-form-urlencoded"),
                ("X-Forgejo-Signature", &right),
            ],
        ),
        (
            "another forge",
            "POST",
            "/hooks/home",
            vec![
                ("X-Gitlab-Event", "Issue Hook"),
                json_type,
                ("X-Forgejo-Signature", &right),
            ],
        ),
        (
            "another endpoint",
            "POST",
            "/hooks/other",
            vec![event, json_type, ("X-Forgejo-Signature", &right)],
        ),
        (
            "GET",
            "GET",
            "/hooks/home",
            vec![event, json_type, ("X-Forgejo-Signature", &right)],
        ),
        (
            "another path",
            "POST",
            "/",
            vec![event, json_type, ("X-Forgejo-Signature", &right)],
        ),
    ];
    for (name, method, path, headers) in cases {
        let (status, answer) = door.send(method, path, &headers, body.as_bytes());
        assert_eq!(
            (status, answer),
            (401, json!({"error": "not authorised"})),
            "{name}"
        );
    }
    assert!(deliveries(&env).is_empty() && jobs(&env).is_empty());
}

#[test]
fn bad_bodies_are_refused_and_bounded() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    let no_json = b"this is signed";
    let signature = sign(no_json);
    let headers = [
        ("X-Forgejo-Event", "issues"),
        ("Content-Type", "application/json"),
        ("X-Forgejo-Signature", signature.as_str()),
    ];
    assert_eq!(door.send("POST", "/hooks/home", &headers, no_json).0, 400);
    let long = vec![b' '; 26 << 20];
    assert_eq!(door.send("POST", "/hooks/home", &headers, &long).0, 413);
    // Chunks without an end.
    let mut stream = TcpStream::connect(&door.address).unwrap();
    let head = "POST /hooks/home HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    while stream.write_all(chunk.as_bytes()).is_ok() {}
    assert!(matches!(read_answer(&mut stream).0, 0 | 413));
    // Half-open senders take no place from others.
    let open: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(&door.address).unwrap();
            stream.write_all(b"POST /hooks/home HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    assert_eq!(door.deliver("issues", "d-1", &issue(6, "opened")).0, 202);
    drop(open);
}

#[test]
fn who_may_not_trigger_is_refused_with_the_reason() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "mention = \"@bot\"");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for (id, login, said, verdict) in [
        (1, "mallory", "@bot do it", "refused"),
        (2, "alice", "nobody is meant", "ignored"),
        (3, "bot", "@bot again", "ignored"),
    ] {
        let (status, answer) = door.deliver(
            "issue_comment",
            &format!("d-{id}"),
            &comment(6, id, login, said),
        );
        assert_eq!(
            (status, text(&answer["verdict"])),
            (200, verdict.to_owned()),
            "{answer}"
        );
    }
    assert!(jobs(&env).is_empty());
    let whys: Vec<String> = deliveries(&env)
        .iter()
        .map(|one| text(&one["why"]))
        .collect();
    assert_eq!(
        whys,
        [
            "bot is the account that tenure writes as",
            "no rule matches",
            "rule fix: mallory is not one of its authors",
        ]
    );
}

/// A loop between the agent and somebody who answers everything it says.
#[test]
fn f_r15_its_own_comments_start_nothing_and_a_loop_is_parked() {
    let env = env();
    let mine = Scripted::new(&env, "mine", "echo ran >>$dir/calls; init; done_");
    set_up(&env, "");
    let file = env.home().join(".config/tenure/dispatch.toml");
    let rules = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("breaker = 3\n{rules}")).unwrap();
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    for number in 0..100 {
        let own = comment(6, number, "bot", "do it");
        let (status, _) = door.deliver("issue_comment", &format!("own-{number}"), &own);
        assert_eq!(status, 200);
    }
    assert!(jobs(&env).is_empty());
    // Another bot, which the rule permits.
    let mut pong = comment(6, 1_000, "bob", "ping");
    pong["sender"]["type"] = json!("Bot");
    for number in 0..6_u64 {
        pong["comment"]["id"] = json!(1_000 + number);
        let (status, _) = door.deliver("issue_comment", &format!("pong-{number}"), &pong);
        assert_eq!(status, 202);
        poll(SOON, "it ran, or is parked", || {
            let jobs = jobs(&env);
            let over = |job: &Value| job["state"] == "ended" || job["state"] == "parked";
            jobs.iter().all(over).then_some(())
        });
    }
    assert_eq!(mine.wrote("calls").unwrap(), "ran\nran\nran\n");
    let parked = jobs(&env).remove(0);
    assert_eq!(parked["parked"]["reason"], "breaker", "{parked:#}");
    assert_eq!(parked["parked"]["until"], Value::Null);
    assert_eq!(
        parked["events"].as_array().unwrap().len(),
        3,
        "they joined it"
    );
    // A person lifts it. So soon after a run, only with the name of the account.
    door.deliver(
        "issue_comment",
        "alice",
        &comment(6, 2_000, "alice", "@bot go on"),
    );
    all_end(&env, 4);
}

#[test]
fn a_closed_issue_cancels_what_waits_and_closes_its_conversation() {
    let env = env();
    let mine = Scripted::new(&env, "mine", LISTENS);
    mine.keep("flag");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    door.deliver("issue_comment", "d-2", &comment(6, 1, "bob", "more"));
    let (status, answer) = door.deliver("issues", "d-3", &issue(6, "closed"));
    assert_eq!(
        (status, &answer["verdict"]),
        (202, &json!("acted")),
        "{answer}"
    );
    let waits = jobs(&env)
        .into_iter()
        .find(|job| job["state"] == "cancelled");
    assert_eq!(waits.unwrap()["why"], "issue:acme/web#6 was closed");
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "the run finishes", || {
        let run = all(&env).remove(0);
        (run["outcome"] == "done").then_some(())
    });
    let listed = env.tenure(&["conversation", "list", "--json"]).ok().json();
    assert_eq!(listed["conversations"], json!([]), "closed with its item");
}

#[test]
fn sigterm_stops_the_door_and_leaves_the_runs() {
    let env = env();
    let mine = Scripted::new(&env, "mine", LISTENS);
    mine.keep("flag");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issues", "d-1", &issue(6, "opened"));
    poll(SOON, "the agent works", || mine.wrote("on"));
    assert!(door.process.signal(Signal::TERM));
    door.process.wait().ok();
    assert!(TcpStream::connect(&door.address).is_err());
    assert_eq!(all(&env)[0]["state"], "running");
    std::fs::remove_file(mine.file("flag")).unwrap();
    poll(SOON, "the run finishes", || {
        (all(&env)[0]["outcome"] == "done").then_some(())
    });
    assert_eq!(jobs(&env)[0]["state"], "ended");
}

#[test]
fn old_deliveries_are_forgotten() {
    let env = env();
    Scripted::new(&env, "mine", "init; done_");
    set_up(&env, "");
    let ann = env.agent("ann");
    let door = Dispatcher::start(&ann);
    door.deliver("issue_comment", "d-1", &comment(6, 1, "mallory", "hi"));
    assert_eq!(deliveries(&env).len(), 1);
    door.process.kill9();
    let file = env.home().join(".config/tenure/dispatch.toml");
    let rules = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("keep_deliveries = \"1ms\"\n{rules}")).unwrap();
    let _door = Dispatcher::start(&ann);
    poll(SOON, "it is forgotten", || {
        deliveries(&env).is_empty().then_some(())
    });
}
