//! The schema and how it grows.
//!
//! Each migration is a numbered file that only adds. All missing ones run in one transaction, under
//! a lock that excludes other migrating processes. The same transaction writes the row of `store`
//! that describes the result: its number, the oldest schema whose binaries may still write, and the
//! tenure version of those binaries. Only `tenure store migrate` runs them, so connecting needs no
//! permission to create anything.
//!
//! *Crash*: a migration happens completely or not at all. *Clock jump*: the clock's row starts with
//! the server's clock. *Older version*: a store with a newer schema is used as long as `min_writer`
//! allows it; otherwise it is refused and not changed. The first statement of every transaction
//! checks this, because another process may migrate at any time.

use std::time::{Duration, Instant};

use tenure_core::store::{StoreError, TxMode};
use tokio_postgres::Row;

use super::connection::{
    CONNECT, ConnectionLoss, Link, ServerError, Statement, StatementResult, Wait,
};
use super::dialect::translated_schema;
use super::{error, older};
use tenure_store::params;
use tenure_store::server::{Access, Migrated};
use tenure_store::views::{ViewDialect, views};

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
struct Migration {
    /// Its number; the first is 1, with no gaps.
    number: u32,
    /// What it adds.
    sql: fn() -> String,
    /// The oldest schema whose binaries may still write after it.
    min_writer: u32,
    /// The oldest tenure that may still write after it.
    needs: &'static str,
}

/// All steps, in order. Nothing is released yet, so there is one, and it is edited in place.
const MIGRATIONS: &[Migration] = &[Migration {
    number: 1,
    sql: first_schema,
    min_writer: 1,
    needs: "0.1.0",
}];

/// The tables of every engine, and those that only a server has.
fn first_schema() -> String {
    let shared = translated_schema(tenure_store::SCHEMA);
    format!("{shared}\n{}", include_str!("own.sql"))
}

/// The views that other programs may read, in a schema of their own: a role that may read only that sees nothing else.
fn read_views(schema: &str) -> String {
    let read = format!("{schema}_read");
    let create = format!("CREATE OR REPLACE VIEW {read}.");
    let views = views(&ViewDialect {
        create: &create,
        tables: &format!("{schema}."),
        at: "to_timestamp({} / 1000.0)",
        epoch: &format!("({{}} + (SELECT epoch_base FROM {schema}.store))"),
    });
    format!("CREATE SCHEMA IF NOT EXISTS {read};\n{views}")
}

/// The newest schema that this version supports.
pub(super) const NEWEST: u32 = MIGRATIONS.len() as u32;

/// How long a migration may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes the commit of a transaction wait until it is on disk and on the standbys that the server waits for, whatever
/// the role has set.
pub(super) const DURABLE: &str = "set_config('synchronous_commit', \
     CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)";

/// What is asked first in every transaction, and how long its commit waits: for nothing, or until it is on disk and on
/// the standbys that the server waits for. The schema is named, so that a missing right to it is not a missing store.
///
/// The parameters are what is remembered: stores, positions and names of events. An event that retention removed is not
/// lost: the ones after it are there.
pub(super) fn about(mode: TxMode, schema: &str) -> String {
    let durability = match mode {
        TxMode::Read => String::new(),
        TxMode::Write => format!(", {DURABLE}"),
        TxMode::Beat => ", set_config('synchronous_commit', 'off', true)".to_owned(),
    };
    format!(
        "SELECT store.schema, store.min_writer, store.needs, store.epoch_base, store.moved_to, pg_is_in_recovery(), \
         store.copied_from, store.id, store.news, newest.id, newest.uid, \
         (SELECT NOT EXISTS (SELECT 1 FROM {schema}.events e WHERE e.id = seen.cursor AND e.uid = seen.uid) \
         AND coalesce((SELECT min(e.id) FROM {schema}.events e) <= seen.cursor, true) \
         FROM unnest($1, $2, $3) seen (store, cursor, uid) WHERE seen.store = store.id){durability} \
         FROM {schema}.store LEFT JOIN LATERAL (SELECT e.id, e.uid FROM {schema}.events e WHERE e.id IS NOT NULL \
         ORDER BY e.id DESC LIMIT 1) newest ON true"
    )
}

