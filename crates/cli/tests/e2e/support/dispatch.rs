//! Deliveries of forges, and a clone to dispatch for.

use std::path::PathBuf;

use tenure_testkit::{Env, scratch_git};

/// Payloads that are kept with the crate that reads them.
pub fn payload(name: &str) -> PathBuf {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../forges/tests/fixtures");
    PathBuf::from(format!("{dir}/{name}.json"))
}

/// A clone of acme/web.
pub fn clone(env: &Env) -> PathBuf {
    let repo = env.dir().join("web");
    scratch_git(&repo, Some("https://git.example.org/acme/web"));
    repo
}

/// The user's dispatch.toml.
pub fn file(env: &Env) -> PathBuf {
    env.home().join(".config/tenure/dispatch.toml")
}

/// Replaces a line of the user's dispatch.toml.
#[track_caller]
pub fn fill_in(env: &Env, from: &str, to: &str) {
    let text = std::fs::read_to_string(file(env)).expect("it was written");
    assert!(text.contains(from), "{from} is not in\n{text}");
    std::fs::write(file(env), text.replacen(from, to, 1)).expect("it is ours");
}
