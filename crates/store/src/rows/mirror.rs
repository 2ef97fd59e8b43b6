//! Failures of mirrors in rows: one for each path, until it is written again.
//!
//! *Crash*: a failure is recorded completely or not at all. *Clock jump*: times are for people only. *Older version*:
//! see the schema.

use tenure_core::mirror_failure::MirrorFailure;
use tenure_core::store::{MirrorRows, StoreError};

use crate::cells::Cells;
use crate::columns::columns;
use crate::engine::{Engine, Rows};
use crate::value::params;

columns! { $
    FailureRow of "mirror_failures" by select_failures { path, session, why, at }
}

const ALL: &str = select_failures!("/* may scan: failures are few */ ORDER BY path");
const SET: &str = "INSERT INTO mirror_failures (path, session, why, at) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (path) DO UPDATE SET session = excluded.session, why = excluded.why, \
     at = excluded.at";
const CLEAR: &str = "DELETE FROM mirror_failures WHERE path = ?1";

fn read(cells: &mut Cells<'_>) -> Result<MirrorFailure, StoreError> {
    let row = FailureRow::read(cells);
    Ok(MirrorFailure {
        path: row.path.text()?,
        session: row.session.text()?,
        why: row.why.text()?,
        at: row.at.time()?,
    })
}

impl<E: Engine> MirrorRows for Rows<E> {
    fn mirror_failures(&mut self) -> Result<Vec<MirrorFailure>, StoreError> {
        self.all("mirror_failures", ALL, &[], read)
    }

    fn set_mirror_failure(&mut self, failure: &MirrorFailure) -> Result<(), StoreError> {
        self.run(
            SET,
            &params![&failure.path, &failure.session, &failure.why, failure.at.0],
        )?;
        Ok(())
    }

    fn clear_mirror_failure(&mut self, path: &str) -> Result<(), StoreError> {
        self.run(CLEAR, &params![path])?;
        Ok(())
    }
}
