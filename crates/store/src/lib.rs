//! Where tenure stores its state. A store gets, inserts, compares and sets, lists and appends; the rules are above it, in
//! core.
//!
//! `rows` has one file per noun, with its SQL once for every engine ([`engine`] says what may differ). `sqlite` is the
//! engine for one machine; the one for PostgreSQL is a crate of its own. Every engine passes the conformance suite of the
//! testkit.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod cells;
mod columns;
pub mod copy;
pub mod engine;
pub mod export;
pub mod rows;
pub mod server;
pub mod sqlite;
mod transaction;
pub mod value;
pub mod views;

pub use sqlite::{Patience, SqliteStore};

/// Schema 1, as SQLite reads it; see [`engine`].
pub const SCHEMA: &str = include_str!("schema.sql");
