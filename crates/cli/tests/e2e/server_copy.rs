//! `tenure store copy`: a store moves, and is never in use twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{Agent, Cmd, Env, poll};

use crate::support::line::{SOON, handle, refused, session, take};
use crate::support::waiter::{holder, waits};

/// What every epoch is raised by.
const RAISE: u64 = 1 << 32;

fn file(env: &Env) -> String {
    env.state().join("tenure.db").display().to_string()
}

fn copy(env: &Env, from: &str, to: &str) -> tenure_testkit::Output {
    env.tenure(&["store", "copy", from, to, "--yes", "--json"])
}

/// Runs tenure with another store.
#[track_caller]
fn there(agent: &Agent, store: &str, code: i32, line: &str) -> Value {
    let mut args: Vec<&str> = line.split_whitespace().collect();
    args.push("--json");
    let output = agent.tenure_env(&[("TENURE_STORE", Some(store))], &args);
    assert_eq!(output.code, code, "{line}\n{output}");
    output.json()
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_copied_store_goes_on_and_the_old_one_names_the_new() {
    let server = PostgresServer::shared();
    let env = crate::env();
    let (claude, codex) = (session(&env, "claude"), session(&env, "codex"));
    take(&claude, "wp:1");
    let waiter = waits(&env, &codex, "wp:1", "claim wp:1 --wait 5m");
    let to = server.url(&server.new_schema());
    let copied = copy(&env, &file(&env), &to).ok().json();
    assert_eq!(copied["store"]["copied_from"], file(&env), "{copied}");
    assert!(
        copied["store"]["copied_rows"].as_u64().unwrap() > 4,
        "{copied}"
    );
    assert_eq!(copied["store"]["backend"], "postgres");
    // The old one.
    let moved = refused(&claude, 8, "store_moved", "claim wp:2");
    assert_eq!(moved["moved_to"], copied["store"]["location"], "{moved}");
    refused(&claude, 8, "store_moved", "ps");
    poll(Duration::from_secs(60), "the waiter is told", || {
        (!waiter.is_alive()).then_some(())
    });
    let told = waiter.wait().fails(8).json();
    assert_eq!(told["error"]["kind"], "store_moved", "{told}");
    // The new one.
    let guard = there(&claude, &to, 0, "guard wp:1");
    assert_eq!(guard["claim"]["epoch"], RAISE + 1, "{guard}");
    there(&claude, &to, 5, "guard wp:1 --epoch 1");
    there(&codex, &to, 3, "claim wp:1");
    there(&claude, &to, 0, "release wp:1");
    let next = there(&codex, &to, 0, "claim wp:1");
    assert_eq!(next["claim"]["epoch"], RAISE + 2, "{next}");
    // And back, into a file; twice is once.
    let back = env.dir().join("back/tenure.db").display().to_string();
    copy(&env, &to, &back).ok();
    let again = copy(&env, &to, &back).ok().json();
    assert_eq!(again["store"]["copied_rows"], 0, "{again}");
    let guard = there(&codex, &back, 0, "guard wp:1");
    assert_eq!(guard["claim"]["epoch"], 2 * RAISE + 2, "{guard}");
    let moved = there(&codex, &to, 8, "ps");
    assert_eq!(moved["error"]["moved_to"], back, "{moved}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn what_cannot_be_copied_is_refused_and_nothing_changes() {
    let server = PostgresServer::shared();
    let env = crate::env();
    let claude = session(&env, "claude");
    let used = server.url(&server.new_schema());
    let other = crate::support::server::on(&used);
    let codex = session(&other, "codex");
    let refused = copy(&env, &file(&env), &used).fails(8);
    assert!(refused.stdout.contains("empty one"), "{refused}");
    let none = env.dir().join("none.db").display().to_string();
    copy(&env, &none, &server.url(&server.new_schema())).fails(8);
    assert!(!std::path::Path::new(&none).exists());
    copy(&env, &file(&env), &file(&env)).fails(8);
    let secret = "postgres://ann:secret@127.0.0.1:1/work";
    let seen = copy(&env, &file(&env), secret).fails(2);
    assert!(!seen.to_string().contains("secret"), "{seen}");
    // A role that may not create.
    let schema = server.new_schema();
    server.run(&format!("CREATE ROLE r_{schema} LOGIN"));
    let url = server.url_as(&format!("r_{schema}"), &schema);
    copy(&env, &file(&env), &url).fails(8);
    take(&claude, "wp:1");
    take(&codex, "wp:1");
}

/// Every write that was acknowledged is in the copy; all others were refused.
fn writers_lose_nothing(env: &Env, from: &str, to: &str) {
    let writer = session(env, "writer");
    let stop = AtomicBool::new(false);
    let granted = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut granted = Vec::new();
            for number in 0.. {
                let key = format!("wp:w{number}");
                let answer = writer.tenure(&["claim", &key, "--json"]);
                match answer.code {
                    0 => granted.push(key),
                    8 if answer.stdout.contains("store_moved") => break,
                    // It waits for the lock of the copy.
                    8 => {}
                    _ => panic!("{answer}"),
                }
                if granted.len() == 3 {
                    stop.store(true, Ordering::SeqCst);
                }
            }
            granted
        });
        poll(SOON, "it writes", || {
            stop.load(Ordering::SeqCst).then_some(())
        });
        copy(env, from, to).ok();
        writing.join().expect("it ends")
    });
    assert!(granted.len() >= 3);
    let held = there(&writer, to, 0, "claims --limit 0");
    let held = held["claims"].as_array().expect("a list");
    for key in &granted {
        assert!(
            held.iter().any(|claim| claim["key"] == **key),
            "{key}: {held:?}"
        );
    }
    assert_eq!(
        held.len(),
        granted.len(),
        "nothing that was refused is there"
    );
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn live_writers_on_a_file_lose_nothing() {
    let server = PostgresServer::shared();
    let env = crate::env();
    writers_lose_nothing(&env, &file(&env), &server.url(&server.new_schema()));
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn live_writers_on_a_server_lose_nothing() {
    let server = PostgresServer::shared();
    let from = server.url(&server.new_schema());
    let env = crate::support::server::on(&from);
    writers_lose_nothing(&env, &from, &server.url(&server.new_schema()));
}

/// Whether a store is in use, with what was in the first one.
fn is_used(agent: &Agent, store: &str) -> bool {
    let answer = agent.tenure_env(&[("TENURE_STORE", Some(store))], &["guard", "wp:1"]);
    answer.code == 0
}

/// kill -9 at moments spread over the whole of a copy.
fn killed_copies_are_repeated(env: &Env, agent: &Agent, places: &[String]) {
    let mut killed = 0;
    for (number, pair) in places.windows(2).enumerate() {
        let [from, to] = pair else { unreachable!() };
        let cmd = Cmd::new("tenure").args(["store", "copy", "--yes", from.as_str(), to.as_str()]);
        let running = agent.start(cmd);
        let (began, moment) = (Instant::now(), Duration::from_millis(15 * number as u64));
        poll(SOON, "the moment of the kill", || {
            (began.elapsed() >= moment).then_some(())
        });
        if running.is_alive() {
            running.kill9();
            killed += 1;
        }
        let _code = running.wait();
        let used = [is_used(agent, from), is_used(agent, to)];
        assert_ne!(used, [true, true], "{number}");
        let done = copy(env, from, to).ok().json();
        assert!(done["store"]["copied_from"].is_string(), "{done}");
        assert!(!is_used(agent, from), "{number}");
        let epoch = RAISE * (number as u64 + 1) + 1;
        let guard = there(agent, to, 0, "guard wp:1");
        assert_eq!(guard["claim"]["epoch"], epoch, "{guard}");
    }
    assert!(killed > 2, "{killed}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_killed_copy_leaves_one_store_in_use_at_most_and_is_finished_by_the_next() {
    let server = PostgresServer::shared();
    let env = crate::env();
    let claude = session(&env, "claude");
    take(&claude, "wp:1");
    assert_eq!(holder(&env, "wp:1").0, Some(handle(&claude)));
    let mut places = vec![file(&env)];
    for number in 0..12 {
        places.push(if number % 4 == 3 {
            env.dir()
                .join(format!("s{number}/tenure.db"))
                .display()
                .to_string()
        } else {
            server.url(&server.new_schema())
        });
    }
    killed_copies_are_repeated(&env, &claude, &places);
}
