//! Stores on a server, in the program that links the client.
//!
//! `tenure` is started at every tool call of every agent, and its package does not depend on the client. It executes the
//! program beside it as soon as it knows that the store is on a server; that one calls [`link`] first. See
//! docs/decisions/0014-two-executables.md.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::store::Store;
use tenure_core::world::World;
use tenure_host::clock;
use tenure_host::machine::Machine;
use tenure_service::answer::{Class, Hint, Problem};
use tenure_store::copy::{self, Copied, CopyEndpoint};
use tenure_store::server::{
    Access, Greeting, Migrated, Opening, PassOn, PostgresUrl, ServerStores, Status, Through,
    Unreached,
};
use tenure_store::sqlite::SqliteEnd;

use crate::server_access::access;
use crate::store_place::StorePlace;

/// Set once, by the program that links the client.
static LINKED: OnceLock<&'static dyn ServerStores> = OnceLock::new();

/// News about a store for the person, which are known with its first answer.
static NEWS: Mutex<Option<String>> = Mutex::new(None);

/// Whether this program can open a store on a server.
pub fn is_linked() -> bool {
    LINKED.get().is_some()
}

/// Makes stores on servers usable in this program.
pub fn link(stores: &'static dyn ServerStores) {
    LINKED.get_or_init(|| stores);
}

/// Leaves news for the person.
pub fn tell(news: String) {
    *NEWS.lock().unwrap_or_else(PoisonError::into_inner) = Some(news);
}

/// Takes the news that a store on a server had for the person.
pub fn take_news() -> Option<String> {
    NEWS.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn linked() -> Result<&'static dyn ServerStores, Problem> {
    LINKED.get().copied().ok_or_else(|| {
        let message =
            "a store on a server needs tenure-server, which is not in the same directory as tenure";
        Problem::new(
            Class::Store,
            "store_unavailable",
            message.to_owned(),
            Hint::step(INSTALL_BOTH),
        )
    })
}

/// What to do if the program beside `tenure` is missing.
pub const INSTALL_BOTH: &str = "install both programs: cargo install --locked --path crates/cli && \
     cargo install --locked --path crates/server";

/// Opens a store; `dir` is the state directory, `process` is random and names this process's commits.
pub fn open(
    url: &PostgresUrl,
    dir: &Path,
    process: [u8; 16],
    through: Option<Through>,
    until: Option<Instant>,
) -> Result<Box<dyn Store>, Problem> {
    let access = Access {
        through,
        ..access(url)?
    };
    let opening = Opening {
        dir,
        process,
        until,
        // Who has a limit answers an agent.
        tell: until.is_none().then_some(tell),
    };
    Ok(linked()?.open(access, opening)?)
}

/// Passes what commands say on to a store on a server, over one connection.
pub fn relay(place: &StorePlace, greeting: Greeting) -> Result<PassOn, Problem> {
    let StorePlace::Server { url, .. } = place else {
        return Ok(Box::new(|_, _| {}));
    };
    let url = url.clone();
    let accesses = move || {
        access(&url).map_err(|problem| Unreached {
            code: None,
            why: Some(problem.message),
        })
    };
    linked()?
        .relay(Box::new(accesses), greeting)
        .map_err(|error| {
            let message = format!("the keeper cannot start: {error}");
            let hint = Hint::run("keeper", ["status"], "to see whether a keeper runs");
            Problem::new(Class::Internal, "internal", message, hint)
        })
}

pub fn status(url: &PostgresUrl) -> Result<Status, Problem> {
    Ok(linked()?.status(&access(url)?)?)
}

pub fn migrate(url: &PostgresUrl) -> Result<Migrated, Problem> {
    Ok(linked()?.migrate(&access(url)?)?)
}

/// Copies a store into an empty one; open sessions get a new lease.
pub fn copy(
    from: &StorePlace,
    to: &StorePlace,
    machine: &Machine,
    lease: Duration,
) -> Result<Copied, Problem> {
    let mut from = end(from, machine, false)?;
    let mut to = end(to, machine, true)?;
    let name = random_name(machine);
    Ok(copy::copy(from.as_mut(), to.as_mut(), &name, lease)?)
}

pub fn random_name(machine: &Machine) -> String {
    machine.random().map(|byte| format!("{byte:02x}")).concat()
}

/// A store for a copy; `creates` makes one where there is none.
pub fn end(
    place: &StorePlace,
    machine: &Machine,
    creates: bool,
) -> Result<Box<dyn CopyEndpoint>, Problem> {
    match place {
        StorePlace::File(file) => {
            let boot = machine.observer().boot.clone();
            let now = Box::new(move || clock::now(&boot));
            Ok(Box::new(SqliteEnd::open(file, now)?))
        }
        StorePlace::Server { url, .. } => Ok(linked()?.end(access(url)?, creates)?),
    }
}

/// The rows of a query that selects one text, in the database of another program; none if it names a table that is not
/// there.
pub fn texts(url: &PostgresUrl, query: &str) -> Result<Option<Vec<String>>, Problem> {
    Ok(linked()?.texts(&access(url)?, query)?)
}