/// What the first statement of a transaction brought.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    /// The store's own id.
    pub(super) id: String,
    /// What is added to every epoch.
    pub(super) base: i64,
    /// The last incident.
    pub(super) news: Option<String>,
    /// The position and the name of the newest event.
    pub(super) newest: Option<(i64, String)>,
    /// Whether an event that is remembered is not there.
    pub(super) lacks_event: bool,
}

/// A store without a schema, or with an older one.
pub(super) fn unmigrated(store: &str, found: u32) -> StoreError {
    StoreError::Unmigrated {
        store: store.to_owned(),
        found,
        known: NEWEST,
    }
}

/// An error of the first statement, which reads what the store says about itself.
pub(super) fn first_fault(store: &str, fault: &ServerError) -> StoreError {
    match fault.code.as_str() {
        "42P01" | "3F000" => unmigrated(store, 0),
        "42703" => StoreError::Unavailable {
            store: store.to_owned(),
            why: "a development build of tenure created it; name another schema with ?schema= or drop this one"
                .to_owned(),
        },
        _ => error::classify(store, fault),
    }
}

fn damaged(store: &str, why: impl Into<String>) -> StoreError {
    StoreError::Damaged {
        store: store.to_owned(),
        why: why.into(),
    }
}

/// Compares a store's schema with the known one, and whether it can be used at all.
pub(super) fn check(store: &str, about: Option<&Row>) -> Result<About, StoreError> {
    let row = about.ok_or_else(|| damaged(store, "table store is empty"))?;
    let number = |index: usize| -> Result<i64, StoreError> {
        let found = row.try_get::<_, i64>(index);
        found.map_err(|error| damaged(store, format!("table store: {error}")))
    };
    let known = |index: usize| -> Result<u32, StoreError> {
        let found = number(index)?;
        u32::try_from(found).map_err(|_| damaged(store, format!("its schema number is {found}")))
    };
    let text = |index: usize| row.try_get::<_, Option<String>>(index).ok().flatten();
    if row.try_get::<_, bool>(5).unwrap_or_default() {
        return Err(StoreError::Unavailable {
            store: store.to_owned(),
            why: "it is a standby, which cannot be written; connect to the primary server"
                .to_owned(),
        });
    }
    if let Some(to) = text(4) {
        let store = store.to_owned();
        return Err(StoreError::Moved { store, to });
    }
    if let Some(from) = text(6) {
        let store = store.to_owned();
        return Err(StoreError::Unfinished { store, from });
    }
    let (found, min_writer) = (known(0)?, known(1)?);
    if found < NEWEST {
        return Err(unmigrated(store, found));
    }
    if min_writer > NEWEST {
        return Err(StoreError::TooNew {
            store: store.to_owned(),
            found,
            known: NEWEST,
            needs: text(2).unwrap_or_default(),
        });
    }
    let newest = row.try_get::<_, Option<i64>>(9).ok().flatten();
    Ok(About {
        id: text(7).unwrap_or_default(),
        base: number(3)?,
        news: text(8),
        newest: newest.zip(text(10)),
        lacks_event: row
            .try_get::<_, Option<bool>>(11)
            .ok()
            .flatten()
            .unwrap_or_default(),
    })
}

/// What the schema contains before a migration.
enum SchemaState {
    Nothing,
    Ours(u32),
    /// Tables that are not tenure's.
    Foreign,
}

