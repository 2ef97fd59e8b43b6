//! Which native ids a conversation must not get.
//!
//! A native id belongs to one conversation. One that another conversation has, that a live session of someone
//! else owns, or that is a subagent's, is refused, no matter who writes it.

use crate::id::{AgentName, NativeId};
use crate::key::Key;
use crate::transcript::is_subagent_id;

/// What is known about a native id before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts<'a, S> {
    /// Another conversation of the same agent that has it and may still come back to it.
    pub holder: Option<&'a Key>,
    /// The session that owns it, if it is or may be live and is neither the writer nor acting for it.
    pub owner: Option<S>,
}

/// Why a native id is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contaminated<S> {
    Subagent,
    /// The item whose conversation has it.
    Held(Key),
    /// The session that is in it.
    Owned(S),
}

/// Judges a native id before it becomes a conversation's.
pub fn check<S>(
    agent: &AgentName,
    native_id: &NativeId,
    facts: Facts<'_, S>,
) -> Result<(), Contaminated<S>> {
    if is_subagent_id(agent, native_id) {
        return Err(Contaminated::Subagent);
    }
    if let Some(item) = facts.holder {
        return Err(Contaminated::Held(item.clone()));
    }
    match facts.owner {
        Some(owner) => Err(Contaminated::Owned(owner)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_conversation_a_live_session_or_a_subagent_is_refused() {
        let agent = AgentName::known("claude");
        let id = |text: &str| NativeId::parse(text).unwrap();
        let none = Facts::<&str> {
            holder: None,
            owner: None,
        };
        assert_eq!(check(&agent, &id("ses-1"), none.clone()), Ok(()));
        let item = Key::parse("issue:acme/web#6").unwrap();
        let held = Facts {
            holder: Some(&item),
            ..none.clone()
        };
        let refused = check(&agent, &id("ses-1"), held);
        assert_eq!(refused, Err(Contaminated::Held(item.clone())));
        let owned = Facts {
            owner: Some("claude-k7qd"),
            ..none.clone()
        };
        let refused = check(&agent, &id("ses-1"), owned);
        assert_eq!(refused, Err(Contaminated::Owned("claude-k7qd")));
        let subagent = check(&agent, &id("agent-a1b2c3"), none);
        assert_eq!(subagent, Err(Contaminated::Subagent));
    }
}
