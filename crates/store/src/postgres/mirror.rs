//! Mirror failures in rows: one per path, until the path is written again.

use tenure_core::mirror_failure::MirrorFailure;
use tenure_core::store::{MirrorRows, StoreError};

use super::handle::PostgresTx;
use super::value::params;

impl MirrorRows for PostgresTx<'_> {
    fn mirror_failures(&mut self) -> Result<Vec<MirrorFailure>, StoreError> {
        let sql = "SELECT path, session, why, at FROM mirror_failures ORDER BY path";
        self.all("mirror_failures", sql, Vec::new(), |cells| {
            Ok(MirrorFailure {
                path: cells.text()?,
                session: cells.text()?,
                why: cells.text()?,
                at: cells.time()?,
            })
        })
    }

    fn set_mirror_failure(&mut self, failure: &MirrorFailure) -> Result<(), StoreError> {
        let sql = "INSERT INTO mirror_failures (path, session, why, at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (path) DO UPDATE SET session = excluded.session, why = excluded.why, \
             at = excluded.at";
        let values = params![&failure.path, &failure.session, &failure.why, failure.at.0];
        self.run(sql, values)?;
        Ok(())
    }

    fn clear_mirror_failure(&mut self, path: &str) -> Result<(), StoreError> {
        self.run("DELETE FROM mirror_failures WHERE path = $1", params![path])?;
        Ok(())
    }
}
