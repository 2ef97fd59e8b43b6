//! Links `tenure` at a fixed address: docs/decisions/0015-what-a-run-and-a-hook-weigh.md.
//!
//! At every start of a position-independent program the loader writes to each page of tables that holds an address. A
//! hook is a new process at every tool call, and these were a third of its page faults. `tenure-server`, which listens
//! on a network, stays position independent.

#![allow(clippy::disallowed_methods)] // Cargo tells a build script everything in variables.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bin=tenure=-no-pie");
    }
}
