//! The file of a conversation in the agent's own directory.

use std::path::PathBuf;

use tenure_core::conversation::Home;
use tenure_core::conversation::fitness::Existence;
use tenure_core::id::{AgentName, NativeId};
use tenure_core::run::Run;
use tenure_core::transcript;
use tenure_core::witness::Kept;
use tenure_host::shelf;

use crate::settings::Env;
use crate::witness::kept;

/// The id that was chosen for a run's new conversation, if the agent created it without naming it.
pub(super) fn intended(run: &Run, home: &Home) -> Option<NativeId> {
    let intended = run.intended.clone()?;
    let kept = Kept {
        agent: run.agent.clone(),
        native_id: intended.clone(),
        home: home.clone(),
    };
    let is_there = kept::look(&[kept]).first() == Some(&Existence::Present);
    is_there.then_some(intended)
}

/// The file, if there is exactly one.
pub fn file(agent: &AgentName, native_id: &NativeId, env: Env<'_>) -> Option<PathBuf> {
    let rule = transcript::shelf(agent)?;
    let root = shelf::root(&rule, env)?;
    match shelf::find(&root, &rule, agent, native_id).as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}
