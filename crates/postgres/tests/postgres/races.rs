//! Many users at once.

use tenure_core::id::Epoch;
use tenure_core::store::{ClaimFilter, Lock, Store, StoreError, TxMode};
use tenure_testkit::conformance::sample::{hold, id, key, with_sessions};
use tenure_testkit::postgres::{Bouncer, PoolMode, PostgresServer};

use super::support::{made, open};

const USERS: u32 = 32;
const KEYS: u32 = 200;

/// Takes a key if nobody has it; whether it did.
fn take(store: &mut dyn Store, name: &str, user: u32) -> Result<bool, StoreError> {
    let mut tx = store.begin(TxMode::Write)?;
    tx.lock(&Lock::Key(key(name)))?;
    tx.lock(&Lock::Session(id(user)))?;
    tx.now()?;
    let record = tx.lock_claim(&key(name))?;
    if record.epoch != Epoch::NONE {
        return Ok(false);
    }
    tx.insert_hold(&hold(name, 1, user), record.epoch)?;
    tx.append_event(
        &tenure_testkit::conformance::sample::event(user, name),
        tenure_core::time::Timestamp(0),
    )?;
    tx.commit().map(|()| true)
}

fn race(urls: &(dyn Fn() -> String + Sync)) {
    with_sessions(&mut open(&urls()), 0..USERS);
    let won: Vec<u32> = std::thread::scope(|scope| {
        let users: Vec<_> = (0..USERS)
            .map(|user| {
                scope.spawn(move || {
                    let mut store = open(&urls());
                    let mut won = 0;
                    for turn in 0..KEYS {
                        // Each begins elsewhere, so that they meet everywhere.
                        let name = format!("wp:{:03}", (turn + user * 7) % KEYS);
                        loop {
                            match take(&mut store, &name, user) {
                                Ok(took) => break won += u32::from(took),
                                Err(StoreError::Conflict | StoreError::Busy { .. }) => {}
                                Err(error) => panic!("{name}: {error}"),
                            }
                        }
                    }
                    won
                })
            })
            .collect();
        users.into_iter().map(|user| user.join().unwrap()).collect()
    });
    assert_eq!(won.iter().sum::<u32>(), KEYS, "{won:?}");
    let mut store = open(&urls());
    let mut tx = store.begin(TxMode::Read).unwrap();
    let held = tx.list_claims(&ClaimFilter::default()).unwrap();
    assert_eq!(held.len(), 200);
    let events = tx.events(&Default::default()).unwrap();
    assert_eq!(events.len(), 200);
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn of_32_users_one_wins_each_of_200_keys() {
    let server = PostgresServer::shared();
    let url = server.url(&server.new_schema());
    drop(made(&url));
    race(&|| url.clone());
}

#[test]
#[ignore = "needs a server: scripts/test --stage postgres"]
fn f_s03_the_same_through_a_pooler_with_three_connections() {
    let server = PostgresServer::shared();
    let schema = server.new_schema();
    drop(made(&server.url(&schema)));
    let bouncer = Bouncer::start(&server, PoolMode::Transaction, 3);
    race(&|| bouncer.url(&schema));
}
