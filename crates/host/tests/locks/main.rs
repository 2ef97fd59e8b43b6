//! Locks and whole files among real processes.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![cfg(target_os = "linux")]

mod contention;
mod files;
mod holding;
mod worker;
