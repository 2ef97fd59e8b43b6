//! Registering: finding out which session a process is, and writing that down.
//!
//! [`tenure_core::registration`] decides; this module gathers what it needs to know and carries out its plan.
//! Registering never ends, robs or renames another session: the only session that it may close is one
//! that is gone and whose conversation moves.

mod find;
mod request;
mod work;

pub(crate) use find::register;
pub(crate) use request::Enrolled;
pub use request::{RegisterRequest, Registered, Subject};
