//! Acting for another session: one rule for every command that takes `--session`, `--pid` or a session's name
//! to act on it.
//!
//! The session must exist. A caller acts as itself if the session is its own: the one that its processes or
//! variables name, or any that its hosting process runs. For a descendant it needs no reason. For any other
//! session it needs one, which is logged with the actor.
//!
//! Only a caller that acts as itself renews the session's lease, receives its notices and sees its token.
//! Nothing is granted on behalf of a session that is not proved alive: a doubt is refused as a doubt.

use crate::reason::Reason;

/// How a session relates to the caller that acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The caller is the session.
    Own,
    /// It was registered inside the caller's session, in this life.
    Descendant,
    /// Neither.
    Stranger,
}

impl Relation {
    /// Whether the caller may act with this reason, or without one.
    pub fn permits(self, reason: Option<&Reason>) -> bool {
        self != Relation::Stranger || reason.is_some()
    }

    /// Whether the caller renews the session's lease, receives its notices and sees its token.
    pub fn is_own(self) -> bool {
        self == Relation::Own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stranger_needs_a_reason() {
        let reason = Reason::parse("it asked me to").ok();
        for relation in [Relation::Own, Relation::Descendant, Relation::Stranger] {
            assert!(relation.permits(reason.as_ref()), "{relation:?}");
        }
        assert!(Relation::Own.permits(None));
        assert!(Relation::Descendant.permits(None));
        assert!(!Relation::Stranger.permits(None));
    }
}
