//! The file of a conversation, in the agent's own directory.

use std::path::PathBuf;

use tenure_core::id::{AgentName, NativeId};
use tenure_core::transcript;
use tenure_host::shelf;

use crate::settings::Env;

/// The file, where there is exactly one.
pub fn file(agent: &AgentName, native_id: &NativeId, env: Env<'_>) -> Option<PathBuf> {
    let rule = transcript::shelf(agent)?;
    let root = shelf::root(&rule, env)?;
    match shelf::find(&root, &rule, agent, native_id).as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}
