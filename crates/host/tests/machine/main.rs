//! Tests against real processes, namespaces and directories.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]
#![cfg(target_os = "linux")]

mod child;
mod namespace;
mod process;
mod state_dir;
