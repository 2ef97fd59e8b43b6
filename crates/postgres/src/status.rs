//! What `tenure store status` reports about a server.

use std::time::Instant;

use tenure_core::store::StoreError;
use tenure_core::time::Timestamp;
use tokio_postgres::Row;

use super::connection::{CALL, CONNECT, Link, Statement, Wait};
use super::error;
use super::migrations::{self, NEWEST};
use tenure_store::server::{Access, Status};
use tenure_store::value::params;

const SERVER: &str = "SELECT current_setting('server_version'), session_user::text, pg_is_in_recovery(), \
     current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('server_encoding'), \
     (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The rights that docs/team.md lists and that this role lacks. Only a sequence may be asked about as one, and the server
/// orders conditions as it likes, so `CASE` says it.
const MISSING_RIGHTS: &str = "SELECT wanted || ' on ' || c.relname \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, \
     (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS rights(wanted) \
     WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT has_table_privilege(c.oid, wanted) \
     AND NOT (c.relname = 'events' AND wanted IN ('UPDATE', 'DELETE')) \
     UNION ALL SELECT 'USAGE on ' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE n.nspname = $1 AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE') ELSE false END \
     ORDER BY 1";

pub fn status(access: &Access) -> Result<Status, StoreError> {
    let store = access.url.location();
    let schema = &access.url.schema;
    let link = Link::open(access, Instant::now() + CONNECT)
        .map_err(|lost| error::lost(&store, &lost, true))?;
    let about = format!("SELECT schema, epoch_base, number FROM {schema}.store, {schema}.counter");
    let asked = [
        Statement::query(SERVER, Vec::new()),
        Statement::query(about, Vec::new()),
        Statement::query(MISSING_RIGHTS, params![schema.clone()].to_vec()),
    ];
    let replies = link
        .exchange(&asked, Wait::until(Instant::now() + CALL))
        .map_err(|lost| error::lost(&store, &lost, false))?;
    let mut rows = Vec::new();
    for reply in replies {
        match reply {
            Ok(reply) => rows.push(reply.rows()),
            Err(fault) => return Err(migrations::first_fault(&store, &fault)),
        }
    }
    let rows: Vec<&[Row]> = rows.iter().map(Vec::as_slice).collect();
    let [[server], [about], missing] = rows.as_slice() else {
        return Err(StoreError::Damaged {
            store,
            why: "table store or counter is empty".to_owned(),
        });
    };
    let text = |index: usize| server.try_get::<_, String>(index).unwrap_or_default();
    let number = |index: usize| about.try_get::<_, i64>(index).unwrap_or_default();
    let mut weak = Vec::new();
    for (index, name) in [
        (3, "fsync"),
        (4, "full_page_writes"),
        (5, "synchronous_commit"),
    ] {
        if text(index) == "off" {
            weak.push(format!("{name} = off"));
        }
    }
    Ok(Status {
        server: text(0),
        role: text(1),
        schema: u32::try_from(number(0)).unwrap_or_default(),
        known: NEWEST,
        is_standby: server.try_get::<_, bool>(2).unwrap_or_default(),
        weak,
        encoding: text(6),
        clock: Timestamp(server.try_get(7).unwrap_or_default()),
        missing_rights: missing
            .iter()
            .filter_map(|row| row.try_get(0).ok())
            .collect(),
        base: number(1),
        events: number(2),
    })
}
