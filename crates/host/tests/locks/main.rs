//! Locks and whole files among real processes.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(clippy::disallowed_methods, reason = "a test may touch the machine")]
#![cfg(target_os = "linux")]

mod contention;
mod files;
mod holding;
mod worker;
