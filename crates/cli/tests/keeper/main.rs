//! Several machines on one store on a server: each has a state directory, a host id and a keeper of its own, and in
//! `hosts` its own processes too.
//!
//! These tests need PostgreSQL (`scripts/tools`), so they are ignored unless asked for; `scripts/test` asks for them.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod away;
mod edges;
mod guide;
mod hosts;
mod late;
mod machine;
mod many;
mod one;
mod publish;
mod roles;
mod silence;
mod socket;
mod spool;
mod start;
mod staying;
mod through;
mod verbs;