/// Creates the store, or brings it to the newest schema.
pub fn migrate(access: &Access) -> Result<Migrated, StoreError> {
    let store = access.url.location();
    let schema = &access.url.schema;
    let lost = |lost: ConnectionLoss| error::lost(&store, &lost, true);
    let fault = |fault: ServerError| first_fault(&store, &fault);
    let link = Link::open(access, Instant::now() + CONNECT).map_err(lost)?;
    let run = |statements: &[Statement]| -> Result<Vec<StatementResult>, StoreError> {
        let until = Instant::now() + LIMIT;
        let replies = link
            .exchange(statements, Wait::until(until))
            .map_err(lost)?;
        replies
            .into_iter()
            .map(|reply| reply.map_err(fault))
            .collect()
    };
    let name = format!("tenure migrate {schema}");
    run(&[
        Statement::batch("BEGIN"),
        Statement::query(
            "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
            params![name].to_vec(),
        ),
    ])?;
    let encoding = run(&[Statement::query(
        "SELECT current_setting('server_encoding')",
        Vec::new(),
    )])?;
    let encoding = encoding.into_iter().next();
    let encoding = encoding.and_then(|reply| reply.rows().pop()?.try_get::<_, String>(0).ok());
    if let Some(other) = encoding.filter(|encoding| encoding != "UTF8") {
        let why = format!(
            "the encoding of its database is {other}; create a database with ENCODING 'UTF8' and name that"
        );
        return Err(StoreError::Unavailable { store, why });
    }
    let from = match found(&run, schema)? {
        SchemaState::Nothing => 0,
        SchemaState::Ours(number) => number,
        SchemaState::Foreign => {
            return Err(StoreError::Unavailable {
                store: store.clone(),
                why: format!(
                    "schema {schema} has tables that tenure did not create; name another one with ?schema="
                ),
            });
        }
    };
    if from > NEWEST {
        return Ok(Migrated { from, to: from });
    }
    if from < NEWEST {
        older::refuse_while_in_use(&run, schema, &store)?;
    }
    let mut steps = vec![Statement::batch(format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; SET LOCAL search_path = {schema}"
    ))];
    for step in MIGRATIONS.iter().filter(|step| step.number > from) {
        steps.push(Statement::batch((step.sql)()));
        steps.push(Statement::execute(
            "UPDATE store SET schema = $1, min_writer = $2, needs = $3",
            params![step.number, step.min_writer, step.needs].to_vec(),
        ));
    }
    steps.push(Statement::batch(read_views(schema)));
    steps.push(Statement::batch("COMMIT"));
    run(&steps)?;
    Ok(Migrated { from, to: NEWEST })
}

fn found(
    run: &impl Fn(&[Statement]) -> Result<Vec<StatementResult>, StoreError>,
    schema: &str,
) -> Result<SchemaState, StoreError> {
    let tables = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')";
    let ours = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_description d ON d.objoid = c.oid AND d.objsubid = 0 \
         WHERE n.nspname = $1 AND c.relname = 'store' AND d.description LIKE 'tenure:%'";
    let mut counts = Vec::new();
    for reply in run(&[
        Statement::query(tables, params![schema.to_owned()].to_vec()),
        Statement::query(ours, params![schema.to_owned()].to_vec()),
    ])? {
        let row = reply.rows().pop();
        counts.push(
            row.and_then(|row| row.try_get::<_, i64>(0).ok())
                .unwrap_or(0),
        );
    }
    match counts.as_slice() {
        [0, _] => Ok(SchemaState::Nothing),
        [_, 1] => {
            // A development build had no epoch_base.
            let sql = format!("SELECT schema, epoch_base FROM {schema}.store");
            let row = run(&[Statement::query(sql, Vec::new())])?.pop();
            let row = row.and_then(|reply| reply.rows().pop());
            let number = row
                .and_then(|row| row.try_get::<_, i64>(0).ok())
                .unwrap_or(0);
            Ok(SchemaState::Ours(u32::try_from(number).unwrap_or(0)))
        }
        _ => Ok(SchemaState::Foreign),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_statement_tells_no_store_from_one_of_a_development_build() {
        let told = |code: &str| {
            let fault = ServerError {
                code: code.to_owned(),
                message: "column store.epoch_base does not exist".to_owned(),
                rule: None,
            };
            first_fault("s", &fault)
        };
        for none in ["42P01", "3F000"] {
            assert!(matches!(
                told(none),
                StoreError::Unmigrated { found: 0, .. }
            ));
        }
        assert_eq!(
            told("42703").to_string(),
            "cannot use the store s: a development build of tenure created it; name another schema with ?schema= or \
             drop this one"
        );
        assert_eq!(told("40001"), StoreError::Conflict);
    }
}
