//! Stores on a server, in the program that links the client.
//!
//! `tenure` is started at every tool call of every agent and links no network code. So nothing here
//! names the client except [`link`], which only the other program calls. `tenure` executes that
//! program as soon as it knows that the store is on a server. See
//! docs/decisions/0014-two-executables.md.

use std::sync::OnceLock;
use std::time::Instant;

use tenure_core::store::Store;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_store::PostgresStore;
use tenure_store::postgres::{self, Migrated, PostgresUrl, Status};

use crate::server_access::access;

type Open = fn(&PostgresUrl, [u8; 16], Option<Instant>) -> Result<Box<dyn Store>, Problem>;

/// The operations on a store on a server.
struct ServerStores {
    open: Open,
    status: fn(&PostgresUrl) -> Result<Status, Problem>,
    migrate: fn(&PostgresUrl) -> Result<Migrated, Problem>,
}

/// Set once, by the program that links them.
static LINKED: OnceLock<ServerStores> = OnceLock::new();

/// Makes stores on servers usable in this program.
pub fn link() {
    LINKED.get_or_init(|| ServerStores {
        open: |url, process, until| {
            let store = PostgresStore::open(access(url)?, process, until)?;
            Ok(Box::new(store))
        },
        status: |url| Ok(postgres::status(&access(url)?)?),
        migrate: |url| Ok(postgres::migrate(&access(url)?)?),
    });
}

fn linked() -> Result<&'static ServerStores, Problem> {
    LINKED.get().ok_or_else(|| {
        let message =
            "a store on a server needs tenure-server, which could not be started from beside tenure";
        let hint = "install both programs: cargo install --path crates/cli, or cargo build -p tenure";
        Problem::new(
            Class::Store,
            "store_unavailable",
            message.to_owned(),
            Hint::step(hint),
        )
    })
}

/// Opens a store; `process` is random and makes the names of this process's commits unique.
pub fn open(
    url: &PostgresUrl,
    process: [u8; 16],
    until: Option<Instant>,
) -> Result<Box<dyn Store>, Problem> {
    (linked()?.open)(url, process, until)
}

pub fn status(url: &PostgresUrl) -> Result<Status, Problem> {
    (linked()?.status)(url)
}

pub fn migrate(url: &PostgresUrl) -> Result<Migrated, Problem> {
    (linked()?.migrate)(url)
}
