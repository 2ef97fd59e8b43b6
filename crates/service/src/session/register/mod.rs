//! Registering: finding out which session a process is, and recording it.
//!
//! [`tenure_core::registration`] decides; this module gathers what it needs and carries out its plan.
//! Registering never ends, robs or renames another session. The only session that it may close is one that is
//! gone and whose conversation moves.

mod find;
mod request;
mod work;

pub(crate) use find::register;
pub(crate) use request::Enrolled;
pub use request::{RegisterRequest, Registered, Subject};
pub(crate) use work::close_gone;
