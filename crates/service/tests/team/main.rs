//! The use cases on a PostgreSQL store, from many connections: `scripts/test --stage postgres`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]
#![allow(clippy::print_stdout, reason = "what was counted is shown")]

mod dispatchers;
mod forgetting;
mod pairs;
mod trips;
mod waiting;

use std::sync::atomic::{AtomicU32, Ordering};

use tenure_core::id::{AgentName, NativeId};
use tenure_core::key::Key;
use tenure_core::policy::Policy;
use tenure_core::process::Ancestor;
use tenure_core::reason::Reason;
use tenure_core::registration::RegistrationSource;
use tenure_core::session::Workdir;
use tenure_postgres::PostgresStore;
use tenure_postgres::migrate;
use tenure_service::error::Error;
use tenure_service::{
    ActFor, ClaimRequest, Grant, Pick, RegisterRequest, Registered, Reply, Service, Subject,
};
use tenure_store::server::{Access, PostgresUrl};
use tenure_testkit::FakeWorld;
use tenure_testkit::postgres::PostgresServer;

static DESKS: AtomicU32 = AtomicU32::new(0);

fn access(url: &str) -> Access {
    let url = PostgresUrl::parse(url).unwrap();
    Access {
        password: url.password.clone(),
        url,
        root_certificates: None,
        through: None,
    }
}

/// A new store on a server; its URL.
fn made(server: &PostgresServer) -> String {
    let url = server.url(&server.new_schema());
    migrate(&access(&url)).unwrap();
    url
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn worker() -> AgentName {
    AgentName::known("worker")
}

fn native(text: &str) -> NativeId {
    NativeId::parse(text).unwrap()
}

/// Bytes of which no other number makes the same id.
fn bytes(number: u32) -> [u8; 16] {
    let mut left = number;
    std::array::from_fn(|_| {
        let digit = left % 20;
        left /= 20;
        u8::try_from(digit).unwrap()
    })
}

fn me() -> ActFor {
    ActFor::default()
}

fn because(text: &str) -> ActFor {
    ActFor {
        session: None,
        reason: Reason::parse(text).ok(),
    }
}

fn asks<'a>(keys: impl IntoIterator<Item = &'a str>, pick: Pick) -> ClaimRequest {
    ClaimRequest {
        keys: keys.into_iter().map(key).collect(),
        pick,
        request: None,
        once: false,
        reopen: true,
        note: None,
        require_quiet: false,
    }
}

/// One caller with a connection of its own.
struct Desk {
    store: PostgresStore,
    world: FakeWorld,
    /// Itself, its parent, and so on.
    pids: Vec<u32>,
    policy: Policy,
}

impl Desk {
    fn new(url: &str, world: &FakeWorld, pids: &[u32]) -> Desk {
        let number = DESKS.fetch_add(1, Ordering::Relaxed);
        let mut process = [7; 16];
        process[..4].copy_from_slice(&number.to_be_bytes());
        Desk {
            store: PostgresStore::open(access(url), process, None).unwrap(),
            world: world.clone(),
            pids: pids.to_vec(),
            policy: Policy::default(),
        }
    }

    /// The same connection, for a caller with these ancestors.
    fn at(&mut self, pids: &[u32]) -> &mut Self {
        self.pids = pids.to_vec();
        self
    }

    fn call<T>(&mut self, act: impl FnOnce(&mut Service<'_>) -> Reply<T>) -> Result<T, Error> {
        let facts = self.world.facts(&self.pids);
        let mut service = Service::new(&mut self.store, &self.world, &facts, self.policy);
        match act(&mut service) {
            Ok(answer) => Ok(answer.value),
            Err(failure) => Err(failure.error),
        }
    }

    fn chain(&self) -> Vec<Ancestor> {
        self.world.facts(&self.pids).chain
    }

    fn register(&mut self, native_id: &str) -> Result<Registered, Error> {
        let request = RegisterRequest {
            subject: Subject::Given(self.chain()),
            agent: Some(worker()),
            native_id: Some(native(native_id)),
            transcript: None,
            source: RegistrationSource::Start,
            hosted: false,
            workdir: Workdir::default(),
            place_named: false,
            title: None,
            parent: None,
            reason: None,
            metadata: Default::default(),
        };
        self.call(|service| service.register(&request))
    }

    fn claim(&mut self, text: &str) -> Result<Vec<Grant>, Error> {
        let request = asks([text], Pick::All);
        self.call(|service| service.claim(&me(), &request))
    }
}
