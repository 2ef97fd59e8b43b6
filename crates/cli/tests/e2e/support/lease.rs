//! Leases that are over at once.

use tenure_testkit::{Agent, Env, poll};

use super::answer::{PATIENCE, ask};
use super::env;

/// An environment in which every lease and lock-delay is over at once.
pub fn impatient() -> Env {
    let mut env = env();
    env.set("TENURE_LEASE", "1ms");
    env.set("TENURE_LOCK_DELAY", "1ms");
    env
}

/// Waits until a claim by this agent would be granted, without claiming.
pub fn await_expiry(agent: &Agent, key: &str) {
    poll(PATIENCE, &format!("{key} can be had"), || {
        (ask(agent, &["why", key])["why"]["answer"] == "granted").then_some(())
    });
}
