//! Who uses the store with an older version: their keepers say so in their rows.

use tenure_core::store::StoreError;
use tenure_core::version::is_newer;

use super::connection::{Statement, StatementResult};

/// Keepers whose lease is not over, by the store's wall clock.
const FRESH: &str = "SELECT version, host_name FROM keepers \
     WHERE seen_at + lease > (extract(epoch FROM clock_timestamp()) * 1000)::bigint ORDER BY host_name, version";

/// Refuses a migration that would leave older clients without a store that they understand.
pub(super) fn refuse_while_in_use(
    run: &impl Fn(&[Statement]) -> Result<Vec<StatementResult>, StoreError>,
    schema: &str,
    store: &str,
) -> Result<(), StoreError> {
    let has_keepers = format!("SELECT to_regclass('{schema}.keepers') IS NOT NULL");
    let row = run(&[Statement::query(has_keepers, Vec::new())])?.pop();
    let row = row.and_then(|reply| reply.rows().pop());
    if row.and_then(|row| row.try_get::<_, bool>(0).ok()) != Some(true) {
        return Ok(());
    }
    let fresh = FRESH.replace("FROM keepers", &format!("FROM {schema}.keepers"));
    let rows = run(&[Statement::query(fresh, Vec::new())])?.pop();
    let mut clients = Vec::new();
    for row in rows.map(StatementResult::rows).unwrap_or_default() {
        let text = |index: usize| row.try_get::<_, String>(index).unwrap_or_default();
        let (version, host) = (text(0), text(1));
        if is_newer(env!("CARGO_PKG_VERSION"), &version) {
            clients.push(format!("tenure {version} on {host}"));
        }
    }
    clients.dedup();
    if clients.is_empty() {
        return Ok(());
    }
    Err(StoreError::InUse {
        store: store.to_owned(),
        clients: clients.join(", "),
    })
}
