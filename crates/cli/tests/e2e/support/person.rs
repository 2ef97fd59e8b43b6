//! People beside their agents.

use tenure_testkit::Env;

use super::env;

/// Agents that run without hooks are shown, as they are outside of tests.
pub fn seeing() -> Env {
    let mut env = env();
    env.set("TENURE_PS_UNMANAGED", "true");
    env
}
