//! What the tests of this folder share, by what it is about.

pub mod answer;
pub mod cloned;
pub mod crowd;
pub mod dispatch;
pub mod doctor;
pub mod forge;
pub mod forge_api;
pub mod git_host;
pub mod hook;
pub mod hooked;
pub mod installed;
pub mod lease;
pub mod line;
pub mod lock;
pub mod mission;
pub mod mount;
pub mod namespace;
pub mod output;
pub mod person;
pub mod pull_events;
pub mod remote;
pub mod run;
pub mod server;
pub mod shape;
pub mod skip;
pub mod small_disk;
pub mod storm;
pub mod talking;
pub mod tmux;
pub mod transcript;
pub mod waiter;
pub mod webhook;

use std::path::Path;

use tenure_testkit::Env;

/// A fresh environment for the tenure that was just built.
pub fn env() -> Env {
    Env::new(Path::new(env!("CARGO_BIN_EXE_tenure")))
}
