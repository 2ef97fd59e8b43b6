//! A connection that breaks around a commit.

use tenure_core::store::{Store, StoreError, TxMode};
use tenure_testkit::conformance::sample::{EPOCH, event, id, session};
use tenure_testkit::postgres::{Cut, PostgresServer};

use super::support::{access, made, open, process};
use tenure_core::time::Timestamp;
use tenure_postgres::PostgresStore;
use tenure_postgres::migrate;

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_commit_whose_answer_was_lost_is_asked_for_and_found() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    let cut = Cut::before(&server);
    let url = server.tcp_url(Some(server.password()), &schema);
    let mut store = open(&cut.url(&url));
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    tx.append_event(&event(1, "granted"), Timestamp(EPOCH))
        .unwrap();
    cut.at_next_commit();
    tx.commit().unwrap();
    assert!(cut.has_cut(), "the answer was swallowed");
    let mut tx = store.begin(TxMode::Read).unwrap();
    assert!(tx.session(id(1)).unwrap().is_some());
    assert_eq!(tx.events(&Default::default()).unwrap().len(), 1);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_commit_that_the_server_ended_is_found_not_to_have_happened() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    let url = server.url(&schema);
    let mut store = made(&url);
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    tx.append_event(&event(1, "granted"), Timestamp(EPOCH))
        .unwrap();
    // Its COMMIT waits for the counter, which another transaction holds, until it is ended there.
    let failed = std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            server.run(&format!(
                "BEGIN; UPDATE {schema}.counter SET number = number; SELECT pg_sleep(0.3); \
                 SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE query = 'COMMIT' AND wait_event_type = 'Lock'; ROLLBACK"
            ));
        });
        let locked = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%{schema}.counter SET%' \
             AND wait_event = 'PgSleep'"
        );
        tenure_testkit::poll(
            std::time::Duration::from_secs(20),
            "the counter is held",
            || (server.ask(&locked) == ["1"]).then_some(()),
        );
        let failed = tx.commit();
        holder.join().unwrap();
        failed
    });
    let text = failed.unwrap_err().to_string();
    assert!(text.contains("nothing was changed"), "{text}");
    let found = store.begin(TxMode::Read).unwrap().session(id(1)).unwrap();
    assert_eq!(found, None);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_commit_that_nobody_can_ask_about_is_unknown() {
    let mut server = PostgresServer::own(&[]);
    let schema = "tenure";
    let url = server.tcp_url(Some(server.password()), schema);
    migrate(&access(&url)).unwrap();
    let cut = Cut::before(&server);
    let mut store = PostgresStore::open(access(&cut.url(&url)), process(), None).unwrap();
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    server.stop(true);
    let failed = tx.commit().unwrap_err();
    assert!(
        matches!(failed, StoreError::OutcomeUnknown { .. }),
        "{failed}"
    );
}

/// The server has committed, but the standby that it waits for has not confirmed that.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_commit_that_no_standby_confirmed_is_unknown() {
    let mut server = PostgresServer::own(&[]);
    let url = server.url("tenure");
    drop(made(&url));
    server.run("ALTER SYSTEM SET synchronous_standby_names = 'absent'");
    // A reload takes effect some time later; a start has it from its first commit.
    server.stop(false);
    server.start();
    let mut store = PostgresStore::open(access(&url), process(), None).unwrap();
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    let failed = std::thread::scope(|scope| {
        let cancels = scope.spawn(|| {
            let give_up = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
                 WHERE wait_event = 'SyncRep'";
            tenure_testkit::poll(
                std::time::Duration::from_secs(20),
                "it waits for the standby",
                || (server.ask(give_up) == ["t"]).then_some(()),
            );
        });
        let failed = tx.commit();
        cancels.join().unwrap();
        failed
    });
    assert!(
        matches!(&failed, Err(StoreError::OutcomeUnknown { .. })),
        "{failed:?}"
    );
    let found = store.begin(TxMode::Read).unwrap().session(id(1)).unwrap();
    assert!(found.is_some(), "it is on the server's own disk");
}
