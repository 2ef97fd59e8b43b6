//! Databases of other programs, read only.

use std::time::Instant;

use super::connection::{CONNECT, Link, Statement, Wait};
use super::{USE_CASE, error};
use tenure_core::store::StoreError;
use tenure_store::server::Access;

/// The SQLSTATE of a table that does not exist.
const NO_TABLE: &str = "42P01";

/// The rows of a query that selects one text; none if it names a table that is not there.
pub fn texts(access: &Access, query: &str) -> Result<Option<Vec<String>>, StoreError> {
    let store = access.url.location();
    let link = Link::open(access, Instant::now() + CONNECT)
        .map_err(|lost| error::lost(&store, &lost, true))?;
    let asked = [
        Statement::query("START TRANSACTION READ ONLY", Vec::new()),
        Statement::query(query.to_owned(), Vec::new()),
    ];
    let replies = link
        .exchange(&asked, Wait::until(Instant::now() + USE_CASE * 6))
        .map_err(|lost| error::lost(&store, &lost, false))?;
    let mut rows = Vec::new();
    for reply in replies {
        match reply {
            Ok(reply) => rows = reply.rows(),
            Err(fault) if fault.code == NO_TABLE => return Ok(None),
            Err(fault) => return Err(error::classify(&store, &fault)),
        }
    }
    let text = |row: &tokio_postgres::Row| row.try_get::<_, String>(0).unwrap_or_default();
    Ok(Some(rows.iter().map(text).collect()))
}
