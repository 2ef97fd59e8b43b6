//! `dispatch.toml`: the forges, repositories and rules that the dispatcher works with.
//!
//! Everything is checked before anything starts: [`Config::load`] returns a configuration in which
//! every key is known, every rule can match, every skill and agent exists and every secret is
//! readable only by its owner. Otherwise the error is a list of all [`Fault`]s, each with its line
//! and key. [`explain()`] shows what a delivery would do, and [`init`] writes a first file.
//!
//! Paths in the file are relative to the file. Secrets and tokens are in separate files, never in
//! this one.

mod asking;
mod backlog;
mod behind;
pub mod clerk;
mod closing;
mod code;
mod config;
mod connection;
mod document;
pub mod endpoints;
mod ends;
mod explain;
mod fault;
mod given;
pub mod init;
pub mod live;
pub mod ping;
mod pulls;
mod raw;
mod reading;
pub mod receive;
pub mod replay;
mod reply;
mod rules;
pub mod running;
mod skills;
pub mod status;
pub mod stop;
mod sweep;
mod variables;
pub(crate) mod wraps;
mod written;
mod wrong;

#[cfg(test)]
mod tests;

pub use asking::{Answers, Asked, ask, check_tokens};
pub use backlog::{Outcome, Question, Stored};
pub use config::{Checked, Config};
pub use ends::{ForgeEnd, RepoEnd};
pub use explain::{Explained, explain};
pub use fault::Fault;
pub use given::{Captured, Given};
pub use sweep::Swept;
pub use tenure_core::queue::backlog::SENDER_WAITS;
pub use tenure_forges::api::{Connect, connect};
pub use variables::variables;
pub use wraps::check_wraps;

use std::path::PathBuf;

/// The default file: `dispatch.toml` next to the user's `config.toml`.
pub fn default_file() -> Option<PathBuf> {
    crate::settings::user_dir(&tenure_host::env::var).map(|dir| dir.join(NAME))
}

pub const NAME: &str = "dispatch.toml";
