//! Passes on what this build is of, for `tenure --version`.
//!
//! The commit is in TENURE_COMMIT, which scripts/release sets. Git is not asked: every commit would compile this crate and
//! all that stands on it again, and a source archive has no git.

#![allow(clippy::disallowed_methods)] // Cargo tells a build script everything in variables.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TENURE_COMMIT");
    let given = |name: &str| env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=TENURE_COMMIT={}", given("TENURE_COMMIT"));
    println!("cargo::rustc-env=TENURE_TARGET={}", given("TARGET"));
}
