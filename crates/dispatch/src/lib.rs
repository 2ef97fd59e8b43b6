//! `dispatch.toml`: the forges, repositories and rules that the dispatcher works with.
//!
//! Everything is checked before anything starts: [`Config::load`] returns a configuration in which
//! every key is known, every rule can match, every skill and agent exists and every secret is
//! readable only by its owner. Otherwise the error is a list of all [`ConfigFault`]s, each with its line
//! and key. [`explain()`] shows what a delivery would do, and [`init`] writes a first file.
//!
//! Paths in the file are relative to the file. Secrets and tokens are in separate files, never in
//! this one.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

pub mod api;
mod backlog;
mod closing;
mod code;
mod config;
mod connection;
mod document;
pub mod endpoints;
mod explain;
mod fault;
mod forge_answers;
mod forge_config;
pub mod forge_worker;
mod given;
pub mod init;
mod intake;
pub mod listener;
pub mod live;
pub mod model;
pub mod notification;
pub mod ping;
mod pulls;
pub mod queue;
mod raw;
mod reading;
pub mod receive;
pub mod replay;
mod reply;
mod rules;
mod skills;
pub mod status;
pub mod stop;
mod sweep;
mod wraps;
mod written;
mod wrong;

#[cfg(test)]
mod tests;

pub use api::connect;
pub use config::{Checked, Config};
pub use explain::{Explained, explain};
pub use fault::ConfigFault;
pub use forge_answers::{Answers, ForgeAnswers, ask, check_tokens};
pub use forge_config::{ForgeConfig, RepoConfig};
pub use given::{CapturedDelivery, ReadDelivery};
pub use intake::{DeliveryOutcome, IntakeResult, Question};
pub use sweep::Swept;
pub use tenure_core::queue::backlog::SENDER_WAITS;
pub use wraps::check_wraps;

use std::path::PathBuf;

/// The default file: `dispatch.toml` next to the user's `config.toml`.
pub fn default_file() -> Option<PathBuf> {
    tenure_app::settings::user_dir(&tenure_host::env::var).map(|dir| dir.join(NAME))
}

pub const NAME: &str = "dispatch.toml";
