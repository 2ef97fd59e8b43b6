//! What goes wrong on the way to a store: each with an error that says what, and nothing changed.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use tenure_core::id::SessionId;
use tenure_core::session::{ClosedBy, Session};
use tenure_core::store::{Lock, SessionFilter, Store, StoreError, TxMode};
use tenure_core::time::Timestamp;
use tenure_postgres::{PostgresStore, migrate, status};
use tenure_store::server::PostgresUrl;
use tenure_testkit::conformance::sample::{EPOCH, closed, id, read, session, with_sessions, write};
use tenure_testkit::postgres::{Bouncer, PoolMode, PostgresServer};

use super::support::{access, made, open, try_open};

/// The text of an error that a first use ends with.
fn refused(url: &str) -> (StoreError, String) {
    let begun = try_open(url, None).and_then(|mut store| {
        let mut tx = store.begin(TxMode::Write)?;
        tx.now().map(|_| ())
    });
    let error = begun.unwrap_err();
    let text = error.to_string();
    assert!(!text.contains("correct horse"), "{text}");
    (error, text)
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_store_that_was_never_created_is_not_created_by_connecting() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    let (error, text) = refused(&server.url(&schema));
    assert!(
        matches!(error, StoreError::Unmigrated { found: 0, .. }),
        "{text}"
    );
    let exists = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'");
    assert_eq!(server.ask(&exists), ["0"]);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_migration_is_repeated_without_a_change_and_beside_others() {
    let server = PostgresServer::shared();
    let url = server.url(&server.new_schema());
    let done = std::thread::scope(|scope| {
        let both = [(), ()].map(|()| scope.spawn(|| migrate(&access(&url)).unwrap()));
        both.map(|one| one.join().unwrap().from)
    });
    assert!(done == [0, 1] || done == [1, 0], "{done:?}");
    with_sessions(&mut open(&url), [1]);
    assert_eq!(migrate(&access(&url)).unwrap().from, 1);
    let found = status(&access(&url)).unwrap();
    assert_eq!(
        (found.schema, found.weak.as_slice()),
        (1, ["fsync = off".to_owned()].as_slice())
    );
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_schema_of_somebody_else_is_left_alone() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    server.run(&format!(
        "CREATE SCHEMA {schema}; CREATE TABLE {schema}.store (schema bigint)"
    ));
    let error = migrate(&access(&server.url(&schema))).unwrap_err();
    assert!(error.to_string().contains("did not create"), "{error}");
    let tables = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'");
    assert_eq!(server.ask(&tables), ["1"]);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s21_a_newer_schema_is_used_as_long_as_it_allows_and_then_refused_with_the_version() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    let url = server.url(&schema);
    let mut store = made(&url);
    server.run(&format!("UPDATE {schema}.store SET schema = 9"));
    with_sessions(&mut store, [1]);
    // The open connection learns it with its next transaction.
    server.run(&format!(
        "UPDATE {schema}.store SET min_writer = 9, needs = '7.0'"
    ));
    let begun = store.begin(TxMode::Read).unwrap().session(id(1));
    assert!(
        matches!(&begun, Err(StoreError::TooNew { found: 9, known: 1, needs, .. }) if needs == "7.0"),
        "{begun:?}"
    );
    server.run(&format!(
        "UPDATE {schema}.store SET schema = 0, min_writer = 0"
    ));
    let (error, text) = refused(&url);
    assert!(
        matches!(error, StoreError::Unmigrated { found: 0, .. }),
        "{text}"
    );
    server.run(&format!(
        "UPDATE {schema}.store SET schema = 1, min_writer = 1"
    ));
    server.run(&format!("DROP TABLE {schema}.lives"));
    let damaged = open(&url)
        .begin(TxMode::Read)
        .unwrap()
        .lives_at_any(&[(&tenure_testkit::conformance::sample::process(1, 1)).into()]);
    assert!(
        matches!(damaged, Err(StoreError::Damaged { .. })),
        "{damaged:?}"
    );
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_role_without_rights_is_told_so_and_one_with_the_documented_rights_may_not_create() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    let role = format!("role_{schema}");
    server.run(&format!("CREATE ROLE {role} LOGIN"));
    let url = server.url_as(&role, &schema);
    let (_, text) = refused(&url);
    assert!(text.contains("lacks a privilege"), "{text}");
    server.run(&format!(
        "GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
         REVOKE UPDATE, DELETE ON {schema}.events FROM {role}; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
    ));
    for (name, case) in tenure_testkit::conformance::CASES.iter().take(30) {
        let tables = format!(
            "TRUNCATE {schema}.sessions, {schema}.events, {schema}.claims, {schema}.notices CASCADE"
        );
        server.run(&tables);
        println!("{name}");
        case(&mut open(&url));
    }
    let other = server.url_as(&role, &server.new_schema());
    let error = migrate(&access(&other)).unwrap_err();
    assert!(error.to_string().contains("lacks a privilege"), "{error}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_member_forgets_its_own_sessions_and_the_owner_of_the_tables_all() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    let mut owner = made(&server.url(&schema));
    let mut members = ["ann", "bob"].map(|name| {
        let role = format!("{name}_{schema}");
        server.run(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
        ));
        open(&server.url_as(&role, &schema))
    });
    for (n, member) in (1..).zip(&mut members) {
        write(member, |tx| {
            let over = Session {
                closed: closed(ClosedBy::End),
                ..session(n)
            };
            tx.insert_session(&over).unwrap();
        });
    }
    let long_after = Timestamp(EPOCH + 100_000);
    let listed = |store: &mut PostgresStore| -> Vec<SessionId> {
        let all = read(store, |tx| tx.closed_before(long_after, None, 9).unwrap());
        all.into_iter().map(|(_, id)| id).collect()
    };
    let [ann, bob] = &mut members;
    assert_eq!(listed(ann), [id(1)]);
    assert_eq!(listed(bob), [id(2)]);
    assert_eq!(listed(&mut owner), [id(1), id(2)]);
    write(ann, |tx| {
        assert_eq!(tx.remove_sessions(&[id(1)]).unwrap(), 1);
    });
    let refused = ann.begin(TxMode::Write).unwrap().remove_sessions(&[id(2)]);
    assert!(refused.is_err(), "{refused:?}");
    write(&mut owner, |tx| {
        assert_eq!(tx.remove_sessions(&[id(1), id(2)]).unwrap(), 1);
    });
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_wrong_password_is_refused_and_never_shown() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    drop(made(&server.tcp_url(Some(server.password()), &schema)));
    for password in [Some("open sesame"), None] {
        let url = server.tcp_url(password, &schema);
        let (_, text) = refused(&url);
        assert!(text.contains("password"), "{text}");
        assert!(!text.contains("sesame"), "{text}");
    }
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_pooler_in_statement_mode_is_refused_with_the_reason() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    let bouncer = Bouncer::start(&server, PoolMode::Statement, 3);
    let (_, text) = refused(&bouncer.url(&schema));
    assert!(text.contains("pool_mode = transaction"), "{text}");
    let session_mode = Bouncer::start(&server, PoolMode::Session, 3);
    with_sessions(&mut open(&session_mode.url(&schema)), [1]);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_server_that_accepts_and_never_answers_costs_three_seconds() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("postgres://ann:secret@127.0.0.1:{port}/work");
    let begun = Instant::now();
    let error = try_open(&url, None).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(2) && took < Duration::from_secs(30),
        "{took:?}"
    );
    // A caller with a limit is told that it is busy.
    let limit = Some(Instant::now() + Duration::from_millis(50));
    let error = try_open(&url, limit).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s23_a_standby_is_refused_for_reading_too() {
    let mut server = PostgresServer::own(&[]);
    let url = server.url("tenure");
    drop(made(&url));
    server.stop(false);
    std::fs::write(server.dir().join("data/standby.signal"), "").unwrap();
    server.start();
    for mode in [TxMode::Read, TxMode::Beat] {
        let mut store = open(&url);
        let asked = store.begin(mode).unwrap().session(id(1));
        let text = asked.unwrap_err().to_string();
        assert!(
            text.contains("standby") || text.contains("read-only"),
            "{text}"
        );
    }
    assert!(status(&access(&url)).unwrap().is_standby);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_server_that_restarts_between_two_transactions_is_not_noticed() {
    let mut server = PostgresServer::own(&[]);
    let url = server.url("tenure");
    let mut store = made(&url);
    with_sessions(&mut store, [1]);
    server.stop(true);
    server.start();
    with_sessions(&mut store, [2]);
    let all = store
        .begin(TxMode::Read)
        .unwrap()
        .list_sessions(&SessionFilter::default());
    assert_eq!(all.unwrap().len(), 2);
    // Within one, nothing was changed.
    let mut tx = store.begin(TxMode::Write).unwrap();
    tx.insert_session(&session(3)).unwrap();
    server.stop(true);
    server.start();
    let text = tx.insert_session(&session(4)).unwrap_err().to_string();
    assert!(text.contains("nothing was changed"), "{text}");
    drop(tx);
    let found = store.begin(TxMode::Read).unwrap().session(id(3)).unwrap();
    assert_eq!(found, None);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_server_without_a_free_connection_says_so() {
    let server =
        PostgresServer::own(&["max_connections = 8", "superuser_reserved_connections = 3"]);
    let url = server.url("tenure");
    drop(made(&url));
    server.run(
        "CREATE ROLE ann LOGIN; GRANT USAGE ON SCHEMA tenure TO ann; \
         GRANT SELECT ON ALL TABLES IN SCHEMA tenure TO ann",
    );
    let url = server.url_as("ann", "tenure");
    let mut used = Vec::new();
    let error = loop {
        match try_open(&url, None) {
            Ok(store) => used.push(store),
            Err(error) => break error,
        }
        assert!(used.len() < 20);
    };
    let text = error.to_string();
    assert!(text.contains("no free connection"), "{text}");
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_lock_that_another_holds_for_too_long_is_busy_and_a_deadlock_a_conflict() {
    let server = PostgresServer::shared();
    let url = server.url(&server.new_schema());
    let (mut one, mut other) = (made(&url), open(&url));
    with_sessions(&mut one, [1, 2]);
    let mut first = one.begin(TxMode::Write).unwrap();
    first.lock(&Lock::Session(id(1))).unwrap();
    first.now().unwrap();
    let mut second = other.begin(TxMode::Write).unwrap();
    second.lock(&Lock::Session(id(1))).unwrap();
    let busy = second.now().unwrap_err();
    assert!(matches!(busy, StoreError::Busy { .. }), "{busy}");
}

#[test]
fn a_url_is_read_before_anything_is_connected_to() {
    assert_eq!(
        PostgresUrl::parse("postgres://a@b:x/c").unwrap_err().part,
        Some("port")
    );
}
