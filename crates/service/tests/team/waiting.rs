//! What waited behind a lock, and connections that end while they hold one.

use std::time::Duration;

use tenure_core::id::SessionId;
use tenure_core::policy::Policy;
use tenure_core::store::{Lock, Store, TxMode};
use tenure_service::{GuardRequest, Pick, RenewRequest};
use tenure_testkit::FakeWorld;
use tenure_testkit::postgres::{Asker, PostgresServer};

use super::{Desk, asks, key, made, me};

/// Short, so that a test sees it end.
fn brief() -> Policy {
    Policy {
        lease: Duration::from_millis(300),
        lock_delay: Duration::from_millis(100),
        ..Policy::default()
    }
}

const LONG: Duration = Duration::from_secs(20);

/// Waits until so many connections wait for a lock.
fn until_waiting(asker: &mut Asker, count: usize) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    tenure_testkit::poll(LONG, "a transaction waits for a lock", || {
        let waiting: usize = asker.ask(waiting)[0].parse().unwrap();
        (waiting >= count).then_some(())
    });
}

/// Waits until a connection waits for a transaction of this one.
fn until_blocked_by(asker: &mut Asker, pid: &str) {
    let blocked =
        format!("SELECT count(*) FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid))");
    tenure_testkit::poll(LONG, "a transaction waits for that one", || {
        (asker.ask(&blocked) == ["1"]).then_some(())
    });
}

/// A session that only its lease vouches for: its process is in another namespace.
fn far(url: &str, world: &FakeWorld) -> (Desk, SessionId) {
    let mut inside = world.clone();
    inside.observer.pid_ns = 2;
    let mut far = Desk::new(url, &inside, &[20]);
    far.policy = brief();
    let id = far.register("far").unwrap().session.id;
    (far, SessionId::parse(&id).unwrap())
}

/// The judge saw an expired lease and then waited for the lock behind a renewal.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s01_a_claim_that_waited_behind_a_renewal_is_refused() {
    let server = PostgresServer::own(&[]);
    let url = made(&server);
    let world = FakeWorld::new();
    let (mut far, id) = far(&url, &world);
    far.claim("wp:1").unwrap();
    let mut near = Desk::new(&url, &world, &[30]);
    near.policy = brief();
    near.register("near").unwrap();
    let mut asker = server.asker();
    // The store's time goes on while it is asked for.
    tenure_testkit::poll(LONG, "the lease is over", || {
        let mut tx = far.store.begin(TxMode::Read).unwrap();
        let now = tx.now().unwrap();
        let lease = tx.session(id).unwrap().unwrap().lease;
        // On a shared store the lock delay is twice as long.
        let over = now.steady > lease.at + 250;
        over.then_some(())
    });
    let mut renewal = far.store.begin(TxMode::Write).unwrap();
    renewal.lock(&Lock::Session(id)).unwrap();
    let now = renewal.now().unwrap();
    std::thread::scope(|scope| {
        let claim = scope.spawn(|| near.claim("wp:1"));
        until_waiting(&mut asker, 1);
        let token = renewal.session(id).unwrap().unwrap().token();
        let lease = now.after(Duration::from_secs(600));
        assert!(
            renewal
                .touch_session(token, now.wall, &lease, None, None)
                .unwrap()
        );
        renewal.commit().unwrap();
        let refused = claim.join().unwrap().unwrap_err();
        assert_eq!(refused.kind(), "held");
    });
}

/// The holder was silent, and its renewal waited behind the one who took its key.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s01_a_renewal_that_waited_past_its_lease_brings_no_key_back() {
    let server = PostgresServer::own(&[]);
    let url = made(&server);
    let world = FakeWorld::new();
    let (mut far, id) = far(&url, &world);
    far.claim("wp:1").unwrap();
    let mut near = Desk::new(&url, &world, &[30]);
    near.policy = brief();
    near.register("near").unwrap();
    let mut asker = server.asker();
    // Both wait for the same row: the claim first, so it goes on first. A transaction of ours may not be idle for long.
    let mut gate = server.asker();
    let schema = url.rsplit_once("schema=").unwrap().1;
    gate.ask("BEGIN");
    for row in [
        "claims WHERE key = 'wp:1'".to_owned(),
        format!("sessions WHERE id = '{id}'"),
    ] {
        gate.ask(&format!("SELECT 1 FROM {schema}.{row} FOR NO KEY UPDATE"));
    }
    let (claimed, renewed) = std::thread::scope(|scope| {
        let claim = scope.spawn(|| {
            tenure_testkit::poll(LONG, "the lease is over", || match near.claim("wp:1") {
                Ok(grants) => Some(grants),
                Err(error) => {
                    // A busy machine may let it wait for the row for too long.
                    let goes_on = ["held", "suspect", "store_busy"];
                    assert!(goes_on.contains(&error.kind()), "{error}");
                    None
                }
            })
        });
        until_waiting(&mut asker, 1);
        let renewal = scope.spawn(|| {
            let request = RenewRequest { length: None };
            tenure_testkit::poll(LONG, "the renewal is over", || {
                let renewed = far.call(|service| service.renew(&me(), &request));
                let is_busy = matches!(&renewed, Err(error) if error.kind() == "store_busy");
                (!is_busy).then(|| renewed.map(|_| ()))
            })
        });
        until_waiting(&mut asker, 2);
        gate.ask("COMMIT");
        (claim.join().unwrap(), renewal.join().unwrap())
    });
    assert_eq!(claimed[0].epoch, 2);
    // It lives, and it does not hold what it lost.
    renewed.unwrap();
    assert!(far.claim("wp:1").is_err());
    let request = GuardRequest {
        key: key("wp:1"),
        epoch: None,
    };
    let refused = far.call(|service| service.guard(&me(), &request));
    assert_eq!(refused.unwrap_err().kind(), "lost");
}

