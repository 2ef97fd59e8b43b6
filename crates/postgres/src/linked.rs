//! What a program that links this crate can do with stores on servers.

use std::io;

use tenure_core::store::{Store, StoreError};
use tenure_store::copy::CopyEndpoint;
use tenure_store::server::{
    Access, Accesses, Greeting, Migrated, Opening, PassOn, ServerStores, Status,
};

use super::relay::Relay;
use super::{PostgresEnd, PostgresStore, foreign, migrate, status};

/// Stores on PostgreSQL servers.
#[derive(Debug)]
pub struct Postgres;

impl ServerStores for Postgres {
    fn open(&self, access: Access, opening: Opening<'_>) -> Result<Box<dyn Store>, StoreError> {
        let store = PostgresStore::open(access, opening.process, opening.until)?;
        Ok(Box::new(store.remembering(opening.dir, opening.tell)))
    }

    fn relay(&self, accesses: Accesses, greeting: Greeting) -> io::Result<PassOn> {
        let relay = Relay::start(accesses, greeting)?;
        Ok(Box::new(move |client, is_first| {
            relay.take(client, is_first);
        }))
    }

    fn status(&self, access: &Access) -> Result<Status, StoreError> {
        status(access)
    }

    fn migrate(&self, access: &Access) -> Result<Migrated, StoreError> {
        migrate(access)
    }

    fn end(&self, access: Access, creates: bool) -> Result<Box<dyn CopyEndpoint>, StoreError> {
        Ok(Box::new(PostgresEnd::open(access, creates)?))
    }

    fn texts(&self, access: &Access, query: &str) -> Result<Option<Vec<String>>, StoreError> {
        foreign::texts(access, query)
    }
}
