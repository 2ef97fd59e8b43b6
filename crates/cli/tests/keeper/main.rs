//! Several machines on one store on a server: each has a state directory, a host id and a keeper of its own, and in
//! `hosts` its own processes too.
//!
//! These tests need PostgreSQL (`scripts/tools`), so they are ignored unless asked for; `scripts/test` asks for them.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod guide;
mod hosts;
mod late_answers;
mod machine;
mod many_keepers;
mod neighbours;
mod notified;
mod one_keeper;
mod plain_events;
mod publish;
mod requests;
mod roles;
mod silence;
mod socket;
mod spool;
mod start;
mod staying_processes;
mod store_away;
mod verbs;
