//! Where tenure stores its state. A backend gets, inserts, compares and sets, lists and appends; the rules are
//! above it, in core.
//!
//! One folder per backend, one file per noun in it, mirroring core. Every backend passes the conformance suite
//! of the testkit.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod copy;
pub mod postgres;
pub mod sqlite;

pub use postgres::PostgresStore;
pub use sqlite::{Patience, SqliteStore};

/// What a column holds that one of core's types does not parse.
fn misfit(error: &tenure_core::id::Malformed) -> String {
    let tenure_core::id::Malformed { what, value, why } = error;
    format!("{value:?}, which is not a valid {what} ({why})")
}
