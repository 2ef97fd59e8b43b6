//! A connection that breaks around a commit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_core::store::{Mode, Store, StoreError};
use tenure_testkit::conformance::sample::{EPOCH, event, id, session};
use tenure_testkit::postgres::Server;

use super::support::{access, made, open, process};
use tenure_core::time::Timestamp;
use tenure_store::PostgresStore;
use tenure_store::postgres::migrate;

/// A link to a server that can be cut: once it is, it swallows what the server answers to a COMMIT and closes.
struct Cut {
    port: u16,
    cuts: Arc<AtomicBool>,
}

impl Cut {
    fn before(server: &Server) -> Cut {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicBool::new(false));
        let (to, armed) = (server.port(), Arc::clone(&cuts));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is down closes the connection.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", to)) {
                    link(&client, &server, &armed);
                }
            }
        });
        Cut { port, cuts }
    }
}

fn link(client: &TcpStream, server: &TcpStream, armed: &Arc<AtomicBool>) {
    let cut = Arc::new(AtomicBool::new(false));
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (mut back, mut answers) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (armed, seen) = (Arc::clone(armed), Arc::clone(&cut));
    std::thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let commits = buffer[..length].windows(6).any(|text| text == b"COMMIT");
            if commits && armed.swap(false, Ordering::SeqCst) {
                seen.store(true, Ordering::SeqCst);
            }
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(length @ 1..) = answers.read(&mut buffer) {
            if cut.load(Ordering::SeqCst) {
                drop(back.shutdown(Shutdown::Both));
                break;
            }
            if back.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
    });
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_commit_whose_answer_was_lost_is_asked_for_and_found() {
    let server = Server::shared();
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    let cut = Cut::before(&server);
    let url = server.tcp_url(Some(server.password()), &schema);
    let url = url.replace(&format!(":{}/", server.port()), &format!(":{}/", cut.port));
    let mut store = open(&url);
    let mut tx = store.begin(Mode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    tx.append_event(&event(1, "granted"), Timestamp(EPOCH))
        .unwrap();
    cut.cuts.store(true, Ordering::SeqCst);
    tx.commit().unwrap();
    assert!(!cut.cuts.load(Ordering::SeqCst), "the answer was swallowed");
    let mut tx = store.begin(Mode::Read).unwrap();
    assert!(tx.session(id(1)).unwrap().is_some());
    assert_eq!(tx.events(&Default::default()).unwrap().len(), 1);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_commit_that_the_server_ended_is_found_not_to_have_happened() {
    let server = Server::shared();
    let schema = server.new_schema();
    let url = server.url(&schema);
    let mut store = made(&url);
    let mut tx = store.begin(Mode::Write).unwrap();
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
    let found = store.begin(Mode::Read).unwrap().session(id(1)).unwrap();
    assert_eq!(found, None);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_commit_that_nobody_can_ask_about_is_unknown() {
    let mut server = Server::own(&[]);
    let schema = "tenure";
    let url = server.tcp_url(Some(server.password()), schema);
    migrate(&access(&url)).unwrap();
    let cut = Cut::before(&server);
    let url = url.replace(&format!(":{}/", server.port()), &format!(":{}/", cut.port));
    let mut store = PostgresStore::open(access(&url), process(), None).unwrap();
    let mut tx = store.begin(Mode::Write).unwrap();
    tx.insert_session(&session(1)).unwrap();
    server.stop(true);
    let failed = tx.commit().unwrap_err();
    assert!(
        matches!(failed, StoreError::OutcomeUnknown { .. }),
        "{failed}"
    );
}
