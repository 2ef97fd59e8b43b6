//! The store's clock, the only one that frees or holds anything.
//!
//! One row has the last recorded time and its difference to the server's clock. The time is the
//! server's clock plus that difference, but never earlier than the row and never more than [`JUMP`]
//! later. Writers update the row when it is older than [`AGE`]. So a server clock that is set
//! forward counts for 20 s at most, and one that is set back takes the time back by 5 s at most.
//! While no one can write (a restart, a failover, a network failure at the server), the time stands
//! still, so no lease expires.
//!
//! *Crash*: an update that was not committed is made by the next writer. *Clock jump*: see above.
//! *Older version*: the row and its meaning are part of the first schema.

use tenure_core::time::{Era, Now, Timestamp};

/// The name of the only era: the clock continues across restarts, failovers and restored backups.
const ERA: &str = "store";

/// How often the row is updated, in milliseconds.
macro_rules! beat {
    () => {
        10_000
    };
}

/// How old the row may be before a writer updates it: half a beat.
pub(super) const AGE: i64 = beat!() / 2;
/// How far the time may be ahead of the row: two beats.
pub(super) const JUMP: i64 = 2 * beat!();

/// The wall clock of the server, the time, and how old the row is.
pub(super) const NOW: &str = "SELECT at, greatest(last, least(at + off, last + $1)), at + off - last \
     FROM clock, LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at OFFSET 0) server";

/// How old the row is, outside a transaction.
pub(super) fn age_in(schema: &str) -> String {
    format!(
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + off - last FROM {schema}.clock"
    )
}

/// [`MOVE`], outside a transaction.
pub(super) fn move_in(schema: &str) -> String {
    MOVE.replace("FROM clock", &format!("FROM {schema}.clock"))
        .replace("UPDATE clock", &format!("UPDATE {schema}.clock"))
}

/// Updates the row, unless another writer is doing so.
pub(super) const MOVE: &str = "WITH held AS (SELECT last, off FROM clock FOR UPDATE SKIP LOCKED), \
     server AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at), \
     moved AS (SELECT at, greatest(last, least(at + off, last + $1)) AS last FROM held, server \
     WHERE at + off < last OR at + off > last + $2) \
     UPDATE clock SET last = moved.last, off = moved.last - moved.at FROM moved";

/// Whether a row of this age must be updated. One that is ahead of the server's clock must be too.
pub(super) fn is_old(age: i64) -> bool {
    !(0..=AGE).contains(&age)
}

pub(super) fn era() -> Era {
    Era {
        id: ERA.to_owned(),
        private: false,
    }
}

pub(super) fn now(wall: i64, steady: i64) -> Now {
    Now {
        wall: Timestamp(wall),
        era: era(),
        steady,
    }
}
