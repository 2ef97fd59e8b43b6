//! The store itself: what it is, creating or migrating one on a server, and copying one to another place.

use schemars::JsonSchema;
use serde::Serialize;
use tenure_core::time::Timestamp;
use tenure_service::answer::Problem;

use crate::location::{
    StorePlace, argued_place, machine_of, missing_store, settings_and_store, state_dir_instead,
};
use crate::server_store;

/// A store, as people and programs see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreView {
    /// A path, or a URL without its password.
    pub location: String,
    pub backend: Backend,
    /// Whether several machines can use it.
    pub shared: bool,
    /// The version of the server; null for a file.
    pub server: Option<String>,
    /// The role that tenure connects as; null for a file.
    pub role: Option<String>,
    /// The schema of a store on a server.
    pub schema: Option<u32>,
    /// The newest schema that this version of tenure supports on a server.
    pub supported: Option<u32>,
    /// Whether the server is a standby, which tenure cannot use.
    pub standby: bool,
    /// Settings of the server that weaken what tenure promises.
    pub warnings: Vec<String>,
    /// The encoding of the database on a server, which must be UTF8.
    pub encoding: Option<String>,
    /// The clock of a server.
    pub clock: Option<Timestamp>,
    /// The rights on the tables of the store that the role lacks.
    pub missing_rights: Vec<String>,
    /// The schema before a migration; null without one.
    pub migrated_from: Option<u32>,
    /// The store that was copied into this one; null without a copy.
    pub copied_from: Option<String>,
    /// How many rows were copied now; null without a copy.
    pub copied_rows: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    Sqlite,
    Postgres,
}

fn of_file(place: &StorePlace) -> StoreView {
    StoreView {
        location: place.shown(),
        backend: Backend::Sqlite,
        shared: false,
        server: None,
        role: None,
        schema: None,
        supported: None,
        standby: false,
        warnings: Vec::new(),
        encoding: None,
        clock: None,
        missing_rights: Vec::new(),
        migrated_from: None,
        copied_from: None,
        copied_rows: None,
    }
}

/// The status of the store.
pub fn status() -> Result<StoreView, Problem> {
    let (_, place) = settings_and_store()?;
    seen(&place)
}

fn seen(place: &StorePlace) -> Result<StoreView, Problem> {
    let Some(url) = place.server() else {
        return Ok(of_file(place));
    };
    let found = server_store::status(url)?;
    Ok(StoreView {
        location: place.shown(),
        backend: Backend::Postgres,
        shared: true,
        server: Some(found.server),
        role: Some(found.role),
        schema: Some(found.schema),
        supported: Some(found.known),
        standby: found.is_standby,
        warnings: found.weak,
        encoding: Some(found.encoding),
        clock: Some(found.clock),
        missing_rights: found.missing_rights,
        migrated_from: None,
        copied_from: None,
        copied_rows: None,
    })
}

/// Creates a store on a server, or brings it to the newest schema. A file migrates when it is opened.
pub fn migrate() -> Result<StoreView, Problem> {
    let (_, place) = settings_and_store()?;
    let Some(url) = place.server() else {
        return Ok(of_file(&place));
    };
    let done = server_store::migrate(url)?;
    Ok(StoreView {
        migrated_from: Some(done.from),
        ..status()?
    })
}

/// Copies a store into an empty one, which takes its place.
pub fn copy(from: &str, to: &str) -> Result<StoreView, Problem> {
    let (settings, _) = settings_and_store()?;
    let (from, to) = (argued_place(from)?, argued_place(to)?);
    if let Some(missing) = missing_store(&from) {
        return Err(missing);
    }
    let machine = machine_of(&state_dir_instead(&to, &from)?)?;
    let done = server_store::copy(&from, &to, &machine, settings.policy.lease)?;
    Ok(StoreView {
        copied_from: Some(from.shown()),
        copied_rows: Some(done.rows),
        ..seen(&to)?
    })
}

/// The statements that make the views for other programs, if the store is a file; on a server they are there.
pub fn views() -> Result<Views, Problem> {
    let (_, place) = settings_and_store()?;
    Ok(match place.server() {
        None => Views {
            schema: None,
            sql: Some(tenure_store::views::views(&tenure_store::views::TEMPORARY)),
        },
        Some(url) => Views {
            schema: Some(format!("{}_read", url.schema)),
            sql: None,
        },
    })
}

/// Where the views for other programs are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Views {
    /// The schema on the server that has them; null for a file.
    pub schema: Option<String>,
    /// The statements to run first on a connection to the file; null on a server.
    pub sql: Option<String>,
}
