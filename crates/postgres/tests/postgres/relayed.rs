//! Stores through a relay: many clients, one connection.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::store::{Lock, Store, StoreError, TxMode};
use tenure_postgres::PostgresStore;
use tenure_postgres::relay::Relay;
use tenure_store::server::{Access, Through, Unreached};
use tenure_testkit::conformance::sample::{id, key, session, with_sessions};
use tenure_testkit::poll;
use tenure_testkit::postgres::{PostgresServer, Proxy};

use super::support::{access, made, process};

/// How long a server may be busy with other tests.
const BUSY: Duration = Duration::from_secs(30);

/// A relay to a server, and the way through it.
pub struct Relayed {
    _relay: Arc<Relay>,
    access: Access,
}

/// The first byte says whether the server was reached; why not comes after it.
fn greeting(reached: Result<(), &Unreached>) -> Vec<u8> {
    match reached {
        Ok(()) => b"+\n".to_vec(),
        Err(unreached) => format!("-{}\n", unreached.why.clone().unwrap_or_default()).into_bytes(),
    }
}

fn greeted(mut stream: UnixStream) -> Result<Option<UnixStream>, Unreached> {
    let mut said = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        said.push(byte[0]);
    }
    if said == b"+" {
        return Ok(Some(stream));
    }
    let why = String::from_utf8_lossy(&said[1..]).into_owned();
    Err(Unreached {
        code: None,
        why: Some(why),
    })
}

impl Relayed {
    pub fn to(access: Access) -> Self {
        let own = access.clone();
        let relay = Arc::new(Relay::start(Box::new(move || Ok(own.clone())), greeting).unwrap());
        let takes = Arc::clone(&relay);
        let through = Through(Arc::new(move |_| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            takes.take(theirs, false);
            greeted(ours)
        }));
        Self {
            _relay: relay,
            access: Access {
                through: Some(through),
                ..access
            },
        }
    }

    pub fn try_open(&self) -> Result<PostgresStore, StoreError> {
        PostgresStore::open(self.access.clone(), process(), None)
    }

    /// Opens it; a server that many tests share may answer later than a connection waits.
    pub fn open(&self) -> PostgresStore {
        poll(BUSY, "the server answers", || match self.try_open() {
            Err(StoreError::Unavailable { .. }) => None,
            opened => Some(opened.unwrap()),
        })
    }
}

/// A relay to a new store, with the URL of the store.
fn relayed() -> (PostgresServer, String, Relayed) {
    let server = PostgresServer::shared();
    let url = server.url(&server.new_schema());
    drop(made(&url));
    let relayed = Relayed::to(access(&url));
    (server, url, relayed)
}

mod conformance {
    use super::*;

    fn run(case: fn(&mut dyn Store)) {
        let (_server, _, relayed) = relayed();
        case(&mut relayed.open());
    }

    tenure_testkit::conformance!(ignored run);
}

/// How many connections a server has, besides the one that asks.
fn connections(server: &PostgresServer) -> usize {
    let all = server.ask(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure' AND pid <> pg_backend_pid()",
    );
    all[0].parse().unwrap()
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn many_clients_use_one_connection() {
    let server = PostgresServer::own(&[]);
    let url = server.url("tenure");
    drop(made(&url));
    let relayed = Relayed::to(access(&url));
    std::thread::scope(|scope| {
        for user in 1..=32 {
            let relayed = &relayed;
            scope.spawn(move || {
                let mut store = relayed.open();
                with_sessions(&mut store, [user]);
            });
        }
    });
    let mut store = relayed.open();
    let mut tx = store.begin(TxMode::Read).unwrap();
    for user in 1..=32 {
        assert!(tx.session(id(user)).unwrap().is_some(), "{user}");
    }
    drop(tx);
    assert_eq!(connections(&server), 1);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn what_a_client_left_open_is_rolled_back_before_the_next_one() {
    let (_server, _, relayed) = relayed();
    let mut gone = relayed.open();
    let mut tx = gone.begin(TxMode::Write).unwrap();
    tx.lock(&Lock::Key(key("wp:left"))).unwrap();
    tx.insert_session(&session(7)).unwrap();
    assert!(tx.session(id(7)).unwrap().is_some());
    // As if its process were killed: nothing is said to the server.
    std::mem::forget(tx);
    drop(gone);
    let mut next = relayed.open();
    let mut tx = next.begin(TxMode::Write).unwrap();
    tx.lock(&Lock::Key(key("wp:left"))).unwrap();
    assert!(tx.session(id(7)).unwrap().is_none());
    tx.commit().unwrap();
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_client_that_stands_still_in_a_transaction_holds_up_nobody_for_long() {
    let (_server, _, relayed) = relayed();
    let mut still = relayed.open();
    let mut tx = still.begin(TxMode::Write).unwrap();
    tx.lock(&Lock::Key(key("wp:still"))).unwrap();
    tx.insert_session(&session(1)).unwrap();
    assert!(tx.session(id(1)).unwrap().is_some());
    // The server ends the transaction of the one that says nothing.
    let mut other = relayed.open();
    with_sessions(&mut other, [2]);
    assert!(tx.commit().is_err());
    let mut tx = other.begin(TxMode::Read).unwrap();
    assert!(tx.session(id(1)).unwrap().is_none());
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_relay_connects_again_when_the_server_is_back() {
    let mut server = PostgresServer::own(&[]);
    let url = server.url("tenure");
    drop(made(&url));
    let relayed = Relayed::to(access(&url));
    let mut store = relayed.open();
    with_sessions(&mut store, [1]);
    server.stop(true);
    let text = relayed.try_open().unwrap_err().to_string();
    assert!(text.contains("cannot be reached"), "{text}");
    server.start();
    // The client that was there before goes on, too.
    with_sessions(&mut store, [2]);
    with_sessions(&mut relayed.open(), [3]);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn a_lost_answer_to_a_commit_is_looked_up_through_the_relay() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    let proxy = Proxy::start(server.port());
    let direct = server.tcp_url(Some(server.password()), &schema);
    let port = format!(":{}", server.port());
    let url = direct.replace(&port, &format!(":{}", proxy.port()));
    let relayed = Relayed::to(access(&url));
    let mut store = relayed.open();
    proxy.leave_commits_unanswered(1);
    with_sessions(&mut store, [1]);
    assert_eq!(proxy.unanswered_left(), 0);
    let mut tx = store.begin(TxMode::Read).unwrap();
    assert!(tx.session(id(1)).unwrap().is_some());
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn half_a_message_holds_up_nobody_for_long() {
    use std::io::Write;
    let (_server, _, relayed) = relayed();
    let reach = relayed.access.through.clone().unwrap();
    let mut half = (reach.0)(std::time::Instant::now()).unwrap().unwrap();
    // A client that says hello, and then begins a query that it does not end.
    half.write_all(b"\0\0\0\x08\0\x03\0\0").unwrap();
    half.read_exact(&mut [0; 15]).unwrap();
    half.write_all(b"Q\0\0\0\x20SELECT").unwrap();
    with_sessions(&mut relayed.open(), [1]);
    // It was dropped.
    assert_eq!(half.read(&mut [0]).unwrap(), 0);
}
