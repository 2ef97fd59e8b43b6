//! A connection that breaks while a command commits.

use tenure_testkit::Env;
use tenure_testkit::postgres::{Cut, PostgresServer};

use crate::support::line::{SOON, refused, run, session, take, text};
use crate::support::server::{on, own};
use crate::support::waiter::{ends, waits};

/// An environment that reaches its store by a link that can be cut.
fn linked() -> (PostgresServer, Cut, Env) {
    let server = PostgresServer::shared();
    let cut = Cut::before(&server);
    let url = server.tcp_url(Some(server.password()), &server.new_schema());
    let env = on(&cut.url(&url));
    (server, cut, env)
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_grant_whose_answer_is_lost_is_asked_for() {
    let (_server, cut, env) = linked();
    let claude = session(&env, "claude");
    cut.at_next_commit();
    assert_eq!(take(&claude, "wp:1"), 1);
    assert!(cut.has_cut());
    let notices = run(&claude, 0, "guard wp:1")["notices"].clone();
    assert_eq!(notices.as_array().unwrap().len(), 0, "{notices}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_grant_that_nobody_can_ask_about_is_unknown_and_told_later() {
    let (_server, cut, env) = linked();
    let (claude, codex) = (session(&env, "claude"), session(&env, "codex"));
    take(&codex, "wp:2");
    cut.for_good_at_next_commit();
    let unknown = refused(&claude, 8, "store_outcome_unknown", "claim wp:1");
    assert!(cut.has_cut());
    assert_eq!(unknown["outcome"], "unknown", "{unknown}");
    let request = text(&unknown["request"]);
    assert!(text(&unknown["message"]).contains(&request), "{unknown}");
    cut.heal();
    // Any command of this machine finds out; the session is told.
    run(&codex, 0, "release wp:2");
    let answer = run(&claude, 0, "guard wp:1");
    let told = answer["notices"].as_array().unwrap();
    let told: Vec<_> = told.iter().map(|one| text(&one["message"])).collect();
    assert_eq!(told.len(), 1, "{answer}");
    assert!(
        told[0].starts_with("wp:1 was granted to you with epoch 1"),
        "{told:?}"
    );
    run(&codex, 0, "claim wp:3");
    let answer = run(&claude, 0, "guard wp:1");
    assert_eq!(answer["notices"].as_array().unwrap().len(), 0, "{answer}");
}

/// The other way round: the server never got it, and says so by then.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_change_that_was_not_made_after_all_is_not_told() {
    let (mut server, env) = own(&[]);
    let cut = Cut::before(&server);
    let url = cut.url(&server.tcp_url(Some(server.password()), "tenure"));
    let claude = session(&env, "claude");
    let (dir, port) = (server.socket_dir().display().to_string(), server.port());
    // Its COMMIT waits for the counter until the server crashes.
    let unknown = std::thread::scope(|scope| {
        let holding = scope.spawn(|| hold_counter(&dir, port));
        await_held(&server);
        cut.for_good_at_next_commit();
        let unknown = claude.tenure_env(
            &[("TENURE_STORE", Some(&url))],
            &["claim", "wp:1", "--json"],
        );
        server.stop(true);
        holding.join().unwrap();
        unknown
    });
    assert_eq!(unknown.code, 8, "{unknown}");
    assert_eq!(unknown.json()["error"]["outcome"], "unknown", "{unknown}");
    server.start();
    let answer = run(&claude, 0, "claim wp:2");
    assert_eq!(answer["notices"].as_array().unwrap().len(), 0, "{answer}");
    run(&claude, 0, "claim wp:1");
}

/// Holds the counter, for which every COMMIT with an event waits, until the server ends it.
fn hold_counter(dir: &str, port: u16) {
    let sql = "BEGIN; UPDATE tenure.counter SET number = number; SELECT pg_sleep(60)";
    PostgresServer::hold_at(dir, port, sql);
}

fn await_held(server: &PostgresServer) {
    tenure_testkit::poll(SOON, "the counter is held", || {
        let held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        (server.ask(held) == ["1"]).then_some(())
    });
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s05_a_release_whose_backend_is_terminated_still_frees_the_key() {
    let (server, env) = own(&[]);
    let (claude, codex) = (session(&env, "claude"), session(&env, "codex"));
    take(&claude, "wp:1");
    let waiter = waits(&env, &codex, "wp:1", "claim wp:1 --wait 5m");
    let (dir, port) = (server.socket_dir().display().to_string(), server.port());
    std::thread::scope(|scope| {
        let holding = scope.spawn(|| hold_counter(&dir, port));
        await_held(&server);
        let releasing = scope.spawn(|| run(&claude, 0, "release wp:1"));
        let terminate = |which: &str| {
            server.ask(&format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {which}"
            ))
        };
        tenure_testkit::poll(SOON, "the release is ended in its COMMIT", || {
            let ended = terminate("query = 'COMMIT' AND wait_event_type = 'Lock'");
            (ended == ["t"]).then_some(())
        });
        terminate("wait_event = 'PgSleep'");
        holding.join().unwrap();
        releasing.join().unwrap();
    });
    let granted = ends(waiter).ok().json();
    assert_eq!(granted["claim"]["epoch"], 2, "{granted}");
}
