//! Tests against real processes, namespaces and directories.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

mod child;
mod namespace;
mod process;
mod state_dir;
