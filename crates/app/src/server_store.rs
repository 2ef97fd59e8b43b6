//! Stores on a server, in the program that links the client.
//!
//! `tenure` is started at every tool call of every agent and links no network code. So nothing here
//! names the client except [`link`], which only the other program calls. `tenure` executes that
//! program as soon as it knows that the store is on a server. See
//! docs/decisions/0014-two-executables.md.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::store::Store;
use tenure_core::world::World;
use tenure_host::clock;
use tenure_host::machine::Machine;
use tenure_postgres::PostgresStore;
use tenure_postgres::relay::{Greeting, Relay};
use tenure_postgres::{
    self, Access, Migrated, PostgresEnd, PostgresUrl, Status, Through, Unreached,
};
use tenure_service::answer::{Class, Hint, Problem};
use tenure_store::copy::{self, Copied, End};
use tenure_store::sqlite::SqliteEnd;

use crate::server_access::access;
use crate::store_place::StorePlace;

type Open = fn(
    &PostgresUrl,
    &Path,
    [u8; 16],
    Option<Through>,
    Option<Instant>,
) -> Result<Box<dyn Store>, Problem>;
type PassOn = Box<dyn Fn(UnixStream, bool)>;

/// Rows of one text each; none if the table is not there.
pub type Texts = Result<Option<Vec<String>>, Problem>;

/// The operations on a store on a server.
struct ServerStores {
    open: Open,
    relay: fn(&PostgresUrl, Greeting) -> Result<PassOn, Problem>,
    status: fn(&PostgresUrl) -> Result<Status, Problem>,
    migrate: fn(&PostgresUrl) -> Result<Migrated, Problem>,
    copy: fn(&StorePlace, &StorePlace, &Machine, Duration) -> Result<Copied, Problem>,
    texts: fn(&PostgresUrl, &str) -> Texts,
}

/// Set once, by the program that links them.
static LINKED: OnceLock<ServerStores> = OnceLock::new();

/// News about a store for the person, which are known with its first answer.
static NEWS: Mutex<Option<String>> = Mutex::new(None);

/// Whether this program can open a store on a server.
pub fn is_linked() -> bool {
    LINKED.get().is_some()
}

/// Leaves news for the person.
pub fn tell(news: String) {
    *NEWS.lock().unwrap_or_else(PoisonError::into_inner) = Some(news);
}

/// Takes the news that a store on a server had for the person.
pub fn take_news() -> Option<String> {
    NEWS.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Makes stores on servers usable in this program.
pub fn link() {
    LINKED.get_or_init(|| ServerStores {
        open: |url, dir, process, through, until| {
            let access = Access {
                through,
                ..access(url)?
            };
            let store = PostgresStore::open(access, process, until)?;
            // Who has a limit answers an agent.
            let tell: Option<fn(String)> = until.is_none().then_some(tell);
            Ok(Box::new(store.remembering(dir, tell)))
        },
        relay: |url, greeting| {
            let url = url.clone();
            let access = move || {
                access(&url).map_err(|problem| Unreached {
                    code: None,
                    why: Some(problem.message),
                })
            };
            let relay = Relay::start(Box::new(access), greeting).map_err(|error| {
                let message = format!("the keeper cannot start: {error}");
                let hint = Hint::run("keeper", ["status"], "to see whether a keeper runs");
                Problem::new(Class::Internal, "internal", message, hint)
            })?;
            Ok(Box::new(move |stream, is_first| {
                relay.take(stream, is_first);
            }))
        },
        texts: |url, query| Ok(tenure_postgres::foreign::texts(&access(url)?, query)?),
        status: |url| Ok(tenure_postgres::status(&access(url)?)?),
        migrate: |url| Ok(tenure_postgres::migrate(&access(url)?)?),
        copy: |from, to, machine, lease| {
            let mut from = end(from, machine, false)?;
            let mut to = end(to, machine, true)?;
            let name = machine.random().map(|byte| format!("{byte:02x}")).concat();
            let copied = copy::copy(from.as_mut(), to.as_mut(), &name, lease)?;
            Ok(copied)
        },
    });
}

/// A store for a copy; `creates` makes one where there is none.
fn end(place: &StorePlace, machine: &Machine, creates: bool) -> Result<Box<dyn End>, Problem> {
    Ok(match place {
        StorePlace::File(file) => {
            let boot = machine.observer().boot.clone();
            Box::new(SqliteEnd::open(file, Box::new(move || clock::now(&boot)))?)
        }
        StorePlace::Server { url, .. } => Box::new(PostgresEnd::open(access(url)?, creates)?),
    })
}

fn linked() -> Result<&'static ServerStores, Problem> {
    LINKED.get().ok_or_else(|| {
        let message =
            "a store on a server needs tenure-server, which is not in the same directory as tenure";
        let hint =
            "install both programs: cargo install --path crates/cli, or cargo build -p tenure";
        Problem::new(
            Class::Store,
            "store_unavailable",
            message.to_owned(),
            Hint::step(hint),
        )
    })
}

/// Opens a store; `dir` is the state directory, `process` is random and names this process's commits.
pub fn open(
    url: &PostgresUrl,
    dir: &Path,
    process: [u8; 16],
    through: Option<Through>,
    until: Option<Instant>,
) -> Result<Box<dyn Store>, Problem> {
    (linked()?.open)(url, dir, process, through, until)
}

/// Passes what commands say on to a store on a server, over one connection.
pub fn relay(place: &StorePlace, greeting: Greeting) -> Result<PassOn, Problem> {
    match place {
        StorePlace::Server { url, .. } => (linked()?.relay)(url, greeting),
        StorePlace::File(_) => Ok(Box::new(|_, _| {})),
    }
}

pub fn status(url: &PostgresUrl) -> Result<Status, Problem> {
    (linked()?.status)(url)
}

pub fn migrate(url: &PostgresUrl) -> Result<Migrated, Problem> {
    (linked()?.migrate)(url)
}

/// Copies a store into an empty one; open sessions get a new lease.
pub fn copy(
    from: &StorePlace,
    to: &StorePlace,
    machine: &Machine,
    lease: Duration,
) -> Result<Copied, Problem> {
    (linked()?.copy)(from, to, machine, lease)
}

/// The rows of a query that selects one text, in the database of another program; none if it names a table that is not
/// there.
pub fn texts(url: &PostgresUrl, query: &str) -> Texts {
    (linked()?.texts)(url, query)
}
