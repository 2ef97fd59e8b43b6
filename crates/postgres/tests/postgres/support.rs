//! Stores on the server that the tests share.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use tenure_core::store::StoreError;
use tenure_postgres::PostgresStore;
use tenure_postgres::migrate;
use tenure_store::server::{Access, PostgresUrl};

static PROCESSES: AtomicU8 = AtomicU8::new(0);

pub fn access(url: &str) -> Access {
    let url = PostgresUrl::parse(url).unwrap();
    Access {
        password: url.password.clone(),
        url,
        root_certificates: None,
        through: None,
    }
}

/// A name for commits that no other store of this process has.
pub fn process() -> [u8; 16] {
    let mut name = [0; 16];
    name[0] = PROCESSES.fetch_add(1, Ordering::Relaxed);
    name[1..5].copy_from_slice(&std::process::id().to_be_bytes());
    name
}

pub fn try_open(url: &str, limit: Option<Instant>) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(access(url), process(), limit)
}

pub fn open(url: &str) -> PostgresStore {
    try_open(url, None).unwrap()
}

/// Creates the store, and opens it.
pub fn made(url: &str) -> PostgresStore {
    migrate(&access(url)).unwrap();
    open(url)
}