/// Two clients, each with a session.
fn two_desks(url: &str, world: &FakeWorld) -> [Desk; 2] {
    let mut desks = [20, 30].map(|pid| Desk::new(url, world, &[pid]));
    for (number, desk) in desks.iter_mut().enumerate() {
        desk.register(&format!("n{number}")).unwrap();
    }
    desks
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s12_a_locked_key_delays_no_renewal() {
    let server = PostgresServer::shared();
    let url = made(&server);
    let world = FakeWorld::new();
    let mut desks = two_desks(&url, &world);
    desks[0].claim("wp:1").unwrap();
    let mut gate = Desk::new(&url, &world, &[40]);
    let mut held = gate.store.begin(TxMode::Write).unwrap();
    held.lock(&Lock::Key(key("wp:1"))).unwrap();
    held.now().unwrap();
    for desk in &mut desks {
        let request = RenewRequest { length: None };
        desk.call(|service| service.renew(&me(), &request)).unwrap();
    }
    // All of that happened while the key was locked.
    assert!(held.claim(&key("wp:1")).unwrap().is_some());
}

/// Both chose the first key and waited for it; one of them must go on to the second.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn any_of_two_keys_moves_on_when_the_chosen_one_is_taken_meanwhile() {
    let server = PostgresServer::own(&[]);
    let url = made(&server);
    let world = FakeWorld::new();
    let mut desks = two_desks(&url, &world);
    let mut asker = server.asker();
    let mut gate = Desk::new(&url, &world, &[40]);
    let mut held = gate.store.begin(TxMode::Write).unwrap();
    held.lock(&Lock::Key(key("wp:1"))).unwrap();
    held.now().unwrap();
    let won = std::thread::scope(|scope| {
        let [one, other] = &mut desks;
        let claim = |desk: &mut Desk| {
            let request = asks(["wp:1", "wp:2"], Pick::Any);
            desk.call(|service| service.claim(&me(), &request)).unwrap()
        };
        let claims = [one, other].map(|desk| scope.spawn(move || claim(desk)));
        until_waiting(&mut asker, 2);
        drop(held);
        claims.map(|claim| claim.join().unwrap()[0].key.clone())
    });
    let mut won = won.to_vec();
    won.sort();
    assert_eq!(won, ["wp:1", "wp:2"]);
}

/// Another was granted the first key while it waited, and it must not keep that one locked while it waits for the
/// second.
#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn any_of_two_keys_locks_only_the_one_that_it_chose() {
    let server = PostgresServer::own(&[]);
    let url = made(&server);
    let world = FakeWorld::new();
    let mut desks = two_desks(&url, &world);
    let mut asker = server.asker();
    let schema = url.rsplit_once("schema=").unwrap().1;
    let [one, other] = &mut desks;
    let holder = one.call(|service| service.own_session(&me())).unwrap();
    let holder = holder.session.id;
    // Without the limits of our own transactions.
    let (mut first, mut second) = (server.asker(), server.asker());
    first.ask(&format!(
        "BEGIN; INSERT INTO {schema}.claims (key, epoch) VALUES ('wp:1', 1); \
         INSERT INTO {schema}.holds (key, epoch, session, life, means, granted_at) \
         VALUES ('wp:1', 1, '{holder}', 1, 'claim', 1)"
    ));
    let row = format!("SELECT 1 FROM {schema}.claims WHERE key");
    second.ask(&format!(
        "INSERT INTO {schema}.claims (key, epoch) VALUES ('wp:2', 0); BEGIN"
    ));
    second.ask(&format!("{row} = 'wp:2' FOR NO KEY UPDATE"));
    let pid = "SELECT pg_backend_pid()";
    let (first_pid, second_pid) = (first.ask(pid).remove(0), second.ask(pid).remove(0));
    let won = std::thread::scope(|scope| {
        let claim = scope.spawn(move || {
            let request = asks(["wp:1", "wp:2"], Pick::Any);
            other.call(|service| service.claim(&me(), &request))
        });
        until_blocked_by(&mut asker, &first_pid);
        first.ask("COMMIT");
        until_blocked_by(&mut asker, &second_pid);
        let free = asker.ask(&format!("{row} = 'wp:1' FOR NO KEY UPDATE SKIP LOCKED"));
        second.ask("COMMIT");
        assert_eq!(free, ["1"], "it keeps a key locked that is another's");
        claim.join().unwrap().unwrap()
    });
    assert_eq!(won[0].key, "wp:2");
}
