//! Failures of mirrors in rows: one for each path, until it is written again.

use rusqlite::params;
use tenure_core::mirror_failure::MirrorFailure;
use tenure_core::store::StoreError;

use super::handle::SqliteTx;

pub(super) fn failures(tx: &SqliteTx<'_>) -> Result<Vec<MirrorFailure>, StoreError> {
    let sql = "SELECT path, session, why, at FROM mirror_failures ORDER BY path";
    tx.all("mirror_failures", sql, [], |cells| {
        Ok(MirrorFailure {
            path: cells.text()?,
            session: cells.text()?,
            why: cells.text()?,
            at: cells.time()?,
        })
    })
}

pub(super) fn set(tx: &SqliteTx<'_>, failure: &MirrorFailure) -> Result<(), StoreError> {
    let sql = "INSERT INTO mirror_failures (path, session, why, at) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (path) DO UPDATE SET session = excluded.session, why = excluded.why, \
         at = excluded.at";
    let values = params![failure.path, failure.session, failure.why, failure.at.0];
    tx.run(sql, values)?;
    Ok(())
}

pub(super) fn clear(tx: &SqliteTx<'_>, path: &str) -> Result<(), StoreError> {
    tx.run("DELETE FROM mirror_failures WHERE path = ?1", [path])?;
    Ok(())
}
