//! Stores on a server, as far as a program knows them that links no client: their address, what a connection needs, and
//! the interface ([`ServerStores`]) that the client's crate implements.
//!
//! `tenure` is started at every tool call of every agent, so its package does not depend on the client. The program
//! beside it does, and hands the implementation in before anything else runs.

pub mod passfile;
mod url;

use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tenure_core::store::{Store, StoreError};
use tenure_core::time::Timestamp;

use crate::copy::CopyEndpoint;

pub use url::{Address, BadUrl, PostgresUrl, Secret, SslMode};

/// What is needed to connect.
#[derive(Debug, Clone)]
pub struct Access {
    pub url: PostgresUrl,
    pub password: Option<Secret>,
    /// The content of the file that `sslrootcert` names.
    pub root_certificates: Option<Vec<u8>>,
    /// Another process of this machine that has a connection, if there is one.
    pub through: Option<Through>,
}

/// A way to the server through a process of this machine that has a connection.
#[derive(Clone)]
pub struct Through(pub Arc<Reach>);

/// Asks for a connection until a moment: none if there is no such process, or it does not answer.
pub type Reach = dyn Fn(Instant) -> Result<Option<UnixStream>, Unreached> + Send + Sync;

impl fmt::Debug for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Through")
    }
}

/// Why a process that has a connection cannot reach the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// The SQLSTATE, if the server said so.
    pub code: Option<String>,
    /// None if it did not answer in time.
    pub why: Option<String>,
}

/// The status of a store and its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The version of the server.
    pub server: String,
    /// The role that tenure connects as.
    pub role: String,
    pub schema: u32,
    /// The newest schema that this version supports.
    pub known: u32,
    pub is_standby: bool,
    /// Settings that weaken the guarantees, with their values.
    pub weak: Vec<String>,
    /// The encoding of its database.
    pub encoding: String,
    /// Its clock.
    pub clock: Timestamp,
    /// The rights that the role lacks.
    pub missing_rights: Vec<String>,
    /// Added to every epoch; not zero if history was lost.
    pub base: i64,
    pub events: i64,
}

/// What a migration did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// The schema before; zero if there was no store.
    pub from: u32,
    pub to: u32,
}

/// How to connect, asked before every connection: passwords change.
pub type Accesses = Box<dyn Fn() -> Result<Access, Unreached> + Send>;

/// What a client is told before anything else: whether the server can be reached.
pub type Greeting = fn(Result<(), &Unreached>) -> Vec<u8>;

/// Takes a client over, and passes on what it says; `true` for the first one of this process.
pub type PassOn = Box<dyn Fn(UnixStream, bool)>;

/// How a store on a server is used.
#[derive(Debug)]
pub struct Opening<'a> {
    /// The state directory, where it is remembered what was seen of the store.
    pub dir: &'a Path,
    /// Random; names this process's commits.
    pub process: [u8; 16],
    /// The moment by which every call must end, if the caller has one.
    pub until: Option<Instant>,
    /// Where news about the store for the person go.
    pub tell: Option<fn(String)>,
}

/// What the client can do with a store on a server.
pub trait ServerStores: Send + Sync {
    fn open(&self, access: Access, opening: Opening<'_>) -> Result<Box<dyn Store>, StoreError>;

    /// Passes what other processes say on to a server, over one connection.
    fn relay(&self, accesses: Accesses, greeting: Greeting) -> io::Result<PassOn>;

    fn status(&self, access: &Access) -> Result<Status, StoreError>;

    /// Creates the store, or brings it to the newest schema.
    fn migrate(&self, access: &Access) -> Result<Migrated, StoreError>;

    /// One end of a copy; `creates` makes a store where there is none.
    fn end(&self, access: Access, creates: bool) -> Result<Box<dyn CopyEndpoint>, StoreError>;

    /// The rows of a query that selects one text, in the database of another program; none if it names a table that is
    /// not there.
    fn texts(&self, access: &Access, query: &str) -> Result<Option<Vec<String>>, StoreError>;
}
