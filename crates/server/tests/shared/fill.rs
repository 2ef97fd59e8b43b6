//! A store that was in use for long.

use tenure_core::world::World;
use tenure_host::clock;
use tenure_host::machine::Machine;
use tenure_host::state_dir::StateDir;
use tenure_store::sqlite::SqliteStore;
use tenure_testkit::Env;
use tenure_testkit::seed::{Seed, seed};

/// Fills the store with this many sessions, of which five never ended.
pub fn fill(env: &Env, sessions: u32) {
    let state = StateDir::open(&env.state()).unwrap();
    let machine = Machine::new(state.host().clone()).unwrap();
    let observer = machine.observer().clone();
    let boot = observer.boot.clone();
    let clock = Box::new(move || clock::now(&boot));
    let mut store = SqliteStore::open(&state.path().join("tenure.db"), clock).unwrap();
    let all = Seed {
        sessions,
        open: 5,
        host: observer.host,
        boot: observer.boot,
        pid_ns: observer.pid_ns,
    };
    seed(&mut store, &all).unwrap();
}
