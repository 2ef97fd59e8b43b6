//! Waiting for a connection of a pooler.

use std::process::Command;
use std::time::{Duration, Instant};

use tenure_core::store::{Store, StoreError, TxMode};
use tenure_testkit::conformance::sample::{id, with_sessions};
use tenure_testkit::postgres::{Bouncer, PoolMode, PostgresServer};

use super::support::{made, open, try_open};

/// Longer than one call may take.
const LONG: Duration = Duration::from_secs(8);
const SOON: Duration = Duration::from_secs(20);

fn first_use(url: &str, limit: Option<Instant>) -> Result<(), StoreError> {
    let mut store = try_open(url, limit)?;
    store.begin(TxMode::Write)?.now().map(|_| ())
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s03_a_command_keeps_its_place_in_the_queue_of_a_pooler_as_long_as_that_is_alive() {
    let server = PostgresServer::own(&[]);
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    let bouncer = Bouncer::start(&server, PoolMode::Transaction, 1);
    let url = bouncer.url(&schema);
    let sleep = format!("SELECT pg_sleep({})", LONG.as_secs());
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| bouncer.asker().ask(&sleep));
        let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        tenure_testkit::poll(SOON, "the connection is in use", || {
            (server.ask(sleeps) == ["1"]).then_some(())
        });
        // A caller with a limit, such as a hook, is told in time.
        let limit = Instant::now() + Duration::from_millis(200);
        let busy = first_use(&url, Some(limit));
        assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
        let begun = Instant::now();
        first_use(&url, None).unwrap();
        assert!(
            begun.elapsed() > Duration::from_secs(3),
            "it did not have to wait"
        );
        holder.join().unwrap();
    });
    // A pooler that does not run accepts no connection, and nothing is waited for.
    let mut store = open(&url);
    let signal = |name: &str| {
        let pid = bouncer.pid().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    };
    signal("-STOP");
    let begun = Instant::now();
    let failed = store.begin(TxMode::Write).unwrap().now();
    let took = begun.elapsed();
    signal("-CONT");
    let text = failed.unwrap_err().to_string();
    assert!(
        text.contains("did not answer in time; nothing was changed"),
        "{text}"
    );
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s03_who_has_locked_nothing_keeps_no_connection_of_a_pooler() {
    let server = PostgresServer::own(&[]);
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    let bouncer = Bouncer::start(&server, PoolMode::Transaction, 1);
    let url = bouncer.url(&schema);
    let (mut one, mut other) = (open(&url), open(&url));
    let mut tx = one.begin(TxMode::Write).unwrap();
    tx.now().unwrap();
    assert_eq!(tx.session(id(1)).unwrap(), None);
    with_sessions(&mut other, [1]);
    // It goes on, and sees what was committed meanwhile.
    assert!(tx.session(id(1)).unwrap().is_some());
}
