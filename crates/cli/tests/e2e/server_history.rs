//! A server that lost its newest changes: epochs never repeat.

use serde_json::Value;
use tenure_testkit::postgres::PostgresServer;
use tenure_testkit::{Cmd, Env};

use crate::support::line::{events, handle, refused, run, session, take, text};
use crate::support::server::own;
use crate::support::waiter::{ends, holder, waits};

/// What every epoch is raised by.
const RAISE: u64 = 1 << 32;

/// How a server comes back without its newest changes.
type Lose = fn(&mut PostgresServer);

fn base(server: &PostgresServer) -> u64 {
    server.ask("SELECT epoch_base FROM tenure.store")[0]
        .parse()
        .expect("a number")
}

fn told(answer: &Value) -> String {
    let all = answer["notices"].as_array().expect("a list");
    all.iter().map(|one| text(&one["message"])).collect()
}

/// A state with a hold, then changes that are lost, under clients that go on.
fn epochs_never_repeat(keep: Lose, lose: Lose) {
    let (mut server, env) = own(&[]);
    let (claude, codex) = (session(&env, "claude"), session(&env, "codex"));
    assert_eq!(take(&claude, "wp:1"), 1);
    keep(&mut server);
    run(&claude, 0, "release wp:1");
    let lost = [take(&codex, "wp:1"), take(&codex, "wp:2")];
    assert_eq!(lost, [2, 1]);
    let waiter = waits(&env, &claude, "wp:2", "claim wp:2 --wait 5m");
    // A client that stands still meanwhile, as on a machine that sleeps.
    assert!(waiter.signal(rustix::process::Signal::STOP));
    lose(&mut server);
    assert!(waiter.signal(rustix::process::Signal::CONT));
    // It goes on, and is granted what the store no longer knows to be held.
    let granted = ends(waiter).ok().json();
    assert_eq!(granted["claim"]["epoch"], RAISE + 1, "{granted}");
    assert_eq!(base(&server), RAISE);
    let (kept, epoch) = holder(&env, "wp:1");
    assert_eq!((kept, epoch), (Some(handle(&claude)), RAISE + 1));
    // What the store does not know to be held is lost.
    refused(&codex, 3, "held", "guard wp:1 --epoch 2");
    for epoch in lost {
        let refused = codex.tenure(&["guard", "wp:2", "--epoch", &epoch.to_string()]);
        assert_ne!(refused.code, 0, "{refused}");
    }
    refused(&claude, 5, "lost", "guard wp:1 --epoch 1");
    run(&claude, 0, &format!("guard wp:1 --epoch {}", RAISE + 1));
    let recorded = events(&codex, "--limit 100");
    let lost: Vec<_> = recorded
        .iter()
        .filter(|event| event["kind"] == "store.rolled_back")
        .collect();
    assert_eq!(lost.len(), 1, "{recorded:#?}");
    // Later grants go on from there.
    run(&claude, 0, "release wp:1");
    assert_eq!(take(&codex, "wp:1"), RAISE + 2);
    assert_eq!(take(&codex, "wp:9"), RAISE + 1);
}

fn stop_and_keep(server: &mut PostgresServer) {
    server.stop(false);
    server.keep("kept");
    server.start();
}

fn crash_and_keep(server: &mut PostgresServer) {
    server.stop(true);
    server.keep("kept");
    server.start();
}

fn restore(server: &mut PostgresServer) {
    server.stop(false);
    server.bring_back("kept");
    server.start();
}

fn promote(server: &mut PostgresServer) {
    server.stop(true);
    server.bring_back("kept");
    std::fs::write(server.dir().join("data/standby.signal"), "").expect("its data");
    server.start();
    assert_eq!(server.ask("SELECT pg_promote()"), ["t"]);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s27_after_an_older_backup_no_epoch_is_granted_again() {
    epochs_never_repeat(stop_and_keep, restore);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s27_after_a_snapshot_of_the_disk_no_epoch_is_granted_again() {
    epochs_never_repeat(crash_and_keep, restore);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s27_after_a_standby_was_promoted_no_epoch_is_granted_again() {
    epochs_never_repeat(stop_and_keep, promote);
}

/// Runs `ps` in another state directory.
fn look(env: &Env, number: u32) -> Cmd {
    let home = env.dir().join(format!("state-{number}"));
    Cmd::new("tenure")
        .args(["ps"])
        .env("TENURE_HOME", home.display().to_string())
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s27_many_clients_that_notice_at_once_raise_epochs_once_and_each_tells_its_person_once() {
    let (mut server, env) = own(&[]);
    let (claude, codex) = (session(&env, "claude"), session(&env, "codex"));
    take(&claude, "wp:1");
    stop_and_keep(&mut server);
    // Each remembers another event.
    for number in 0..8 {
        take(&codex, &format!("wp:1{number}"));
        claude.run(look(&env, number)).ok();
    }
    restore(&mut server);
    let all: Vec<_> = (0..8)
        .map(|number| claude.start(look(&env, number)))
        .collect();
    for one in all {
        let said = one.wait().ok().stderr;
        assert_eq!(said.matches("lost its newest changes").count(), 1, "{said}");
    }
    assert_eq!(base(&server), RAISE);
    let counted = "SELECT count(*) FROM tenure.events WHERE kind = 'store.rolled_back'";
    assert_eq!(server.ask(counted), ["1"]);
    for number in 0..8 {
        let again = claude.run(look(&env, number)).ok();
        assert!(!again.stderr.contains("lost"), "{again}");
    }
    let whoami = run(&claude, 0, "whoami");
    assert!(told(&whoami).contains("you still hold wp:1"), "{whoami}");
    // The state is lost again: the number that was granted in between is not granted again.
    assert_eq!(take(&codex, "wp:2"), RAISE + 1);
    restore(&mut server);
    assert_eq!(take(&codex, "wp:2"), 2 * RAISE + 1);
}

/// A hook must not use up what a person has to be told.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_hook_that_notices_leaves_the_news_for_a_person() {
    let (mut server, env) = own(&[]);
    let claude = session(&env, "claude");
    stop_and_keep(&mut server);
    take(&claude, "wp:1");
    restore(&mut server);
    let event =
        r#"{"session_id":"n-1","cwd":"/","hook_event_name":"SessionStart","source":"startup"}"#;
    let hook = claude.tenure_stdin(&["hook", "claude"], event);
    assert_eq!(hook.code, 0, "{hook}");
    assert_eq!(base(&server), RAISE);
    let first = claude.tenure(&["ps"]).ok();
    assert!(first.stderr.contains("lost its newest changes"), "{first}");
    let second = claude.tenure(&["ps"]).ok();
    assert!(!second.stderr.contains("lost"), "{second}");
    let status = claude.tenure(&["status"]);
    assert!(
        status.stdout.contains("lost its newest changes"),
        "{status}"
    );
}

/// Two stores behind one name (a tunnel) are two stores: neither lost anything.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn another_store_at_the_same_place_lost_nothing() {
    let (mut server, env) = own(&[]);
    stop_and_keep(&mut server);
    let claude = session(&env, "claude");
    take(&claude, "wp:1");
    server.run("ALTER SCHEMA tenure RENAME TO before");
    env.tenure(&["store", "migrate"]).ok();
    let codex = session(&env, "codex");
    assert_eq!(take(&codex, "wp:1"), 1);
    assert_eq!(base(&server), 0);
    server.run("ALTER SCHEMA tenure RENAME TO other; ALTER SCHEMA before RENAME TO tenure");
    assert_eq!(take(&claude, "wp:2"), 1);
    assert_eq!(base(&server), 0);
}
